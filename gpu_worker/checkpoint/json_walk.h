// A JSON text told piece by piece instead of kept: what a hostile text makes
// us allocate is what its reader chooses to keep. Pure.
#ifndef FARKV_GPU_WORKER_CHECKPOINT_JSON_WALK_H_
#define FARKV_GPU_WORKER_CHECKPOINT_JSON_WALK_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace farkv {

enum class JsonKind { kObject, kArray, kString, kUnsigned, kNegative, kOther };

// A scalar, or the beginning of an object or array, whose members follow.
struct JsonPiece {
  // Keys from the root down to this value; elements of an array have "" there.
  std::span<const std::string> path;
  JsonKind kind = JsonKind::kOther;
  const std::string* text = nullptr;  // kString; until the call returns
  uint64_t number = 0;                // kUnsigned
};

constexpr size_t kMaxJsonDepth = 8;

// Stops at the first error of `visit` and returns it. INVALID_ARGUMENT when
// `text` is not JSON or is nested deeper than kMaxJsonDepth.
absl::Status WalkJson(std::span<const std::byte> text,
                      absl::FunctionRef<absl::Status(const JsonPiece&)> visit);

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_CHECKPOINT_JSON_WALK_H_
