// `farkvctl plan`: what a workload will take and how long its steps last,
// before anything runs (common/plan). It talks to no process.
#ifndef FARKV_ADMIN_CLI_PLAN_H_
#define FARKV_ADMIN_CLI_PLAN_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "admin_cli/output.h"
#include "common/plan/model_shape.h"
#include "common/plan/sizing.h"
#include "common/plan/step_time.h"

namespace farkv {

struct PlanOptions {
  ModelShape shape;
  Workload workload;
  Rates rates;
  ModeSettings modes;
  // Every flag, with its value as it was typed or is assumed.
  struct Setting {
    std::string flag;
    std::string value;
    bool assumed = true;
  };
  std::vector<Setting> settings;
};

struct PlanResult {
  Sizes sizes;
  StepPlan step;
};

// The model library's answer. Errors name flags.
absl::StatusOr<PlanResult> MakePlan(const PlanOptions& options);

// One row for each mode: what -o table sorts and -o name names.
Output PlanOutput();
// What -o json and yaml print: bytes, tokens and seconds.
nlohmann::ordered_json PlanDocument(const PlanOptions& options,
                                    const PlanResult& result);
void PrintPlan(const PlanOptions& options, const PlanResult& result,
               const OutputOptions& output, std::ostream& out);

}  // namespace farkv

#endif  // FARKV_ADMIN_CLI_PLAN_H_
