#include "absl/strings/string_view.h"
#include "gpu_worker/model/model_config.h"
#include "tests/fuzz/fuzz_target.h"

// A config that is taken fits together, and its sizes are within what the
// fields allow.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using farkv::testing::Expect;
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
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
