// The shape of a model from its config.json alone, for `plan`: also of models
// that this release's worker does not run.
#ifndef FARKV_ADMIN_CLI_PLAN_MODEL_H_
#define FARKV_ADMIN_CLI_PLAN_MODEL_H_

#include <string>

#include "absl/status/statusor.h"
#include "common/plan/model_shape.h"

namespace farkv {

// `path`: a config.json as Hugging Face writes it, or the folder with it. The
// result is valid. NOT_FOUND for what cannot be read; INVALID_ARGUMENT naming
// file, field, value and range.
absl::StatusOr<ModelShape> ReadModelShape(const std::string& path);
// The same for the text of such a file.
absl::StatusOr<ModelShape> ParseModelShape(const std::string& text);

}  // namespace farkv

#endif  // FARKV_ADMIN_CLI_PLAN_MODEL_H_
