#include "bench/accuracy_run.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "common/base/status_macros.h"

namespace farkv::bench {
namespace {

// The place in a batch of the request with this name; nullopt for no request of
// the batch.
std::optional<size_t> PlaceOf(const std::string& request_id, size_t first,
                              size_t count) {
  const absl::StatusOr<size_t> number = RequestNumberOf(request_id);
  if (!number.ok() || *number < first || *number - first >= count) {
    return std::nullopt;
  }
  return *number - first;
}

// Which mentions the lookups of a batch found; asked on the engine's thread.
class PresenceLog {
 public:
  PresenceLog(std::span<const EncodedProgram> programs, size_t first)
      : programs_(programs), first_(first), found_(programs.size()) {}

  void Note(const EngineView& engine, const std::string& request_id,
            int64_t position) {
    const auto index = PlaceOf(request_id, first_, programs_.size());
    if (!index.has_value()) return;
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
  const std::span<const EncodedProgram> programs_;
  const size_t first_;  // number of the first program
  std::vector<Found> found_;
};

// How surprising the tokens of a batch were; asked on the engine's thread.
class SurpriseLog {
 public:
  SurpriseLog(std::span<const EncodedProgram> programs, size_t first)
      : programs_(programs), first_(first), surprise_(programs.size()) {}

  void Note(const std::string& request_id, int64_t position,
            std::span<const float> logits) {
    const auto index = PlaceOf(request_id, first_, programs_.size());
    if (!index.has_value()) return;
    const auto& tokens = programs_[*index].tokens;
    surprise_[*index].push_back(
        Surprise(logits, tokens[static_cast<size_t>(position)]));
  }

  std::vector<double> Take(size_t index) { return std::move(surprise_[index]); }

 private:
  const std::span<const EncodedProgram> programs_;
  const size_t first_;  // number of the first program
  std::vector<std::vector<double>> surprise_;
};

GenerationRequest MakeRequest(const EncodedProgram& program,
                              const AccuracyRow& row) {
  const auto prompt_end =
      program.tokens.begin() + static_cast<std::ptrdiff_t>(program.prompt_size);
  GenerationRequest request;
  request.prompt.assign(program.tokens.begin(), prompt_end);
  request.forced.assign(prompt_end, program.tokens.end());
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
  if (row.selects()) request.selection = row.selection;
  return request;
}

}  // namespace

absl::Status AccuracyRunner::RunBatch(RowEngine& row_engine,
                                      const ProgramSet& set,
                                      std::span<const EncodedProgram> programs,
                                      const AccuracyRow& row,
                                      RowOutcome& outcome) const {
  const size_t first = outcome.programs.size();
  PresenceLog presence(programs, first);
  SurpriseLog surprise(programs, first);
  EngineOptions engine = row_engine.options();
  if (row.policy.has_value()) {
    engine.cache_sink = [&presence](const EngineView& view,
                                    const std::string& id, int64_t position) {
      presence.Note(view, id, position);
    };
  }
  std::vector<GenerationRequest> requests;
  for (const EncodedProgram& program : programs) {
    GenerationRequest request = MakeRequest(program, row);
    // Random policies draw anew for each program, whatever its batch.
    request.sampling.seed = first + requests.size();
    requests.push_back(std::move(request));
  }
  RunSettings settings;
  settings.first_request = first;
  settings.stored_rows_filter = row_engine.filter();
  if (row.uses_nodes()) settings.pace = options_.pace;
  if (set.by_likelihood) {
    settings.observe = [&surprise](const std::string& id, int64_t position,
                                   std::span<const float> logits) {
      surprise.Note(id, position, logits);
    };
  }
  FARKV_ASSIGN_OR_RETURN(auto runs,
                         RunRequests(std::move(engine), requests, settings));
  for (size_t i = 0; i < programs.size(); ++i) {
    ProgramOutcome& program = outcome.programs.emplace_back();
    program.run = std::move(runs[i]);
    program.surprise = surprise.Take(i);
    presence.Take(i, program);
    ScoreProgram(programs[i], program);
  }
  return absl::OkStatus();
}

absl::StatusOr<RowOutcome> AccuracyRunner::Run(const ProgramSet& set,
                                               const AccuracyRow& row) const {
  RowEngine engine(options_, cluster_, set.model, set.geometry, row);
  const auto batch = static_cast<size_t>(options_.batch);
  RowOutcome outcome;
  outcome.token_bytes = engine.token_bytes();
  outcome.t2_token_bytes = engine.t2_token_bytes();
  for (std::span<const EncodedProgram> left = set.programs; !left.empty();) {
    const size_t count = std::min(left.size(), batch);
    FARKV_RETURN_IF_ERROR(
        RunBatch(engine, set, left.first(count), row, outcome));
    left = left.subspan(count);
  }
  FARKV_RETURN_IF_ERROR(engine.status());
  outcome.ranges = engine.value_ranges();
  return outcome;
}

}  // namespace farkv::bench
