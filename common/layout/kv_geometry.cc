#include "common/layout/kv_geometry.h"

#include "absl/strings/str_cat.h"
#include "common/base/check_range.h"

namespace farkv {

const char* DTypeName(DType dtype) {
  switch (dtype) {
    case DType::kBf16:
      return "bf16";
    case DType::kF32:
      return "f32";
  }
  return "unknown";
}

absl::Status KvGeometry::Validate() const {
  if (absl::Status s = CheckRange("num_layers", num_layers, 1, 1024); !s.ok())
    return s;
  if (absl::Status s = CheckRange("num_kv_heads", num_kv_heads, 1, 256);
      !s.ok())
    return s;
  if (absl::Status s = CheckRange("head_dim", head_dim, 16, 512); !s.ok())
    return s;
  if (head_dim % 16 != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("head_dim is ", head_dim, ", must be a multiple of 16"));
  }
  if (dtype != DType::kBf16 && dtype != DType::kF32) {
    return absl::InvalidArgumentError(absl::StrCat(
        "dtype is ", static_cast<int>(dtype), ", must be 1 (bf16) or 2 (f32)"));
  }
  return absl::OkStatus();
}

std::string KvGeometry::ToString() const {
  return absl::StrCat(num_layers, " layers x ", num_kv_heads, " KV heads x ",
                      head_dim, " ", DTypeName(dtype));
}

}  // namespace farkv
