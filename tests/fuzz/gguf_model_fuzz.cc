#include "gpu_worker/model/gguf_config.h"
#include "gpu_worker/model/gguf_tokenizer.h"
#include "gpu_worker/tokenizer/tokenizer.h"
#include "tests/fuzz/fuzz_target.h"

// What a hostile file says of its model is refused or can be used: a config
// that is read is valid, a tokenizer that is made encodes and decodes.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using farkv::testing::Expect;
  const auto file =
      farkv::GgufFile::Parse(farkv::testing::InputBytes(data, size), "input");
  if (!file.ok()) return 0;
  const auto config = farkv::ReadGgufConfig(**file);
  if (config.ok()) {
    Expect(config->Validate().ok());
    Expect(config->vocab_size > 0 && config->max_position > 0);
    for (const int32_t token : config->eos_tokens) {
      Expect(token >= 0 && token < config->vocab_size);
    }
  }
  auto spec = farkv::ReadGgufTokenizer(**file);
  if (!spec.ok()) return 0;
  const auto tokenizer = farkv::Tokenizer::Create(*std::move(spec));
  if (!tokenizer.ok()) return 0;
  const auto tokens = tokenizer->Encode("ab <s> 12\n\xc3\xa4");
  if (!tokens.ok()) return 0;
  for (const int32_t token : *tokens) {
    Expect(token >= 0 && token < tokenizer->vocab_size());
  }
  (void)tokenizer->DecodeText(*tokens);
  return 0;
}
