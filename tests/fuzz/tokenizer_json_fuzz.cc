#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/base/text_checks.h"
#include "gpu_worker/tokenizer/tokenizer.h"
#include "gpu_worker/tokenizer/tokenizer_files.h"
#include "gpu_worker/tokenizer/tokenizer_json.h"
#include "tests/fuzz/fuzz_target.h"

// A file that is taken makes a tokenizer that works: ids of its own, whole
// characters out.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using farkv::testing::Expect;
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  farkv::TokenizerSpec other;
  (void)farkv::ParseTokenizerConfig(text, other);
  auto spec = farkv::ParseTokenizerJson(text);
  if (!spec.ok()) return 0;
  const auto tokenizer = farkv::Tokenizer::Create(*std::move(spec));
  if (!tokenizer.ok()) return 0;
  (void)tokenizer->Encode(std::vector<farkv::TextPart>{
      {"<e>e"}, {"\xcc\x81 <|e|>", farkv::SpecialText::kLiteral}, {"<|e|>"}});
  const auto tokens = tokenizer->Encode("aab <|e|> \xc3\xa9 12<e>");
  if (!tokens.ok()) return 0;
  for (const int32_t token : *tokens) {
    Expect(token >= 0 && token < tokenizer->vocab_size());
    Expect(tokenizer->Decode(token).size() <= tokenizer->longest_piece());
  }
  const std::string decoded = tokenizer->DecodeText(*tokens);
  Expect(farkv::FindInvalidUtf8(decoded) == std::string::npos);
  return 0;
}
