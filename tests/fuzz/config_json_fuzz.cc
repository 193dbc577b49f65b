#include "absl/strings/string_view.h"
#include "gpu_worker/model/model_config.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

// As a generation_config.json: the ends that it adds are tokens.
void AddEnds(absl::string_view text) {
  using farkv::testing::Expect;
  farkv::ModelConfig config;
  config.vocab_size = 32000;
  const absl::Status status = config.AddGenerationConfig(text);
  Expect(status.ok() || !status.message().empty());
  if (!status.ok()) return;
  for (const int32_t token : config.eos_tokens) {
    Expect(token >= 0 && token < config.vocab_size);
  }
}

}  // namespace

// A config that is taken fits together, and its sizes are within what the
// fields allow.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using farkv::testing::Expect;
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  AddEnds(text);
  const auto config = farkv::ModelConfig::Parse(text);
  if (!config.ok()) {
    Expect(!config.status().message().empty());
    Expect(config.status().message().size() < 1000);
    return 0;
  }
  Expect(config->Validate().ok());
  Expect(config->num_layers >= 1 && config->num_layers <= 1024);
  Expect(config->head_dim >= 16 && config->head_dim <= 512);
  Expect(config->max_position >= 1);
  return 0;
}
