#include "gpu_worker/checkpoint/gguf_tensors.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

using farkv::testing::Expect;

bool LiesIn(std::span<const std::byte> inner,
            std::span<const std::byte> outer) {
  return inner.empty() ||
         (inner.data() >= outer.data() &&
          inner.data() + inner.size() <= outer.data() + outer.size());
}

// Every value by every getter: right ones load, wrong ones refuse.
void ReadKey(const farkv::GgufFile& file, const std::string& key) {
  (void)file.String(key).ok();
  (void)file.Integer(key).ok();
  (void)file.Real(key).ok();
  (void)file.Bool(key).ok();
  (void)file.Strings(key).ok();
  (void)file.Integers(key).ok();
  (void)file.Reals(key).ok();
  (void)file.Bools(key).ok();
}

}  // namespace

// What opens has its tensors inside the file, no two of them over each other,
// and a tensor that is found has the bytes of its shape.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto input = farkv::testing::InputBytes(data, size);
  auto parsed = farkv::GgufFile::Parse(input, "input");
  if (!parsed.ok()) return 0;
  const std::shared_ptr<const farkv::GgufFile> file = *std::move(parsed);
  size_t total = 0;
  for (const auto& [name, tensor] : file->tensors()) {
    Expect(LiesIn(tensor.bytes, input));
    total += tensor.bytes.size();
  }
  Expect(total <= size);
  for (const char* key :
       {"general.architecture", "general.alignment", "tokenizer.ggml.tokens",
        "tokenizer.ggml.scores", "tokenizer.ggml.token_type",
        "llama.block_count", "llama.rope.freq_base", "absent"}) {
    ReadKey(*file, key);
  }
  const auto source = farkv::GgufTensors::Create(file);
  if (!source.ok()) return 0;
  for (const char* name : {"model.layers.0.self_attn.q_proj.weight",
                           "model.layers.0.self_attn.k_proj.weight",
                           "model.embed_tokens.weight", "lm_head.weight"}) {
    const auto stored = file->tensors().find(*farkv::GgufTensorName(name));
    if (stored == file->tensors().end()) {
      Expect(!(*source)->Find(name, {1}).ok());
      continue;
    }
    const auto view = (*source)->Find(name, stored->second.shape);
    if (!view.ok()) continue;
    Expect(view->bytes.size() == stored->second.bytes.size());
    Expect(view->owner != nullptr || LiesIn(view->bytes, input));
  }
  return 0;
}
