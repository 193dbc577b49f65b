#include "gpu_worker/checkpoint/safetensors_header.h"

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "gpu_worker/checkpoint/json_walk.h"

namespace farkv {
namespace {

constexpr size_t kMaxDimensions = 8;

// Fills one entry from the pieces of its JSON object. Fields may come in any
// order, each once.
class EntryReader {
 public:
  absl::Status Read(const JsonPiece& piece) {
    if (piece.path.size() == 2) return BeginField(piece);
    if (piece.path.size() != 3 || field_ == Field::kDtype) return Malformed();
    return field_ == Field::kShape ? AddExtent(piece) : AddOffset(piece);
  }

  absl::StatusOr<SafetensorsEntry> Finish() {
    if (!has_dtype_ || !has_shape_ || !has_offsets_) return Malformed();
    if (entry_.data_offsets.size() != 2) return BadOffsets();
    return std::exchange(entry_, {});
  }

 private:
  enum class Field { kDtype, kShape, kOffsets };

  static absl::Status Malformed() {
    return absl::InvalidArgumentError(
        "needs dtype, shape and data_offsets, each once and nothing else");
  }
  static absl::Status BadOffsets() {
    return absl::InvalidArgumentError("data_offsets must be two whole numbers");
  }

  absl::Status BeginField(const JsonPiece& piece) {
    const std::string& name = piece.path[1];
    bool* seen = nullptr;
    if (name == "dtype" && piece.kind == JsonKind::kString) {
      field_ = Field::kDtype;
      entry_.dtype = *piece.text;
      seen = &has_dtype_;
    } else if (name == "shape" && piece.kind == JsonKind::kArray) {
      field_ = Field::kShape;
      seen = &has_shape_;
    } else if (name == "data_offsets" && piece.kind == JsonKind::kArray) {
      field_ = Field::kOffsets;
      seen = &has_offsets_;
    }
    if (seen == nullptr || *seen) return Malformed();
    *seen = true;
    return absl::OkStatus();
  }

  absl::Status AddExtent(const JsonPiece& piece) {
    constexpr auto kMax =
        static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
    if (piece.kind != JsonKind::kUnsigned || piece.number > kMax) {
      return absl::InvalidArgumentError("shape must hold whole numbers");
    }
    if (entry_.shape.size() == kMaxDimensions) {
      return absl::InvalidArgumentError(
          absl::StrCat("shape has more than ", kMaxDimensions, " extents"));
    }
    entry_.shape.push_back(static_cast<int64_t>(piece.number));
    return absl::OkStatus();
  }

  absl::Status AddOffset(const JsonPiece& piece) {
    if (piece.kind != JsonKind::kUnsigned || entry_.data_offsets.size() == 2) {
      return BadOffsets();
    }
    entry_.data_offsets.push_back(piece.number);
    return absl::OkStatus();
  }

  SafetensorsEntry entry_;
  Field field_ = Field::kDtype;
  bool has_dtype_ = false;
  bool has_shape_ = false;
  bool has_offsets_ = false;
};

class HeaderReader {
 public:
  absl::Status Read(const JsonPiece& piece) {
    if (piece.path.empty()) {
      if (piece.kind == JsonKind::kObject) return absl::OkStatus();
      return absl::InvalidArgumentError("the header is not a JSON object");
    }
    if (piece.path.size() == 1) {
      FARKV_RETURN_IF_ERROR(FinishEntry());
      name_ = piece.path[0];
      open_ = name_ != "__metadata__";
    }
    if (!open_) return absl::OkStatus();
    if (piece.path.size() == 1 && piece.kind == JsonKind::kObject) {
      return absl::OkStatus();
    }
    return Named(entry_.Read(piece));
  }

  absl::StatusOr<std::map<std::string, SafetensorsEntry>> Finish() {
    FARKV_RETURN_IF_ERROR(FinishEntry());
    return std::move(entries_);
  }

 private:
  absl::Status Named(const absl::Status& status) const {
    if (status.ok()) return status;
    return absl::InvalidArgumentError(
        absl::StrCat("tensor ", name_, ": ", status.message()));
  }

  absl::Status FinishEntry() {
    if (!open_) return absl::OkStatus();
    open_ = false;
    auto entry = std::exchange(entry_, {}).Finish();
    if (!entry.ok()) return Named(entry.status());
    if (!entries_.emplace(name_, *std::move(entry)).second) {
      return Named(absl::InvalidArgumentError("the name is given twice"));
    }
    return absl::OkStatus();
  }

  std::map<std::string, SafetensorsEntry> entries_;
  std::string name_;
  bool open_ = false;
  EntryReader entry_;
};

}  // namespace

absl::StatusOr<std::map<std::string, SafetensorsEntry>> ParseSafetensorsHeader(
    std::span<const std::byte> text) {
  HeaderReader reader;
  FARKV_RETURN_IF_ERROR(WalkJson(
      text, [&](const JsonPiece& piece) { return reader.Read(piece); }));
  return reader.Finish();
}

}  // namespace farkv
