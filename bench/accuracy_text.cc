#include "bench/accuracy_text.h"

#include <fstream>
#include <iterator>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"
#include "gpu_worker/model/model_files.h"

namespace farkv::bench {
namespace {

constexpr char kFactPrompt[] = "A note, then a long text.\n\n";
constexpr const char* kPlaces[] = {"harbour", "library", "museum",  "station",
                                   "garden",  "theatre", "bakery",  "school",
                                   "factory", "castle",  "stadium", "hospital"};
constexpr size_t kCodeDigits = 4;
constexpr int kMaxEvents = 30;

absl::StatusOr<std::string> ReadText(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    return absl::NotFoundError(absl::StrCat("cannot open the text \"", path,
                                            "\"; --text names another"));
  }
  return std::string(std::istreambuf_iterator<char>(file), {});
}

absl::StatusOr<ModelFiles> OpenModel(const std::string& path) {
  auto files = ModelFiles::Open(path);
  if (!absl::IsNotFound(files.status())) return files;
  return absl::NotFoundError(absl::StrCat(
      files.status().message(),
      "; scripts/fetch_model.sh smollm2 fetches one into models/smollm2, "
      "--model names another"));
}

// Adds forced tokens; the text is encoded apart from what stands before it.
absl::Status Give(const Tokenizer& tokenizer, const std::string& text,
                  EncodedProgram& program) {
  FARKV_ASSIGN_OR_RETURN(const auto ids, tokenizer.Encode(text));
  program.tokens.insert(program.tokens.end(), ids.begin(), ids.end());
  program.generated.resize(program.tokens.size(), false);
  return absl::OkStatus();
}

std::vector<EncodedProgram> Windows(std::span<const int32_t> text) {
  std::vector<EncodedProgram> programs;
  for (; text.size() >= kTextWindow; text = text.subspan(kTextWindow)) {
    EncodedProgram& program = programs.emplace_back();
    program.tokens.assign(text.begin(), text.begin() + kTextWindow);
    program.prompt_size = kTextPrompt;
    program.generated.assign(kTextWindow, false);
  }
  return programs;
}

absl::StatusOr<int> NumEvents(absl::string_view task) {
  int events = 0;
  if (absl::ConsumePrefix(&task, "fact-") && absl::SimpleAtoi(task, &events) &&
      events >= 1 && events <= kMaxEvents) {
    return events;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "task \"fact-", std::string(absl::StripPrefix(task, "fact-")),
      "\" must be fact-1 to fact-", kMaxEvents));
}

absl::Status CheckLength(const std::string& path, size_t tokens, size_t least) {
  if (tokens >= least) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the text \"", path, "\" has ", tokens,
                   " tokens for this model; the task needs ", least));
}

}  // namespace

bool IsTextTask(absl::string_view task) {
  return task == "text" || absl::ConsumePrefix(&task, "fact-");
}

absl::StatusOr<EncodedProgram> MakeTextFact(const Tokenizer& tokenizer,
                                            std::span<const int32_t> text,
                                            int num_events,
                                            ProgramDraws draws) {
  const char* place = kPlaces[draws.Below(std::size(kPlaces))];
  const std::string code =
      " " + draws.Shuffled("0123456789").substr(0, kCodeDigits);
  FARKV_ASSIGN_OR_RETURN(const auto answer, tokenizer.Encode(code));
  const auto between = static_cast<size_t>(num_events * kFactEventTokens);
  const auto start =
      static_cast<size_t>(draws.Below(static_cast<int>(text.size() - between)));

  EncodedProgram program;
  FARKV_RETURN_IF_ERROR(Give(tokenizer, kFactPrompt, program));
  program.prompt_size = program.tokens.size();
  const std::string opening = absl::StrCat("The code of the ", place, " is");
  FARKV_RETURN_IF_ERROR(Give(tokenizer, opening, program));
  const size_t stated = program.tokens.size();
  FARKV_RETURN_IF_ERROR(Give(tokenizer, code, program));
  FARKV_RETURN_IF_ERROR(Give(tokenizer, ".\n\n", program));
  const auto passage = text.subspan(start, between);
  program.tokens.insert(program.tokens.end(), passage.begin(), passage.end());
  FARKV_RETURN_IF_ERROR(Give(tokenizer, "\n\n" + opening, program));
  for (size_t i = 0; i < answer.size(); ++i) {
    program.lookups.push_back({static_cast<int64_t>(program.tokens.size()) - 1,
                               {static_cast<int64_t>(stated + i)}});
    program.tokens.push_back(answer[i]);
    program.generated.push_back(true);
  }
  program.num_answers = answer.size();
  return program;
}

absl::StatusOr<ProgramSet> MakeTextPrograms(const std::string& task,
                                            const ProgramSource& source) {
  const bool is_fact = task != "text";
  int events = 0;
  if (is_fact) {
    FARKV_ASSIGN_OR_RETURN(events, NumEvents(task));
  }
  FARKV_ASSIGN_OR_RETURN(const std::string text, ReadText(source.text));
  FARKV_ASSIGN_OR_RETURN(const ModelFiles files,
                         OpenModel(source.language_model));
  FARKV_ASSIGN_OR_RETURN(const ModelConfig config, files.ReadConfig());
  FARKV_ASSIGN_OR_RETURN(const Tokenizer tokenizer, files.ReadTokenizer());
  FARKV_ASSIGN_OR_RETURN(const auto tokens, tokenizer.Encode(text));
  const size_t least = is_fact
                           ? static_cast<size_t>(events * kFactEventTokens) + 1
                           : kTextWindow;
  FARKV_RETURN_IF_ERROR(CheckLength(source.text, tokens.size(), least));
  ProgramSet set;
  set.model = source.language_model;
  set.geometry = config.Geometry(DType::kBf16);
  set.sizes = kTextSizes;
  set.by_likelihood = !is_fact;
  if (!is_fact) {
    set.programs = Windows(tokens);
    return set;
  }
  for (int i = 0; i < source.num_programs; ++i) {
    FARKV_ASSIGN_OR_RETURN(
        auto program,
        MakeTextFact(tokenizer, tokens, events, DrawsOf(task, source.seed, i)));
    set.programs.push_back(std::move(program));
  }
  return set;
}

}  // namespace farkv::bench
