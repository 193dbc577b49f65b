#include "admin_cli/plan.h"

#include <algorithm>
#include <cmath>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "admin_cli/commands.h"
#include "admin_cli/rates.h"

namespace farkv {
namespace {

using nlohmann::ordered_json;

constexpr StepMode kModes[] = {StepMode::kFullCache, StepMode::kMap,
                               StepMode::kPrefetch, StepMode::kPushdown};

// Fields of the library are flags here: "t2_bits is 6, ..." -> "--t2-bits is".
absl::Status NameFlag(const absl::Status& status) {
  if (!absl::IsInvalidArgument(status)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--hbm: ", std::string(status.message())));
  }
  std::string message(status.message());
  const size_t end = std::min(message.find(' '), message.size());
  const std::string flag =
      absl::StrReplaceAll(message.substr(0, end), {{"_", "-"}});
  return absl::InvalidArgumentError(
      absl::StrCat("--", flag, message.substr(end)));
}

// In whole nanoseconds; null for what cannot be.
ordered_json Seconds(absl::Duration duration) {
  if (duration == absl::InfiniteDuration()) return nullptr;
  return std::round(absl::ToDoubleNanoseconds(duration)) / 1e9;
}

std::string Shown(absl::Duration duration) {
  if (duration == absl::InfiniteDuration()) return "-";
  return absl::StrFormat("%.4gms", absl::ToDoubleMilliseconds(duration));
}

ordered_json ModeFields(const ModeTime& mode, const PlanResult& result) {
  ordered_json fields;
  fields["mode"] = StepModeName(mode.mode);
  fields["possible"] = mode.possible;
  fields["stepSeconds"] = Seconds(mode.step);
  fields["withoutOverlapSeconds"] = Seconds(mode.without_overlap);
  fields["waitsSeconds"] = Seconds(mode.waits);
  fields["tokensPerSecond"] =
      std::round(mode.TokensPerSecond(result.sizes.running) * 1e3) / 1e3;
  fields["linkBytes"] = mode.link_bytes;
  fields["bottleneck"] = BottleneckName(mode.bottleneck);
  fields["parts"] = mode.parts;
  return fields;
}

ordered_json SettingFields(const PlanOptions& options) {
  ordered_json settings = ordered_json::object();
  for (const PlanOptions::Setting& setting : options.settings) {
    settings[setting.flag] = {{"value", setting.value},
                              {"assumed", setting.assumed}};
  }
  return settings;
}

ordered_json NodeFields(const Sizes& sizes) {
  return {{"t1PageBytes", sizes.t1_page_bytes},
          {"t2PageBytes", sizes.t2_page_bytes},
          {"pagesPerLayer", sizes.pages},
          {"t1Bytes", sizes.t1_bytes},
          {"t2Bytes", sizes.t2_bytes},
          {"t1PoolBytes", sizes.t1_pool_bytes},
          {"t2PoolBytes", sizes.t2_pool_bytes},
          {"sequencesPerNode", sizes.sequences_per_node},
          {"storeBytesPerStep", std::round(sizes.store_bytes_per_step)}};
}

Output FactOutput() {
  return Output("PlanFactList", {{"QUANTITY", "quantity"}, {"VALUE", "value"}});
}

void AddFacts(const PlanOptions& options, const Sizes& sizes, Output& facts) {
  const auto bytes = [](uint64_t count) {
    return ShownBytes(static_cast<double>(count));
  };
  const TierSplit& split = sizes.split;
  facts.AddRow({"KV of a token", bytes(sizes.token_bytes)});
  facts.AddRow({"KV of a sequence", bytes(sizes.sequence_bytes)});
  facts.AddRow({"weights of a step", bytes(options.rates.weight_bytes)});
  facts.AddRow({"T0", absl::StrCat(bytes(sizes.t0_bytes), ", ", sizes.t0_tokens,
                                   " tokens")});
  facts.AddRow({"T0 share of a sequence", bytes(sizes.t0_share_bytes)});
  facts.AddRow(
      {"sequences that T0 admits",
       absl::StrCat(
           sizes.fitting, " of ", options.workload.batch,
           sizes.running < options.workload.batch ? ": the others wait" : "")});
  facts.AddRow({"HBM ratio", absl::StrCat(sizes.hbm_ratio / 10000.0)});
  facts.AddRow(
      {"tokens of a sequence",
       absl::StrCat("T0 ", split.t0, ", T1 ", split.t1, ", T2 ", split.t2,
                    "; protected ", split.protected_tokens)});
  facts.AddRow({"cold pages of a layer",
                absl::StrCat(split.cold_pages, " of ", sizes.pages, ", in ",
                             sizes.step.subtrees, " subtrees")});
  facts.AddRow(
      {"a page in T1, in T2", absl::StrCat(bytes(sizes.t1_page_bytes), ", ",
                                           bytes(sizes.t2_page_bytes))});
  facts.AddRow({"--t1-bytes, all nodes", bytes(sizes.t1_pool_bytes)});
  facts.AddRow({"--t2-bytes, all nodes", bytes(sizes.t2_pool_bytes)});
  facts.AddRow({"stores of a step", ShownBytes(sizes.store_bytes_per_step)});
}

void AddMode(const ModeTime& mode, const PlanResult& result, Output& output) {
  output.AddRow(
      {StepModeName(mode.mode), Shown(mode.step), Shown(mode.waits),
       mode.possible
           ? absl::StrFormat("%.4g", mode.TokensPerSecond(result.sizes.running))
           : "-",
       ShownBytes(static_cast<double>(mode.link_bytes)),
       mode.possible ? BottleneckName(mode.bottleneck)
                     : "too much of a layer to fetch",
       Shown(mode.without_overlap), mode.parts});
}

}  // namespace

absl::StatusOr<PlanResult> MakePlan(const PlanOptions& options) {
  PlanResult result;
  auto sizes = SizesOf(options.shape, options.workload);
  if (!sizes.ok()) return NameFlag(sizes.status());
  result.sizes = *sizes;
  auto step =
      PlanStep(options.shape, result.sizes, options.rates, options.modes);
  if (!step.ok()) return step.status();
  result.step = *std::move(step);
  return result;
}

Output PlanOutput() {
  return Output("ModeList", {{"MODE", "mode"},
                             {"STEP", "step"},
                             {"WAITS", "waits"},
                             {"TOKENS/S", "tokensPerSecond"},
                             {"OVER THE LINK", "linkBytes"},
                             {"BOTTLENECK", "bottleneck"},
                             {"WITHOUT OVERLAP", "withoutOverlap", true},
                             {"PARTS", "parts", true}});
}

ordered_json PlanDocument(const PlanOptions& options,
                          const PlanResult& result) {
  const Sizes& sizes = result.sizes;
  ordered_json document;
  document["apiVersion"] = "farkv/v1";
  document["kind"] = "Plan";
  document["settings"] = SettingFields(options);
  document["kv"] = {{"tokenBytes", sizes.token_bytes},
                    {"sequenceBytes", sizes.sequence_bytes}};
  document["weightBytes"] = options.rates.weight_bytes;
  document["t0"] = {{"bytes", sizes.t0_bytes},
                    {"tokens", sizes.t0_tokens},
                    {"shareBytes", sizes.t0_share_bytes},
                    {"fittingSequences", sizes.fitting},
                    {"runningSequences", sizes.running},
                    {"hbmRatio", sizes.hbm_ratio / 10000.0}};
  document["tiers"] = {{"t0Tokens", sizes.split.t0},
                       {"t1Tokens", sizes.split.t1},
                       {"t2Tokens", sizes.split.t2},
                       {"protectedTokens", sizes.split.protected_tokens},
                       {"coldPagesPerLayer", sizes.split.cold_pages},
                       {"subtreesPerLayer", sizes.step.subtrees}};
  document["nodes"] = NodeFields(sizes);
  document["items"] = ordered_json::array();
  for (const StepMode mode : kModes) {
    document["items"].push_back(ModeFields(result.step.Of(mode), result));
  }
  document["auto"] = {{"mode", StepModeName(result.step.chosen)},
                      {"reason", result.step.reason}};
  return document;
}

void PrintPlan(const PlanOptions& options, const PlanResult& result,
               const OutputOptions& output, std::ostream& out) {
  if (output.IsDocument()) {
    PrintDocument(PlanDocument(options, result), output.format, out);
    return;
  }
  Output modes = PlanOutput();
  for (const StepMode mode : kModes) {
    AddMode(result.step.Of(mode), result, modes);
  }
  if (output.format == "name") return modes.Print(output, out);
  OutputOptions unsorted = output;
  unsorted.sort_by.clear();
  Output facts = FactOutput();
  AddFacts(options, result.sizes, facts);
  facts.Print(unsorted, out);
  out << "\n";
  modes.Print(output, out);
  out << "\nauto: " << StepModeName(result.step.chosen) << " ("
      << result.step.reason << ")\nassumed:";
  for (const PlanOptions::Setting& setting : options.settings) {
    if (setting.assumed) out << " --" << setting.flag << "=" << setting.value;
  }
  out << "\n";
}

int RunPlan(const CliOptions& options, const PlanOptions& wanted) {
  const auto result = MakePlan(wanted);
  if (!result.ok()) {  // checked when it was parsed
    std::cerr << "error: " << result.status().message() << "\n";
    return kExitError;
  }
  PrintPlan(wanted, *result, options.output, std::cout);
  return kExitOk;
}

}  // namespace farkv
