// Reading a GGUF file from its first byte to the tensors' data.
#include <algorithm>
#include <bit>
#include <cstring>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/endian.h"
#include "common/base/status_macros.h"
#include "gpu_worker/checkpoint/gguf_file.h"

namespace farkv {
namespace {

constexpr char kMagic[] = {'G', 'G', 'U', 'F'};
constexpr char kAlignmentKey[] = "general.alignment";
constexpr uint64_t kDefaultAlignment = 32;
constexpr uint64_t kMaxAlignment = uint64_t{1} << 30;
constexpr size_t kHeaderBytes = 24;
// The fewest bytes that one of them can take: an empty name, a one-byte value
// or one extent.
constexpr uint64_t kMinValueBytes = 8 + 4 + 1;
constexpr uint64_t kMinTensorBytes = 8 + 4 + 8 + 4 + 8;
constexpr uint32_t kMaxDimensions = 4;

absl::Status Invalid(const std::string& message) {
  return absl::InvalidArgumentError(message);
}

// A position in the file; everything taken is known to lie in it.
class Cursor {
 public:
  explicit Cursor(std::span<const std::byte> bytes) : bytes_(bytes) {}

  uint64_t position() const { return position_; }
  uint64_t left() const { return bytes_.size() - position_; }

  absl::StatusOr<std::span<const std::byte>> Take(uint64_t count) {
    if (count > left()) {
      return Invalid(absl::StrCat("byte ", position_, ": ", count,
                                  " bytes are asked for, ", left(),
                                  " are left"));
    }
    const auto taken = bytes_.subspan(position_, count);
    position_ += count;
    return taken;
  }

  template <typename T>
  absl::StatusOr<T> Number() {
    FARKV_ASSIGN_OR_RETURN(const auto bytes, Take(sizeof(T)));
    return LoadLe<T>(bytes.data());
  }

  absl::StatusOr<std::string> String() {
    FARKV_ASSIGN_OR_RETURN(const auto length, Number<uint64_t>());
    FARKV_ASSIGN_OR_RETURN(const auto bytes, Take(length));
    return std::string(reinterpret_cast<const char*>(bytes.data()),
                       bytes.size());
  }

  absl::Status SkipStrings(uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) {
      FARKV_ASSIGN_OR_RETURN(const auto length, Number<uint64_t>());
      FARKV_RETURN_IF_ERROR(Take(length).status());
    }
    return absl::OkStatus();
  }

 private:
  std::span<const std::byte> bytes_;
  uint64_t position_ = 0;
};

absl::StatusOr<GgufValueType> ReadValueType(Cursor& cursor) {
  FARKV_ASSIGN_OR_RETURN(const auto stored, cursor.Number<uint32_t>());
  const auto type = static_cast<GgufValueType>(stored);
  if (GgufValueTypeName(type).has_value()) return type;
  return Invalid(absl::StrCat("value type ", stored, " is none of 0 to 12"));
}

}  // namespace

// Fills a GgufFile in the order of the bytes.
class GgufParser {
 public:
  GgufParser(std::span<const std::byte> bytes, GgufFile& file)
      : bytes_(bytes), cursor_(bytes), file_(file) {}

  absl::Status Run() {
    FARKV_RETURN_IF_ERROR(ReadHeader());
    for (uint64_t i = 0; i < num_values_; ++i) {
      FARKV_RETURN_IF_ERROR(ReadKey());
    }
    if (num_tensors_ > cursor_.left() / kMinTensorBytes) {
      return Invalid(absl::StrCat(num_tensors_, " tensors cannot lie in ",
                                  cursor_.left(), " bytes"));
    }
    for (uint64_t i = 0; i < num_tensors_; ++i) {
      FARKV_RETURN_IF_ERROR(ReadTensorInfo());
    }
    return PlaceTensors();
  }

 private:
  struct Place {
    uint64_t offset = 0;
    std::string name;
  };

  absl::Status ReadHeader() {
    if (bytes_.size() < kHeaderBytes) {
      return Invalid(absl::StrCat("not a GGUF file: it has ", bytes_.size(),
                                  " bytes, a header has ", kHeaderBytes));
    }
    if (std::memcmp(bytes_.data(), kMagic, sizeof(kMagic)) != 0) {
      return Invalid("not a GGUF file: it does not begin with GGUF");
    }
    FARKV_RETURN_IF_ERROR(cursor_.Take(sizeof(kMagic)).status());
    FARKV_ASSIGN_OR_RETURN(const auto version, cursor_.Number<uint32_t>());
    if (version != 2 && version != 3) {
      const bool swapped = version != 0 && (version & 0xffffffu) == 0;
      return absl::UnimplementedError(
          swapped ? "a big endian GGUF file; only little endian is read"
                  : absl::StrCat("GGUF version ", version,
                                 "; versions 2 and 3 are read"));
    }
    FARKV_ASSIGN_OR_RETURN(num_tensors_, cursor_.Number<uint64_t>());
    FARKV_ASSIGN_OR_RETURN(num_values_, cursor_.Number<uint64_t>());
    if (num_values_ > cursor_.left() / kMinValueBytes) {
      return Invalid(absl::StrCat(num_values_, " metadata keys cannot lie in ",
                                  cursor_.left(), " bytes"));
    }
    return absl::OkStatus();
  }

  absl::Status ReadKey() {
    FARKV_ASSIGN_OR_RETURN(const std::string key, cursor_.String());
    auto value = ReadValue();
    if (!value.ok()) {
      return Invalid(absl::StrCat("key ", key, ": ", value.status().message()));
    }
    if (!file_.values_.emplace(key, *value).second) {
      return Invalid(absl::StrCat("key ", key, " is given twice"));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<GgufValue> ReadValue() {
    GgufValue value;
    FARKV_ASSIGN_OR_RETURN(value.type, ReadValueType(cursor_));
    if (value.type == GgufValueType::kArray) {
      value.is_array = true;
      FARKV_ASSIGN_OR_RETURN(value.type, ReadValueType(cursor_));
      if (value.type == GgufValueType::kArray) {
        return Invalid("arrays of arrays are not read");
      }
      FARKV_ASSIGN_OR_RETURN(value.count, cursor_.Number<uint64_t>());
    }
    const bool strings = value.type == GgufValueType::kString;
    const uint64_t least = strings ? 8 : GgufNumberBytes(value.type);
    if (value.count > cursor_.left() / least) {
      return Invalid(absl::StrCat(value.TypeText(), " cannot lie in ",
                                  cursor_.left(), " bytes"));
    }
    const uint64_t begin = cursor_.position();
    FARKV_RETURN_IF_ERROR(strings ? cursor_.SkipStrings(value.count)
                                  : cursor_.Take(value.count * least).status());
    value.bytes = bytes_.subspan(begin, cursor_.position() - begin);
    return value;
  }

  absl::Status ReadTensorInfo() {
    Place place;
    FARKV_ASSIGN_OR_RETURN(place.name, cursor_.String());
    auto tensor = ReadTensorShape(place);
    if (!tensor.ok()) {
      return Invalid(
          absl::StrCat("tensor ", place.name, ": ", tensor.status().message()));
    }
    if (!file_.tensors_.emplace(place.name, *std::move(tensor)).second) {
      return Invalid(absl::StrCat("tensor ", place.name, " is given twice"));
    }
    places_.push_back(std::move(place));
    return absl::OkStatus();
  }

  absl::StatusOr<GgufTensor> ReadTensorShape(Place& place) {
    GgufTensor tensor;
    FARKV_ASSIGN_OR_RETURN(const auto dimensions, cursor_.Number<uint32_t>());
    if (dimensions < 1 || dimensions > kMaxDimensions) {
      return Invalid(absl::StrCat("has ", dimensions, " dimensions, must be 1 ",
                                  "to ", kMaxDimensions));
    }
    for (uint32_t i = 0; i < dimensions; ++i) {
      FARKV_ASSIGN_OR_RETURN(const auto extent, cursor_.Number<int64_t>());
      if (extent < 1) {
        return Invalid(absl::StrCat("extent ", i, " is ",
                                    static_cast<uint64_t>(extent),
                                    ", must be 1 to 2^63 - 1"));
      }
      tensor.shape.insert(tensor.shape.begin(), extent);
    }
    FARKV_ASSIGN_OR_RETURN(tensor.type, cursor_.Number<uint32_t>());
    FARKV_ASSIGN_OR_RETURN(place.offset, cursor_.Number<uint64_t>());
    return tensor;
  }

  absl::StatusOr<uint64_t> Alignment() const {
    if (!file_.Has(kAlignmentKey)) return kDefaultAlignment;
    FARKV_ASSIGN_OR_RETURN(const int64_t stored, file_.Integer(kAlignmentKey));
    const auto alignment = static_cast<uint64_t>(stored);
    if (!std::has_single_bit(alignment) || alignment > kMaxAlignment) {
      return Invalid(absl::StrCat(kAlignmentKey, " is ", stored,
                                  ", must be a power of two up to ",
                                  kMaxAlignment));
    }
    return alignment;
  }

  absl::Status PlaceTensors() {
    FARKV_ASSIGN_OR_RETURN(const uint64_t alignment, Alignment());
    if (places_.empty()) return absl::OkStatus();
    const uint64_t begin =
        (cursor_.position() + alignment - 1) / alignment * alignment;
    if (begin > bytes_.size()) {
      return Invalid(absl::StrCat("data should begin at byte ", begin,
                                  " of a file of ", bytes_.size()));
    }
    const auto data = bytes_.subspan(begin);
    std::sort(places_.begin(), places_.end(),
              [](const Place& a, const Place& b) {
                return std::tie(a.offset, a.name) < std::tie(b.offset, b.name);
              });
    uint64_t filled = 0;
    for (const Place& place : places_) {
      GgufTensor& tensor = file_.tensors_.find(place.name)->second;
      if (absl::Status status = CheckPlace(place.offset, alignment, filled);
          !status.ok()) {
        return Named(place, status);
      }
      auto bytes = TensorExtent(tensor, place.offset, data.size());
      if (!bytes.ok()) return Named(place, bytes.status());
      tensor.bytes = data.subspan(place.offset, *bytes);
      filled = place.offset + *bytes;
    }
    return absl::OkStatus();
  }

  static absl::Status Named(const Place& place, const absl::Status& status) {
    return Invalid(absl::StrCat("tensor ", place.name, ": ", status.message()));
  }

  static absl::Status CheckPlace(uint64_t offset, uint64_t alignment,
                                 uint64_t filled) {
    if (offset % alignment != 0) {
      return Invalid(
          absl::StrCat("offset ", offset, " is no multiple of ", alignment));
    }
    if (offset < filled) {
      return Invalid(absl::StrCat("overlaps another: begins at data byte ",
                                  offset, ", that one ends at ", filled));
    }
    return absl::OkStatus();
  }

  // Bytes of a tensor at `offset` of `data_bytes`; 0 for one of a type whose
  // groups we do not know.
  static absl::StatusOr<uint64_t> TensorExtent(const GgufTensor& tensor,
                                               uint64_t offset,
                                               uint64_t data_bytes) {
    const auto type = GgufTensorType(tensor.type);
    std::optional<uint64_t> bytes = 0;
    if (type.has_value()) bytes = TensorBytes(*type, tensor.shape);
    if (!bytes.has_value()) {
      return Invalid(absl::StrCat(
          "shape ", ShapeText(tensor.shape), " of ", GgufTypeName(tensor.type),
          " is too large, or a row no whole number of groups"));
    }
    if (offset > data_bytes || *bytes > data_bytes - offset) {
      return Invalid(absl::StrCat(*bytes, " bytes at data byte ", offset,
                                  " do not lie in the file's ", data_bytes,
                                  " data bytes"));
    }
    return *bytes;
  }

  std::span<const std::byte> bytes_;
  Cursor cursor_;
  GgufFile& file_;
  uint64_t num_tensors_ = 0;
  uint64_t num_values_ = 0;
  std::vector<Place> places_;
};

absl::StatusOr<std::unique_ptr<GgufFile>> GgufFile::Open(
    const std::string& path) {
  FARKV_ASSIGN_OR_RETURN(auto mapped, MappedFile::Open(path, kHeaderBytes));
  FARKV_ASSIGN_OR_RETURN(auto file, Parse(mapped->bytes(), path));
  file->file_ = std::move(mapped);
  return file;
}

absl::StatusOr<std::unique_ptr<GgufFile>> GgufFile::Parse(
    std::span<const std::byte> bytes, const std::string& path) {
  auto file = std::unique_ptr<GgufFile>(new GgufFile());
  file->path_ = path;
  const absl::Status status = GgufParser(bytes, *file).Run();
  if (!status.ok()) {
    return absl::Status(status.code(),
                        absl::StrCat("\"", path, "\": ", status.message()));
  }
  return file;
}

}  // namespace farkv
