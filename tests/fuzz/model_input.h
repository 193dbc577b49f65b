// A whole model in one input: a GGUF, or else the length of a config.json (4
// bytes, little endian), the config and a safetensors file. Test only.
#ifndef FARKV_TESTS_FUZZ_MODEL_INPUT_H_
#define FARKV_TESTS_FUZZ_MODEL_INPUT_H_

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/endian.h"
#include "gpu_worker/checkpoint/gguf_tensors.h"
#include "gpu_worker/checkpoint/safetensors.h"
#include "gpu_worker/model/gguf_config.h"
#include "gpu_worker/model/model_config.h"
#include "gpu_worker/model/weights.h"

namespace farkv::testing {

// What ModelWeights::Load is given.
struct ModelInput {
  ModelConfig config;
  std::unique_ptr<TensorSource> tensors;
};

inline absl::StatusOr<ModelInput> OpenGgufInput(
    std::span<const std::byte> bytes) {
  auto file = GgufFile::Parse(bytes, "input");
  if (!file.ok()) return file.status();
  auto config = ReadGgufConfig(**file);
  if (!config.ok()) return config.status();
  auto tensors = GgufTensors::Create(*std::move(file));
  if (!tensors.ok()) return tensors.status();
  return ModelInput{*std::move(config), *std::move(tensors)};
}

inline absl::StatusOr<ModelInput> OpenModelInput(
    std::span<const std::byte> bytes) {
  const absl::string_view text(reinterpret_cast<const char*>(bytes.data()),
                               bytes.size());
  if (text.substr(0, 4) == "GGUF") return OpenGgufInput(bytes);
  if (bytes.size() < 4) return absl::InvalidArgumentError("too short");
  const size_t length =
      std::min<size_t>(LoadLe<uint32_t>(bytes.data()), bytes.size() - 4);
  auto config = ModelConfig::Parse(text.substr(4, length));
  if (!config.ok()) return config.status();
  auto tensors = SafetensorsFile::Parse(bytes.subspan(4 + length), "input");
  if (!tensors.ok()) return tensors.status();
  return ModelInput{*std::move(config), *std::move(tensors)};
}

}  // namespace farkv::testing

#endif  // FARKV_TESTS_FUZZ_MODEL_INPUT_H_
