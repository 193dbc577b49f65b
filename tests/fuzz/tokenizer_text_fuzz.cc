#include <cstdlib>
#include <string>
#include <vector>

#include "common/base/text_checks.h"
#include "gpu_worker/tokenizer/tokenizer.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

using farkv::Tokenizer;
using farkv::testing::Expect;

// One of each kind of model; the first has a piece for each byte.
const std::vector<Tokenizer>& Tokenizers() {
  static const std::vector<Tokenizer> tokenizers = [] {
    const char* root = std::getenv("FARKV_TEST_SOURCE_DIR");
    std::vector<Tokenizer> loaded;
    for (const char* family :
         {"gpt2", "qwen2", "deepseek", "llama2", "unigram"}) {
      auto tokenizer = Tokenizer::Load(
          std::string(root == nullptr ? "." : root) +
          "/tests/golden/tokenizers/" + family + "/tokenizer.json");
      Expect(tokenizer.ok());
      loaded.push_back(*std::move(tokenizer));
    }
    return loaded;
  }();
  return tokenizers;
}

}  // namespace

// UTF-8 becomes ids of the vocabulary, anything else an error; bytes that all
// have a piece come back.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const bool valid = farkv::FindInvalidUtf8(text) == std::string::npos;
  for (const Tokenizer& tokenizer : Tokenizers()) {
    const auto tokens = tokenizer.Encode(text);
    Expect(tokens.ok() == valid);
    if (!valid) continue;
    for (const int32_t token : *tokens) {
      Expect(token >= 0 && token < tokenizer.vocab_size());
    }
    const std::string decoded = tokenizer.DecodeText(*tokens);
    Expect(farkv::FindInvalidUtf8(decoded) == std::string::npos);
  }
  if (!valid) return 0;
  const Tokenizer& bytes = Tokenizers().front();
  const auto literal = bytes.Encode(text, farkv::SpecialText::kLiteral);
  Expect(literal.ok() && bytes.DecodeText(*literal) == text);
  return 0;
}
