// Reads metadata of a GGUF file and keeps the first error, which names file,
// key and value. Internal to gpu_worker/model. Borrows the file.
#ifndef FARKV_GPU_WORKER_MODEL_GGUF_FIELDS_H_
#define FARKV_GPU_WORKER_MODEL_GGUF_FIELDS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gpu_worker/checkpoint/gguf_file.h"

namespace farkv {

class GgufFields {
 public:
  // `prefix` stands before every key ("llama.").
  explicit GgufFields(const GgufFile& file, std::string prefix = "")
      : file_(file), prefix_(std::move(prefix)) {}

  bool Has(const char* key) const { return file_.Has(prefix_ + key); }

  // The key, or `fallback` when it is absent. Errors give `fallback` too.
  int32_t IntOr(const char* key, int32_t fallback, int32_t low, int32_t high) {
    if (!Has(key)) return fallback;
    return Int(key, low, high, fallback);
  }
  double RealOr(const char* key, double fallback) {
    return Has(key) ? Keep(file_.Real(prefix_ + key), fallback) : fallback;
  }
  bool BoolOr(const char* key, bool fallback) {
    return Has(key) ? Keep(file_.Bool(prefix_ + key), fallback) : fallback;
  }
  std::string TextOr(const char* key, const std::string& fallback) {
    if (!Has(key)) return fallback;
    return std::string(Keep(file_.String(prefix_ + key), {}));
  }
  // As above; an absent key is an error.
  int32_t Int(const char* key, int32_t low, int32_t high,
              int32_t fallback = 0) {
    const int64_t value = Keep(file_.Integer(prefix_ + key), int64_t{low});
    if (value >= low && value <= high) return static_cast<int32_t>(value);
    Fail(key, absl::StrCat(value), absl::StrCat("in [", low, ", ", high, "]"));
    return fallback;
  }
  double Real(const char* key) { return Keep(file_.Real(prefix_ + key), 0.0); }
  std::vector<std::string_view> Texts(const char* key) {
    return Keep(file_.Strings(prefix_ + key), {});
  }
  std::vector<double> Reals(const char* key) {
    return Keep(file_.Reals(prefix_ + key), {});
  }
  std::vector<int64_t> Ints(const char* key) {
    return Keep(file_.Integers(prefix_ + key), {});
  }

  // "key is VALUE, must be RULE".
  void Fail(const char* key, const std::string& value,
            const std::string& rule) {
    Keep(absl::InvalidArgumentError(absl::StrCat("\"", file_.path(), "\": key ",
                                                 prefix_, key, " is ", value,
                                                 ", must be ", rule)));
  }
  void Keep(absl::Status status) {
    if (status_.ok()) status_ = std::move(status);
  }
  const absl::Status& status() const { return status_; }

 private:
  template <typename T>
  T Keep(absl::StatusOr<T> value, T fallback) {
    if (value.ok()) return *std::move(value);
    Keep(value.status());
    return fallback;
  }

  const GgufFile& file_;
  const std::string prefix_;
  absl::Status status_;
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_MODEL_GGUF_FIELDS_H_
