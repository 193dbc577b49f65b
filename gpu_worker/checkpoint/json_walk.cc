#include "gpu_worker/checkpoint/json_walk.h"

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace farkv {
namespace {

using nlohmann::json;

// The names of the members are those that nlohmann's parser calls; false stops
// it. Only for the visitor's own errors: the parser tells its own.
class Walker {
 public:
  explicit Walker(absl::FunctionRef<absl::Status(const JsonPiece&)> visit)
      : visit_(visit) {}

  bool null() { return Tell(JsonKind::kOther); }
  bool boolean(bool) { return Tell(JsonKind::kOther); }
  bool number_float(double, const std::string&) {
    return Tell(JsonKind::kOther);
  }
  bool binary(json::binary_t&) { return Tell(JsonKind::kOther); }
  bool number_integer(json::number_integer_t) {
    return Tell(JsonKind::kNegative);
  }
  bool number_unsigned(json::number_unsigned_t value) {
    return Tell(JsonKind::kUnsigned, nullptr, value);
  }
  bool string(std::string& value) { return Tell(JsonKind::kString, &value); }
  bool start_object(size_t) { return Enter(JsonKind::kObject); }
  bool start_array(size_t) { return Enter(JsonKind::kArray); }
  bool end_object() { return Leave(); }
  bool end_array() { return Leave(); }
  bool key(std::string& name) {
    path_.back() = std::move(name);
    return true;
  }
  bool parse_error(size_t offset, const std::string&,
                   const nlohmann::detail::exception&) {
    return Stop(absl::InvalidArgumentError(
        absl::StrCat("not a JSON text from byte ", offset, " on")));
  }

  absl::Status status() const { return status_; }

 private:
  bool Tell(JsonKind kind, const std::string* text = nullptr,
            uint64_t number = 0) {
    absl::Status status = visit_({path_, kind, text, number});
    return status.ok() || Stop(std::move(status));
  }
  bool Enter(JsonKind kind) {
    if (path_.size() == kMaxJsonDepth) {
      return Stop(absl::InvalidArgumentError(
          absl::StrCat("JSON nested deeper than ", kMaxJsonDepth, " levels")));
    }
    if (!Tell(kind)) return false;
    path_.emplace_back();
    return true;
  }
  bool Leave() {
    path_.pop_back();
    return true;
  }
  bool Stop(absl::Status status) {
    status_ = std::move(status);
    return false;
  }

  absl::FunctionRef<absl::Status(const JsonPiece&)> visit_;
  std::vector<std::string> path_;
  absl::Status status_;
};

}  // namespace

absl::Status WalkJson(std::span<const std::byte> text,
                      absl::FunctionRef<absl::Status(const JsonPiece&)> visit) {
  Walker walker(visit);
  const auto* begin = reinterpret_cast<const char*>(text.data());
  json::sax_parse(begin, begin + text.size(), &walker);
  return walker.status();
}

}  // namespace farkv
