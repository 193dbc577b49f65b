#include "gpu_worker/checkpoint/tensor_source.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace farkv {
namespace {

struct TypeFacts {
  const char* name;
  int64_t group_elements;
  int64_t group_bytes;
};

TypeFacts Facts(TensorType type) {
  switch (type) {
    case TensorType::kF32:
      return {"F32", 1, 4};
    case TensorType::kF16:
      return {"F16", 1, 2};
    case TensorType::kBf16:
      return {"BF16", 1, 2};
    case TensorType::kQ8_0:
      return {"Q8_0", 32, 34};
    case TensorType::kQ4_0:
      return {"Q4_0", 32, 18};
    case TensorType::kQ4_1:
      return {"Q4_1", 32, 20};
    case TensorType::kQ4_K:
      return {"Q4_K", 256, 144};
    case TensorType::kQ6_K:
      return {"Q6_K", 256, 210};
  }
  return {"unknown", 1, 1};
}

std::optional<int64_t> CountElements(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (int64_t extent : shape) {
    if (extent < 0 || __builtin_mul_overflow(count, extent, &count)) {
      return std::nullopt;
    }
  }
  return count;
}

}  // namespace

const char* TensorTypeName(TensorType type) { return Facts(type).name; }
int64_t GroupElements(TensorType type) { return Facts(type).group_elements; }
int64_t GroupBytes(TensorType type) { return Facts(type).group_bytes; }

std::string ShapeText(const std::vector<int64_t>& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

std::optional<uint64_t> TensorBytes(TensorType type,
                                    const std::vector<int64_t>& shape) {
  const auto count = CountElements(shape);
  const TypeFacts facts = Facts(type);
  if (!count.has_value()) return std::nullopt;
  const int64_t row = shape.empty() ? 1 : shape.back();
  if (row % facts.group_elements != 0) return std::nullopt;
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(
          static_cast<uint64_t>(*count / facts.group_elements),
          static_cast<uint64_t>(facts.group_bytes), &bytes)) {
    return std::nullopt;
  }
  return bytes;
}

int64_t TensorView::NumElements() const {
  return CountElements(shape).value_or(0);
}

absl::Status CheckShape(const std::string& path, const std::string& name,
                        const std::vector<int64_t>& stored,
                        const std::vector<int64_t>& wanted) {
  if (stored == wanted) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "\"", path, "\": tensor ", name, " has shape ", ShapeText(stored),
      ", the model's config asks for ", ShapeText(wanted)));
}

}  // namespace farkv
