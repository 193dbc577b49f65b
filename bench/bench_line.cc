#include "bench/bench_line.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "absl/strings/str_format.h"
#include "bench/commit.h"

namespace farkv::bench {
namespace {

using Json = nlohmann::ordered_json;

Json Number(double value) {
  if (!std::isfinite(value)) return nullptr;
  return std::strtod(absl::StrFormat("%.6g", value).c_str(), nullptr);
}

Json Number(const std::optional<double>& value) {
  return value.has_value() ? Number(*value) : Json(nullptr);
}

// Applies Number to every floating-point member.
Json Rounded(const Json& object) {
  Json out = Json::object();
  for (const auto& [key, value] : object.items()) {
    out[key] = value.is_number_float() ? Number(value.get<double>()) : value;
  }
  return out;
}

}  // namespace

std::string CpuModel(const std::string& cpuinfo) {
  std::istringstream lines(cpuinfo);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    const size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

const RunFacts& ThisRun() {
  static const RunFacts* const facts = [] {
    std::ostringstream cpuinfo;
    cpuinfo << std::ifstream("/proc/cpuinfo").rdbuf();
    return new RunFacts{kCommit, CpuModel(cpuinfo.str())};
  }();
  return *facts;
}

std::string ToJson(const BenchLine& line, const RunFacts& facts) {
  Json json;
  json["bench"] = line.bench;
  json["case"] = line.case_name;
  json["value"] = Number(line.value);
  json["unit"] = line.unit;
  json["better"] = line.better == Better::kHigher ? "higher" : "lower";
  json["yardstick"] = nullptr;
  if (line.yardstick.has_value()) {
    json["yardstick"] = {{"name", line.yardstick->name},
                         {"value", Number(line.yardstick->value)}};
  }
  json["ratio"] = Number(line.ratio);
  json["goal"] = Number(line.goal);
  json["met"] = nullptr;
  if (line.ratio.has_value() && line.goal.has_value()) {
    json["met"] = *line.ratio >= *line.goal;
  }
  json["runs"] = line.runs;
  json["spread"] = Number(line.spread);
  json["params"] = Rounded(line.params);
  json["metrics"] = Rounded(line.metrics);
  json["commit"] = facts.commit;
  json["cpu"] = facts.cpu;
  return json.dump();
}

void Print(const BenchLine& line) {
  std::puts(ToJson(line, ThisRun()).c_str());
  std::fflush(stdout);
}

}  // namespace farkv::bench
