// The JSON files of a model's folder, which anybody may have written. Values
// are nested kMaxJsonNesting levels deep at most: nlohmann's copy and dump()
// recurse, and a megabyte of brackets would end the stack. Pure but for
// ReadBoundedFile.
#ifndef FARKV_GPU_WORKER_TOKENIZER_BOUNDED_JSON_H_
#define FARKV_GPU_WORKER_TOKENIZER_BOUNDED_JSON_H_

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace farkv {

constexpr size_t kMaxJsonNesting = 64;  // real files have six levels

// NOT_FOUND when there is no such file; INVALID_ARGUMENT for what is none (a
// folder, a FIFO: never waited for) and, with its size, for one above
// `max_bytes`. All name the file.
absl::StatusOr<std::string> ReadBoundedFile(const std::string& path,
                                            uintmax_t max_bytes);

// INVALID_ARGUMENT when `text` is not a JSON object or is nested too deeply.
absl::StatusOr<nlohmann::json> ParseJsonObject(absl::string_view text);

// `value` as an error prints it: on one line, in ASCII, its beginning at most.
std::string Excerpt(const nlohmann::json& value);

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TOKENIZER_BOUNDED_JSON_H_
