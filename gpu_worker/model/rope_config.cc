#include "gpu_worker/model/rope_config.h"

#include <array>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "gpu_worker/model/config_fields.h"
#include "gpu_worker/tokenizer/bounded_json.h"

namespace farkv {
namespace {

using nlohmann::json;
using Kind = RopeScaling::Kind;

// The fields of each kind beside type, rope_type and rope_theta; "finetuned"
// is a remark of the first YaRN models. Anything else would change the
// rotation in a way that we do not know.
struct KindFields {
  const char* name;
  Kind kind;
  std::array<const char*, 8> fields;
};
constexpr KindFields kKinds[] = {
    {"default", Kind::kNone, {}},
    {"linear", Kind::kLinear, {"factor"}},
    {"dynamic", Kind::kDynamic, {"factor", "original_max_position_embeddings"}},
    {"yarn",
     Kind::kYarn,
     {"factor", "original_max_position_embeddings", "beta_fast", "beta_slow",
      "attention_factor", "mscale", "mscale_all_dim", "truncate"}},
    {"llama3",
     Kind::kLlama3,
     {"factor", "original_max_position_embeddings", "low_freq_factor",
      "high_freq_factor"}},
};

// `name` is that of the object, for errors.
absl::StatusOr<Kind> CheckFields(const char* name, const json& scaling) {
  ConfigFields fields(scaling, absl::StrCat(name, "."));
  const std::string type =
      fields.TextOr("rope_type", fields.TextOr("type", "default"));
  FARKV_RETURN_IF_ERROR(fields.status());
  const KindFields* known = nullptr;
  for (const KindFields& kind : kKinds) {
    if (type == kind.name) known = &kind;
  }
  if (known == nullptr) {
    return absl::UnimplementedError(absl::StrCat(
        name, ".rope_type is \"", type, "\", supported are ",
        absl::StrJoin(kKinds, ", ", [](std::string* out, const KindFields& k) {
          absl::StrAppend(out, k.name);
        })));
  }
  for (const auto& [field, value] : scaling.items()) {
    bool found = field == "rope_type" || field == "type" ||
                 field == "rope_theta" || field == "finetuned" ||
                 (field == "partial_rotary_factor" && value == json(1.0));
    for (const char* wanted : known->fields) {
      found = found || (wanted != nullptr && field == wanted);
    }
    if (!found && !value.is_null()) {
      return absl::UnimplementedError(
          absl::StrCat(name, ".", field, " is ", Excerpt(value),
                       ", which is not supported with type \"", type, "\""));
    }
  }
  return known->kind;
}

void ReadYarn(ConfigFields& fields, RopeScaling& scaling) {
  scaling.beta_fast = fields.RealOr("beta_fast", scaling.beta_fast);
  scaling.beta_slow = fields.RealOr("beta_slow", scaling.beta_slow);
  scaling.truncate = fields.BoolOr("truncate", scaling.truncate);
  double derived = YarnAttentionFactor(scaling.factor);
  if (fields.Has("mscale") && fields.Has("mscale_all_dim")) {
    derived =
        YarnAttentionFactor(scaling.factor, fields.Real("mscale")) /
        YarnAttentionFactor(scaling.factor, fields.Real("mscale_all_dim"));
  }
  scaling.attention_factor = fields.RealOr("attention_factor", derived);
}

// `original` is the number of tokens that the file states outside.
void ReadFields(ConfigFields& fields, const ModelConfig& config,
                int32_t original, RopeScaling& scaling) {
  const int32_t stated = fields.IntOr("original_max_position_embeddings",
                                      config.max_position, 1, kMaxPositions);
  if (scaling.kind != Kind::kLinear) {
    scaling.original_max_position = original > 0 ? original : stated;
  }
  if (scaling.kind == Kind::kDynamic && stated != config.max_position) {
    fields.Fail(absl::StrCat(
        "rope_scaling.original_max_position_embeddings is ", stated,
        " and max_position_embeddings ", config.max_position,
        ", must be equal with type \"dynamic\""));
  }
  scaling.factor =
      scaling.kind == Kind::kYarn
          ? fields.RealOr("factor", static_cast<double>(config.max_position) /
                                        scaling.original_max_position)
          : fields.Real("factor");
  if (scaling.kind == Kind::kYarn) ReadYarn(fields, scaling);
  if (scaling.kind == Kind::kLlama3) {
    scaling.low_freq_factor = fields.Real("low_freq_factor");
    scaling.high_freq_factor = fields.Real("high_freq_factor");
  }
}

}  // namespace

absl::Status ReadRope(const json& object, ModelConfig& config) {
  ConfigFields outside(object);
  config.rope_theta = outside.RealOr("rope_theta", config.rope_theta);
  const int32_t original =
      outside.IntOr("original_max_position_embeddings", 0, 1, kMaxPositions);
  FARKV_RETURN_IF_ERROR(outside.status());
  const char* name =
      outside.Has("rope_scaling") ? "rope_scaling" : "rope_parameters";
  if (!outside.Has(name)) return absl::OkStatus();
  const json& scaling = object[name];
  if (!scaling.is_object()) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " is ", Excerpt(scaling), ", must be an object"));
  }
  FARKV_ASSIGN_OR_RETURN(config.rope_scaling.kind, CheckFields(name, scaling));
  ConfigFields fields(scaling, absl::StrCat(name, "."));
  config.rope_theta = fields.RealOr("rope_theta", config.rope_theta);
  if (config.rope_scaling.kind != Kind::kNone) {
    const bool dynamic = config.rope_scaling.kind == Kind::kDynamic;
    ReadFields(fields, config, dynamic ? 0 : original, config.rope_scaling);
  }
  FARKV_RETURN_IF_ERROR(fields.status());
  config.max_position = config.rope_scaling.MaxPosition(config.max_position);
  return absl::OkStatus();
}

}  // namespace farkv
