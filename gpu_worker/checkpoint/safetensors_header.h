// The JSON header of a .safetensors file as plain values: nothing here knows
// how long the file is. Pure.
#ifndef FARKV_GPU_WORKER_CHECKPOINT_SAFETENSORS_HEADER_H_
#define FARKV_GPU_WORKER_CHECKPOINT_SAFETENSORS_HEADER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace farkv {

struct SafetensorsEntry {
  std::string dtype;                   // as written, "BF16"
  std::vector<int64_t> shape;          // each at least 0
  std::vector<uint64_t> data_offsets;  // begin and end, not compared yet
};

// INVALID_ARGUMENT naming the tensor when `text` is no JSON object of entries
// that have exactly these three fields. "__metadata__" is skipped.
absl::StatusOr<std::map<std::string, SafetensorsEntry>> ParseSafetensorsHeader(
    std::span<const std::byte> text);

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_CHECKPOINT_SAFETENSORS_HEADER_H_
