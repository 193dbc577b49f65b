#include <string>

#include "absl/strings/string_view.h"
#include "common/base/text_checks.h"
#include "gpu_worker/tokenizer/sentencepiece_model.h"
#include "gpu_worker/tokenizer/tokenizer.h"
#include "tests/fuzz/fuzz_target.h"

// A file that is taken makes a tokenizer that works: ids of its own, whole
// characters out.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using farkv::testing::Expect;
  auto spec = farkv::ParseSentencePieceModel(
      absl::string_view(reinterpret_cast<const char*>(data), size));
  if (!spec.ok()) return 0;
  const auto tokenizer = farkv::Tokenizer::Create(*std::move(spec));
  if (!tokenizer.ok()) return 0;
  const auto tokens = tokenizer->Encode("aaa \xc3\xa9 12<s>");
  Expect(tokens.ok());
  for (const int32_t token : *tokens) {
    Expect(token >= 0 && token < tokenizer->vocab_size());
  }
  const std::string decoded = tokenizer->DecodeText(*tokens);
  Expect(farkv::FindInvalidUtf8(decoded) == std::string::npos);
  return 0;
}
