#include "gpu_worker/tokenizer/sentencepiece_model.h"

#include <bit>
#include <cstring>
#include <functional>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "gpu_worker/tokenizer/pre_tokenizers.h"

namespace farkv {
namespace {

// One field of a protobuf message.
struct Field {
  uint32_t number = 0;
  uint64_t value = 0;       // varint, or the bits of a fixed one
  absl::string_view bytes;  // length-delimited
  bool delimited = false;
};

// Walks the fields of one message.
class FieldReader {
 public:
  explicit FieldReader(absl::string_view message) : rest_(message) {}

  bool done() const { return rest_.empty(); }

  absl::StatusOr<Field> Next() {
    FARKV_ASSIGN_OR_RETURN(const uint64_t tag, Varint());
    Field field;
    field.number = static_cast<uint32_t>(tag >> 3);
    switch (tag & 7) {
      case 0: {
        FARKV_ASSIGN_OR_RETURN(field.value, Varint());
        return field;
      }
      case 1: {
        FARKV_ASSIGN_OR_RETURN(const absl::string_view raw, Take(8));
        std::memcpy(&field.value, raw.data(), 8);
        return field;
      }
      case 2: {
        FARKV_ASSIGN_OR_RETURN(const uint64_t length, Varint());
        FARKV_ASSIGN_OR_RETURN(field.bytes, Take(length));
        field.delimited = true;
        return field;
      }
      case 5: {
        FARKV_ASSIGN_OR_RETURN(const absl::string_view raw, Take(4));
        uint32_t bits = 0;
        std::memcpy(&bits, raw.data(), 4);
        field.value = bits;
        return field;
      }
      default:
        return absl::InvalidArgumentError(
            absl::StrCat("field ", field.number, " has wire type ", tag & 7));
    }
  }

 private:
  absl::StatusOr<absl::string_view> Take(uint64_t bytes) {
    if (bytes > rest_.size()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a field has ", bytes, " bytes, ", rest_.size(), " are left"));
    }
    const absl::string_view taken = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return taken;
  }
  absl::StatusOr<uint64_t> Varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      FARKV_ASSIGN_OR_RETURN(const absl::string_view byte, Take(1));
      value |= uint64_t{static_cast<uint8_t>(byte[0]) & 0x7fu} << shift;
      if ((static_cast<uint8_t>(byte[0]) & 0x80) == 0) return value;
    }
    return absl::InvalidArgumentError("a number has more than 10 bytes");
  }

  absl::string_view rest_;
};

absl::Status ForEachField(
    absl::string_view message,
    const std::function<absl::Status(const Field&)>& read) {
  FieldReader reader(message);
  while (!reader.done()) {
    FARKV_ASSIGN_OR_RETURN(const Field field, reader.Next());
    FARKV_RETURN_IF_ERROR(read(field));
  }
  return absl::OkStatus();
}

absl::StatusOr<PieceKind> KindOf(uint64_t stored, size_t id) {
  switch (stored) {
    case 1:
      return PieceKind::kNormal;
    case 2:
      return PieceKind::kUnknown;
    case 3:
      return PieceKind::kControl;
    case 4:
      return PieceKind::kUserDefined;
    case 5:
      return PieceKind::kUnused;
    case 6:
      return PieceKind::kByte;
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("piece ", id, " is of type ", stored));
  }
}

absl::Status ReadPiece(absl::string_view message, TokenizerSpec& spec) {
  std::string text;
  float score = 0;
  uint64_t kind = 1;
  FARKV_RETURN_IF_ERROR(ForEachField(message, [&](const Field& field) {
    if (field.number == 1) text = std::string(field.bytes);
    if (field.number == 2) {
      score = std::bit_cast<float>(static_cast<uint32_t>(field.value));
    }
    if (field.number == 3) kind = field.value;
    return absl::OkStatus();
  }));
  FARKV_ASSIGN_OR_RETURN(const PieceKind known,
                         KindOf(kind, spec.pieces.size()));
  if (known == PieceKind::kUnknown) {
    spec.unknown_token = static_cast<int32_t>(spec.pieces.size());
  }
  spec.pieces.push_back(std::move(text));
  spec.scores.push_back(static_cast<double>(score));
  spec.kinds.push_back(known);
  return absl::OkStatus();
}

// What the trainer and the normaliser were told; the defaults are the proto's.
struct Settings {
  uint64_t model_type = 1;
  bool space_behind = false;  // U+2581 at the end of words
  bool byte_fallback = false;
  int32_t begin = 1, end = 2;  // -1: none
  bool charsmap = false;
  bool add_dummy_prefix = true;
  bool remove_extra_spaces = true;
  bool escape_spaces = true;
};

absl::Status ReadTrainer(absl::string_view message, Settings& settings) {
  return ForEachField(message, [&settings](const Field& field) {
    const auto id = static_cast<int32_t>(field.value);
    if (field.number == 3) settings.model_type = field.value;
    if (field.number == 24) settings.space_behind = field.value != 0;
    if (field.number == 35) settings.byte_fallback = field.value != 0;
    if (field.number == 41) settings.begin = id;
    if (field.number == 42) settings.end = id;
    return absl::OkStatus();
  });
}

absl::Status ReadNormalizer(absl::string_view message, Settings& settings) {
  return ForEachField(message, [&settings](const Field& field) {
    if (field.number == 2) settings.charsmap = !field.bytes.empty();
    if (field.number == 3) settings.add_dummy_prefix = field.value != 0;
    if (field.number == 4) settings.remove_extra_spaces = field.value != 0;
    if (field.number == 5) settings.escape_spaces = field.value != 0;
    return absl::OkStatus();
  });
}

absl::Status Apply(const Settings& settings, TokenizerSpec& spec) {
  if (settings.charsmap || settings.remove_extra_spaces ||
      !settings.escape_spaces || settings.space_behind) {
    return absl::UnimplementedError(
        "the normaliser does more than writing spaces as U+2581");
  }
  if (settings.model_type != 1 && settings.model_type != 2) {
    return absl::UnimplementedError(
        absl::StrCat("the model is of type ", settings.model_type,
                     "; unigram (1) and BPE (2) are supported"));
  }
  spec.model = settings.model_type == 1 ? TokenizerModel::kUnigram
                                        : TokenizerModel::kScoresBpe;
  SetSentencePiece(settings.add_dummy_prefix, spec);
  spec.byte_fallback = settings.byte_fallback;
  spec.float_sums = true;
  if (settings.begin >= 0) spec.bos_token = settings.begin;
  if (settings.end >= 0) spec.eos_token = settings.end;
  spec.add_bos = settings.begin >= 0;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TokenizerSpec> ParseSentencePieceModel(absl::string_view bytes) {
  TokenizerSpec spec;
  Settings settings;
  FARKV_RETURN_IF_ERROR(ForEachField(bytes, [&](const Field& field) {
    if (field.number >= 1 && field.number <= 3 && !field.delimited) {
      return absl::InvalidArgumentError(
          absl::StrCat("field ", field.number, " is no message"));
    }
    if (field.number == 1) return ReadPiece(field.bytes, spec);
    if (field.number == 2) return ReadTrainer(field.bytes, settings);
    if (field.number == 3) return ReadNormalizer(field.bytes, settings);
    return absl::OkStatus();
  }));
  if (spec.pieces.empty()) {
    return absl::InvalidArgumentError("it has no pieces");
  }
  FARKV_RETURN_IF_ERROR(Apply(settings, spec));
  return spec;
}

}  // namespace farkv
