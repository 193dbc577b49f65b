#include <map>

#include "absl/strings/str_cat.h"
#include "admin_cli/bad_flag.h"
#include "admin_cli/command_line.h"
#include "admin_cli/commands.h"
#include "admin_cli/plan.h"
#include "admin_cli/plan_model.h"
#include "admin_cli/rates.h"
#include "common/base/parse.h"
#include "common/base/status_macros.h"

namespace farkv {
namespace {

template <typename T, typename Parser>
absl::Status Read(const char* flag, Parser parse, const std::string& typed,
                  T& value) {
  const auto parsed = parse(typed);
  if (!parsed.ok()) return BadFlag(flag, parsed.status());
  value = *parsed;
  return absl::OkStatus();
}

// Bytes of 256 weights, so that all are whole numbers.
uint64_t BytesOf256(const std::string& dtype) {
  static const std::map<std::string, uint64_t> kBytes = {
      {"f32", 1024}, {"bf16", 512}, {"q8_0", 272}, {"q4_0", 144}};
  return kBytes.at(dtype);
}

absl::Status ReadWorkload(const PlanArguments& typed, Workload& workload) {
  if (!typed.hbm.empty()) {
    FARKV_RETURN_IF_ERROR(
        Read("--hbm", ParseBytes, typed.hbm, workload.t0_bytes));
    if (workload.t0_bytes == 0) {
      return absl::InvalidArgumentError("--hbm: is 0, must be above 0");
    }
  }
  if (!typed.hbm_ratio.empty()) {
    FARKV_RETURN_IF_ERROR(
        Read("--hbm-ratio", ParseRatio, typed.hbm_ratio, workload.hbm_ratio));
  }
  workload.kv_dtype = typed.kv_dtype == "f32" ? DType::kF32 : DType::kBf16;
  return Read("--t2-ratio", ParseRatio, typed.t2_ratio, workload.t2_ratio);
}

absl::Status ReadTime(const char* flag, const std::string& typed,
                      absl::Duration& time) {
  FARKV_RETURN_IF_ERROR(Read(flag, ParseDuration, typed, time));
  if (time <= absl::Seconds(60)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(flag, ": ", typed, " is above 60s"));
}

absl::Status ReadRates(const PlanArguments& typed, const ModelShape& shape,
                       Rates& rates) {
  rates.weight_bytes = static_cast<uint64_t>(shape.NumProductWeights()) / 256 *
                       BytesOf256(typed.weights_dtype);
  if (!typed.weights_bytes.empty()) {
    FARKV_RETURN_IF_ERROR(Read("--weights-bytes", ParseBytes,
                               typed.weights_bytes, rates.weight_bytes));
    if (rates.weight_bytes == 0) {
      return absl::InvalidArgumentError(
          "--weights-bytes: is 0, must be above 0");
    }
  }
  FARKV_RETURN_IF_ERROR(Read("--hbm-bandwidth", ParseByteRate,
                             typed.hbm_bandwidth,
                             rates.weight_bytes_per_second));
  rates.attention_bytes_per_second = rates.weight_bytes_per_second;
  FARKV_RETURN_IF_ERROR(
      Read("--flops", ParseFlops, typed.flops, rates.flops_per_second));
  FARKV_RETURN_IF_ERROR(Read("--map-bandwidth", ParseByteRate,
                             typed.map_bandwidth,
                             rates.mapped_bytes_per_second));
  FARKV_RETURN_IF_ERROR(
      Read("--ddr", ParseByteRate, typed.ddr, rates.node_bytes_per_second));
  FARKV_RETURN_IF_ERROR(
      Read("--link", ParseByteRate, typed.link, rates.link_bytes_per_second));
  FARKV_RETURN_IF_ERROR(ReadTime("--rtt", typed.rtt, rates.round_trip));
  return ReadTime("--overhead", typed.overhead, rates.overhead);
}

// What was typed and, where nothing was, what stands for it.
std::vector<PlanOptions::Setting> SettingsOf(const CLI::App& command) {
  std::vector<PlanOptions::Setting> settings;
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_lnames().empty() || option->get_name() == "--help,-h") {
      continue;
    }
    PlanOptions::Setting setting;
    setting.flag = option->get_lnames().front();
    setting.assumed = option->empty();
    setting.value =
        setting.assumed ? option->get_default_str() : option->results().back();
    if (!setting.value.empty() && setting.flag != "help") {
      settings.push_back(std::move(setting));
    }
  }
  return settings;
}

void AddWorkloadFlags(CLI::App& plan, PlanArguments& typed,
                      Workload& workload) {
  plan.add_option("--model", typed.model, "A config.json, or its folder")
      ->required();
  plan.add_option("--tokens", workload.tokens,
                  "Of each sequence, its prompt included")
      ->required();
  plan.add_option("--prompt-tokens", workload.prompt_tokens, "Of these")
      ->capture_default_str();
  plan.add_option("--batch", workload.batch, "Sequences at once")
      ->capture_default_str();
  plan.add_option("--hbm", typed.hbm,
                  "Device memory for T0, as 40GiB; default: as much as "
                  "--hbm-ratio wants");
  plan.add_option("--hbm-ratio", typed.hbm_ratio,
                  "As the worker's; default: the largest at which --hbm holds "
                  "the batch, else 0.5");
  plan.add_option("--granularity", workload.placement.granularity,
                  "As the worker's")
      ->capture_default_str();
  plan.add_option("--sinks", workload.placement.sinks, "As the worker's")
      ->capture_default_str();
  plan.add_option("--recent", workload.placement.recent, "As the worker's")
      ->capture_default_str();
  plan.add_option("--kv-dtype", typed.kv_dtype, "As the worker's")
      ->check(CLI::IsMember({"bf16", "f32"}))
      ->capture_default_str();
  plan.add_option("--t2-ratio", typed.t2_ratio, "As the worker's")
      ->capture_default_str();
  plan.add_option("--t2-bits", workload.t2_bits, "As the worker's")
      ->capture_default_str();
  plan.add_option("--nodes", workload.nodes, "How many memory nodes")
      ->capture_default_str();
}

void AddRateFlags(CLI::App& plan, PlanArguments& typed) {
  plan.add_option("--weights-dtype", typed.weights_dtype,
                  "Of the weights as the worker keeps them")
      ->check(CLI::IsMember({"bf16", "f32", "q8_0", "q4_0"}))
      ->capture_default_str();
  plan.add_option("--weights-bytes", typed.weights_bytes,
                  "That a step reads; default: by --weights-dtype");
  plan.add_option("--device", typed.device, "Of the worker")
      ->check(CLI::IsMember({"cuda", "cpu"}))
      ->capture_default_str();
  plan.add_option("--exactness", typed.exactness, "As the worker's")
      ->check(CLI::IsMember({"bitwise", "rounding"}))
      ->capture_default_str();
  plan.add_flag("--mapped", typed.mapped,
                "Worker and nodes share a host and a --map-dir");
  plan.add_option("--hbm-bandwidth", typed.hbm_bandwidth,
                  "Reading weights and T0, as it is reached")
      ->capture_default_str();
  plan.add_option("--flops", typed.flops, "Of matrix products, as reached")
      ->capture_default_str();
  plan.add_option("--map-bandwidth", typed.map_bandwidth,
                  "Rows on the map, as reached")
      ->capture_default_str();
  plan.add_option("--ddr", typed.ddr,
                  "Attending to rows, of each node, as reached")
      ->capture_default_str();
  plan.add_option("--link", typed.link, "Of the worker, to all nodes together")
      ->capture_default_str();
  plan.add_option("--rtt", typed.rtt, "Of a message to a node and its answer")
      ->capture_default_str();
  plan.add_option("--overhead", typed.overhead,
                  "Of a step, beside products and attention")
      ->capture_default_str();
}

}  // namespace

absl::Status Finish(const PlanArguments& typed, PlanOptions& options) {
  const auto shape = ReadModelShape(typed.model);
  if (!shape.ok()) return BadFlag("--model", shape.status());
  options.shape = *shape;
  FARKV_RETURN_IF_ERROR(ReadWorkload(typed, options.workload));
  FARKV_RETURN_IF_ERROR(ReadRates(typed, options.shape, options.rates));
  options.modes.mapped = typed.mapped;
  options.modes.pushdown_allowed =
      typed.device == "cpu" || typed.exactness == "rounding";
  return MakePlan(options).status();
}

void AddPlan(CLI::App& app, Invocation& v) {
  CLI::App* plan = app.add_subcommand(
      "plan", "Predicts memory and step times of a workload; asks nobody");
  plan->fallthrough();
  AddWorkloadFlags(*plan, v.plan_typed, v.plan.workload);
  AddRateFlags(*plan, v.plan_typed);
  plan->callback([&v, plan] {
    v.table = PlanOutput;
    v.plan.settings = SettingsOf(*plan);
    v.finish = [&v] { return Finish(v.plan_typed, v.plan); };
    v.run = [&v] { return RunPlan(v.options, v.plan); };
  });
}

}  // namespace farkv
