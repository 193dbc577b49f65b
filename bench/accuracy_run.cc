#include "bench/accuracy_run.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/page/page_format.h"
#include "gpu_worker/model/model_files.h"

namespace farkv::bench {
namespace {

constexpr double kZ95 = 1.959964;  // two-sided, of the normal distribution

// Which mentions the lookups of a batch found; asked on the engine's thread.
class PresenceLog {
 public:
  explicit PresenceLog(std::span<const Program> programs)
      : programs_(programs), found_(programs.size()) {}

  void Note(const EngineView& engine, const std::string& request_id,
            int64_t position) {
    const absl::StatusOr<size_t> index = RequestIndex(request_id);
    if (!index.ok()) return;
    Found& found = found_[*index];
    const auto& lookups = programs_[*index].lookups;
    // One lookup per position, ascending.
    if (found.lookups == lookups.size() ||
        lookups[found.lookups].position != position) {
      return;
    }
    const auto live = engine.LivePositions(request_id);
    const auto& mentions = lookups[found.lookups++].mentions;
    found.present +=
        live.ok() &&
        std::any_of(mentions.begin(), mentions.end(), [&](int64_t mention) {
          return std::binary_search(live->begin(), live->end(), mention);
        });
  }

  void Take(size_t index, ProgramOutcome& outcome) const {
    outcome.lookups = static_cast<int64_t>(found_[index].lookups);
    outcome.present = found_[index].present;
  }

 private:
  struct Found {
    size_t lookups = 0;
    int64_t present = 0;
  };
  const std::span<const Program> programs_;
  std::vector<Found> found_;
};

void Score(const Program& program, const std::vector<int32_t>& expected,
           ProgramOutcome& outcome) {
  const std::vector<int32_t>& tokens = outcome.run.tokens;
  std::vector<bool> right(program.text.size(), true);
  for (size_t i = program.prompt_size; i < program.text.size(); ++i) {
    if (!program.generated[i]) continue;
    const size_t k = i - program.prompt_size;
    right[i] = k < tokens.size() && tokens[k] == expected[i];
    ++outcome.made;
    outcome.right += right[i];
  }
  outcome.whole = outcome.right == outcome.made;
  outcome.answered = true;
  const size_t first = program.lookups.size() - program.num_answers;
  for (size_t i = first; i < program.lookups.size(); ++i) {
    // Position p is character p - 1, so this is the one behind the name.
    outcome.answered = outcome.answered &&
                       right[static_cast<size_t>(program.lookups[i].position)];
  }
}

}  // namespace

// Token ids of programs: one per character.
class ProgramEncoder {
 public:
  static absl::StatusOr<ProgramEncoder> Create(const std::string& model) {
    FARKV_ASSIGN_OR_RETURN(const ModelFiles files, ModelFiles::Open(model));
    FARKV_ASSIGN_OR_RETURN(const ModelConfig config, files.ReadConfig());
    FARKV_ASSIGN_OR_RETURN(Tokenizer tokenizer, files.ReadTokenizer());
    return ProgramEncoder(std::move(tokenizer), config);
  }

  absl::StatusOr<std::vector<int32_t>> Encode(const std::string& text) const {
    FARKV_ASSIGN_OR_RETURN(auto ids, tokenizer_.Encode(text));
    if (ids.size() == text.size()) return ids;
    return absl::InvalidArgumentError(absl::StrCat(
        "the model's tokenizer makes ", ids.size(), " tokens of the ",
        text.size(), " characters of \"", text, "\"; the task needs one each"));
  }

  absl::StatusOr<GenerationRequest> MakeRequest(const Program& program,
                                                const AccuracyRow& row) const {
    FARKV_ASSIGN_OR_RETURN(const auto ids, Encode(program.text));
    const auto prompt_end =
        ids.begin() + static_cast<std::ptrdiff_t>(program.prompt_size);
    GenerationRequest request;
    request.prompt.push_back(bos_);
    request.prompt.insert(request.prompt.end(), ids.begin(), prompt_end);
    request.forced.assign(prompt_end, ids.end());
    for (size_t i = 0; i < request.forced.size(); ++i) {
      if (program.generated[program.prompt_size + i]) {
        request.forced[i] = kFreeToken;
      }
    }
    request.max_new_tokens = static_cast<int64_t>(request.forced.size());
    if (row.policy.has_value()) {
      request.destruction = row.Destruction(
          static_cast<int64_t>(request.prompt.size()), request.max_new_tokens);
    }
    return request;
  }

  // Of one token, in whole pages.
  double TokenBytes(const PageLayout& layout) const {
    return geometry_.num_layers * static_cast<double>(layout.payload_bytes) /
           kPageTokens;
  }
  double T1TokenBytes() const { return TokenBytes(PageLayout::T1(geometry_)); }
  double T2TokenBytes(int bits) const {
    return TokenBytes(PageLayout::T2(geometry_, bits));
  }

 private:
  ProgramEncoder(Tokenizer tokenizer, const ModelConfig& config)
      : tokenizer_(std::move(tokenizer)),
        bos_(config.bos_token),
        geometry_(config.Geometry(DType::kBf16)) {}

  Tokenizer tokenizer_;
  int32_t bos_;
  KvGeometry geometry_;
};

double RowOutcome::answered() const {
  const auto right =
      std::count_if(programs.begin(), programs.end(),
                    [](const ProgramOutcome& p) { return p.answered; });
  return static_cast<double>(right) / static_cast<double>(programs.size());
}

Interval WilsonInterval(double share, double count) {
  const double z2 = kZ95 * kZ95;
  const double middle = share + z2 / (2 * count);
  const double reach =
      kZ95 * std::sqrt(share * (1 - share) / count + z2 / (4 * count * count));
  const double scale = 1 + z2 / count;
  return {std::max(0.0, (middle - reach) / scale),
          std::min(1.0, (middle + reach) / scale)};
}

PairedDifference CompareAnswers(const RowOutcome& row, const RowOutcome& base) {
  const auto count = static_cast<double>(row.programs.size());
  double sum = 0, squares = 0;
  for (size_t i = 0; i < row.programs.size(); ++i) {
    const double difference = static_cast<double>(row.programs[i].answered) -
                              static_cast<double>(base.programs[i].answered);
    sum += difference;
    squares += difference * difference;
  }
  const double mean = sum / count;
  const double variance = std::max(0.0, squares / count - mean * mean);
  return {mean, kZ95 * std::sqrt(variance / count)};
}

bool SameTokens(const RowOutcome& a, const RowOutcome& b) {
  return std::equal(a.programs.begin(), a.programs.end(), b.programs.begin(),
                    b.programs.end(),
                    [](const ProgramOutcome& x, const ProgramOutcome& y) {
                      return x.run.tokens == y.run.tokens;
                    });
}

EngineOptions AccuracyRunner::Options(const std::string& model,
                                      const AccuracyRow& row) const {
  EngineOptions engine;
  engine.model = absl::StrCat(options_.models, "/", model);
  engine.threads = options_.threads;
  engine.max_sequences = options_.batch;
  engine.max_queue = options_.batch;
  engine.placement.granularity = engine.tiering.granularity = 16;
  engine.placement.sinks = kSinks;
  engine.placement.recent = kRecent;
  engine.placement.interval = kInterval;
  engine.placement.hbm_ratio = row.hbm_ratio;
  engine.tiering.t2_ratio = row.t2_ratio;
  engine.tiering.t2_bits = row.t2_bits;
  if (!row.uses_nodes()) return engine;
  UseCluster(cluster_, ColdMode::kMap, engine);
  engine.tiering.stripe_tokens = 128;
  engine.tiering.spread = true;
  return engine;
}

absl::Status AccuracyRunner::RunBatch(EngineOptions engine,
                                      const ProgramEncoder& encoder,
                                      std::span<const Program> programs,
                                      const AccuracyRow& row,
                                      RowOutcome& outcome) const {
  PresenceLog presence(programs);
  if (row.policy.has_value()) {
    engine.cache_sink = [&presence](const EngineView& view,
                                    const std::string& id, int64_t position) {
      presence.Note(view, id, position);
    };
  }
  std::vector<GenerationRequest> requests;
  for (const Program& program : programs) {
    FARKV_ASSIGN_OR_RETURN(auto request, encoder.MakeRequest(program, row));
    // Random policies draw anew for each program.
    request.sampling.seed = outcome.programs.size() + requests.size();
    requests.push_back(std::move(request));
  }
  RunSettings settings;
  if (row.uses_nodes()) {
    settings.pace = options_.pace;
    engine.await_stores_every = 16;  // cold rows on a busy machine, too
  }
  FARKV_ASSIGN_OR_RETURN(auto runs,
                         RunRequests(std::move(engine), requests, settings));
  for (size_t i = 0; i < programs.size(); ++i) {
    FARKV_ASSIGN_OR_RETURN(auto expected, encoder.Encode(programs[i].text));
    ProgramOutcome& program = outcome.programs.emplace_back();
    program.run = std::move(runs[i]);
    presence.Take(i, program);
    Score(programs[i], expected, program);
  }
  return absl::OkStatus();
}

absl::StatusOr<RowOutcome> AccuracyRunner::Run(
    const std::string& model, const std::vector<Program>& programs,
    const AccuracyRow& row) const {
  const EngineOptions engine = Options(model, row);
  FARKV_ASSIGN_OR_RETURN(const ProgramEncoder encoder,
                         ProgramEncoder::Create(engine.model));
  const auto batch = static_cast<size_t>(options_.batch);
  RowOutcome outcome;
  outcome.token_bytes = encoder.T1TokenBytes();
  outcome.t2_token_bytes = encoder.T2TokenBytes(row.t2_bits);
  for (std::span<const Program> left = programs; !left.empty();) {
    const size_t count = std::min(left.size(), batch);
    FARKV_RETURN_IF_ERROR(
        RunBatch(engine, encoder, left.first(count), row, outcome));
    left = left.subspan(count);
  }
  return outcome;
}

}  // namespace farkv::bench
