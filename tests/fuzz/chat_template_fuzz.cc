#include <algorithm>
#include <vector>

#include "absl/strings/string_view.h"
#include "gpu_worker/tokenizer/chat_template.h"
#include "tests/fuzz/fuzz_target.h"

// A template that is taken writes a chat, and each message in it as it is.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using farkv::testing::Expect;
  const auto chat = farkv::ChatTemplate::Recognise(
      absl::string_view(reinterpret_cast<const char*>(data), size),
      {"<s>", "</s>"});
  if (!chat.ok()) return 0;
  const std::vector<farkv::ChatTurn> turns = {
      {"user", "a"}, {"assistant", "b"}, {"user", "c"}};
  const auto parts = chat->Render(turns, "26 Jul 2024");
  Expect(parts.ok());
  for (const farkv::ChatTurn& turn : turns) {
    Expect(std::any_of(parts->begin(), parts->end(), [&turn](const auto& part) {
      return part.text == turn.content &&
             part.special == farkv::SpecialText::kLiteral;
    }));
  }
  return 0;
}
