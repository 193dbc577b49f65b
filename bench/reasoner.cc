// farkv-bench reasoner: how many unseen programs the built-in reasoner answers
// right, with the worker's own engine (ALGORITHMS 14, task T2r).
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "bench/bench_line.h"
#include "bench/engine_run.h"
#include "bench/subcommands.h"
#include "common/base/status_macros.h"
#include "gpu_worker/model/model_files.h"

namespace farkv::bench {
namespace {

constexpr double kGateGoal = 0.95;

struct ReasonerFlags {
  std::string model;
  std::string programs;  // default: <model>/heldout.jsonl
  int limit = 200;
  int batch = 8;
};

struct Program {
  std::string prompt, completion;
};

absl::StatusOr<std::vector<Program>> ReadPrograms(
    const ReasonerFlags& options) {
  const std::string path = options.programs.empty()
                               ? options.model + "/heldout.jsonl"
                               : options.programs;
  std::ifstream file(path);
  if (!file) {
    return absl::NotFoundError(absl::StrCat("cannot open \"", path, "\""));
  }
  std::vector<Program> programs;
  for (std::string line; std::getline(file, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (!json.is_object() || !json.contains("prompt") ||
        !json.contains("completion")) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", path, "\": line ", programs.size() + 1,
                       " needs prompt and completion"));
    }
    programs.push_back({json["prompt"], json["completion"]});
    if (static_cast<int>(programs.size()) == options.limit) break;
  }
  return programs;
}

absl::Status RunReasoner(const ReasonerFlags& options) {
  FARKV_ASSIGN_OR_RETURN(const auto programs, ReadPrograms(options));
  FARKV_ASSIGN_OR_RETURN(const ModelFiles files,
                         ModelFiles::Open(options.model));
  FARKV_ASSIGN_OR_RETURN(const Tokenizer tokenizer, files.ReadTokenizer());
  FARKV_ASSIGN_OR_RETURN(const ModelConfig config, files.ReadConfig());
  std::vector<GenerationRequest> requests;
  for (const Program& program : programs) {
    GenerationRequest request;
    FARKV_ASSIGN_OR_RETURN(request.prompt, tokenizer.Encode(program.prompt));
    request.prompt.insert(request.prompt.begin(), config.bos_token);
    request.max_new_tokens =
        static_cast<int64_t>(program.completion.size()) + 1;
    requests.push_back(std::move(request));
  }
  EngineOptions engine;
  engine.model = options.model;
  engine.max_sequences = options.batch;
  engine.max_queue = static_cast<int>(requests.size());
  FARKV_ASSIGN_OR_RETURN(const auto runs,
                         RunRequests(std::move(engine), requests));
  int answers = 0, traces = 0;
  for (size_t i = 0; i < runs.size(); ++i) {
    std::string text;
    for (int32_t token : runs[i].tokens) text += tokenizer.Decode(token);
    const std::string& expected = programs[i].completion;
    traces += text == expected;
    // The answer is what follows the '!', the last character.
    answers += text.size() == expected.size() && text.back() == expected.back();
  }
  const auto count = static_cast<double>(runs.size());
  BenchLine line;
  line.bench = "reasoner";
  line.case_name = "full-cache";
  line.value = answers / count;
  line.unit = "right answers";
  line.yardstick = {"all programs", 1.0};
  line.ratio = line.value;
  line.goal = kGateGoal;
  line.runs = 1;
  line.params = {{"programs", runs.size()}};
  line.metrics = {{"whole_traces_right", traces / count}};
  Print(line);
  if (answers >= kGateGoal * count) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(answers, " of ", runs.size(),
                   " programs answered right, the gate is ", kGateGoal));
}

}  // namespace

void RegisterReasoner(CLI::App& app, Run& chosen) {
  auto options = std::make_shared<ReasonerFlags>();
  CLI::App* command = app.add_subcommand(
      "reasoner", "the built-in reasoner on unseen programs");
  command->add_option("--model", options->model, "model directory")->required();
  command->add_option("--programs", options->programs,
                      "JSON lines with prompt and completion");
  command->add_option("--limit", options->limit, "programs at most");
  command->add_option("--batch", options->batch, "sequences at once");
  command->callback([&chosen, options] {
    chosen = [options] { return RunReasoner(*options); };
  });
}

}  // namespace farkv::bench
