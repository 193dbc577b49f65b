// farkv-bench throughput: prompt tokens and new tokens per second of one
// sequence with the full cache, without nodes. No yardstick in this process:
// bench/peers/ runs it beside another engine and compares.
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "bench/bench_line.h"
#include "bench/engine_run.h"
#include "bench/paired.h"
#include "bench/subcommands.h"
#include "common/base/status_macros.h"
#include "kernels/matmul_kernels.h"
#include "kernels/stream.h"

namespace farkv::bench {
namespace {

struct ThroughputFlags {
  std::string model;
  std::string tokens_file;
  int64_t prompt_tokens = 256;
  int64_t new_tokens = 64;
  int32_t vocab = 80;
  int rounds = 3;
  int threads = 1;
};

// The prompt, then the tokens that are forced as if they had been generated.
absl::StatusOr<std::vector<int32_t>> ReadTokens(
    const ThroughputFlags& options) {
  const int64_t count = options.prompt_tokens + options.new_tokens;
  if (options.prompt_tokens < 1 || options.new_tokens < 2 ||
      options.rounds < 1) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "--prompt-tokens %d, --new-tokens %d and --rounds %d must be at least "
        "1, 2 and 1",
        options.prompt_tokens, options.new_tokens, options.rounds));
  }
  if (options.tokens_file.empty()) {
    return RandomTokens(1, 0, count, options.vocab);
  }
  std::ifstream file(options.tokens_file);
  std::vector<int32_t> tokens;
  for (int32_t token; file >> token;) tokens.push_back(token);
  if (static_cast<int64_t>(tokens.size()) < count) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "\"%s\" has %d token ids, --prompt-tokens and --new-tokens ask for %d",
        options.tokens_file, tokens.size(), count));
  }
  tokens.resize(static_cast<size_t>(count));
  return tokens;
}

struct Rates {
  std::vector<double> prefill;  // tokens/s by round
  std::vector<double> decode;
};

absl::StatusOr<Rates> Measure(const ThroughputFlags& options) {
  FARKV_ASSIGN_OR_RETURN(const std::vector<int32_t> tokens,
                         ReadTokens(options));
  EngineOptions engine;
  engine.model = options.model;
  engine.threads = options.threads;
  engine.max_sequences = 1;
  GenerationRequest request;
  const auto first_new = tokens.begin() + options.prompt_tokens;
  request.prompt.assign(tokens.begin(), first_new);
  request.forced.assign(first_new, tokens.end());
  request.max_new_tokens = options.new_tokens;
  Rates rates;
  for (int round = 0; round < options.rounds; ++round) {
    FARKV_ASSIGN_OR_RETURN(const std::vector<RequestRun> runs,
                           RunRequests(engine, {request}));
    const std::vector<double>& seconds = runs[0].token_seconds;
    rates.prefill.push_back(static_cast<double>(options.prompt_tokens) /
                            seconds.front());
    rates.decode.push_back(static_cast<double>(seconds.size() - 1) /
                           (seconds.back() - seconds.front()));
  }
  return rates;
}

void PrintRates(const ThroughputFlags& options, const char* case_name,
                const std::vector<double>& rates) {
  BenchLine line;
  line.bench = "throughput";
  line.case_name = case_name;
  line.value = Median(rates);
  line.unit = "tokens/s";
  line.runs = options.rounds;
  line.spread = Spread(rates);
  line.params = {{"prompt_tokens", options.prompt_tokens},
                 {"new_tokens", options.new_tokens},
                 {"threads", options.threads},
                 {"kernel", KernelTarget()},
                 // What runs them where the file has any.
                 {"quantised_kernel",
                  matmul::KernelName(matmul::ChooseKernel(WeightType::kQ8_0))}};
  Print(line);
}

absl::Status RunThroughput(const ThroughputFlags& options) {
  FARKV_ASSIGN_OR_RETURN(const Rates rates, Measure(options));
  PrintRates(options, "prefill", rates.prefill);
  PrintRates(options, "decode", rates.decode);
  return absl::OkStatus();
}

}  // namespace

void RegisterThroughput(CLI::App& app, Run& chosen) {
  auto options = std::make_shared<ThroughputFlags>();
  CLI::App* command = app.add_subcommand(
      "throughput", "prefill and decode tokens/s with the full cache");
  command->add_option("--model", options->model, "model file or directory")
      ->required();
  command->add_option("--tokens-file", options->tokens_file,
                      "token ids of prompt and continuation; default: random");
  command->add_option("--vocab", options->vocab,
                      "random token ids are below this");
  command->add_option("--prompt-tokens", options->prompt_tokens, "of the file");
  command->add_option("--new-tokens", options->new_tokens,
                      "forced, one step each");
  command->add_option("--rounds", options->rounds, "repetitions");
  command->add_option("--threads", options->threads, "of the CPU kernels");
  command->callback([&chosen, options] {
    chosen = [options] { return RunThroughput(*options); };
  });
}

}  // namespace farkv::bench
