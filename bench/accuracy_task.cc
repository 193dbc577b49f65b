#include "bench/accuracy_task.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/random.h"

namespace farkv::bench {

void ProgramWriter::Give(absl::string_view text) {
  program_.text.append(text.data(), text.size());
  program_.generated.resize(program_.text.size(), false);
}

void ProgramWriter::Make(absl::string_view text) {
  program_.text.append(text.data(), text.size());
  program_.generated.resize(program_.text.size(), true);
}

void ProgramWriter::Value(char name, int value, bool generated) {
  program_.text += absl::StrCat(value);
  program_.generated.push_back(generated);
  mentions_[name].push_back(static_cast<int64_t>(program_.text.size()));
}

void ProgramWriter::Recall(char name, int value) {
  // The name is the last character.
  program_.lookups.push_back(
      {static_cast<int64_t>(program_.text.size()), mentions_[name]});
  MakeValue(name, value);
}

Program ProgramWriter::Finish(size_t num_answers) {
  program_.num_answers = num_answers;
  return std::move(program_);
}

int ProgramDraws::Below(int limit) {
  const uint64_t draw = CounterDraw(seed_, {task_, program_, num_drawn_++});
  return static_cast<int>(draw % static_cast<uint64_t>(limit));
}

std::string ProgramDraws::Shuffled(std::string items) {
  for (size_t i = items.size(); i > 1; --i) {
    std::swap(items[i - 1],
              items[static_cast<size_t>(Below(static_cast<int>(i)))]);
  }
  return items;
}

absl::StatusOr<std::unique_ptr<AccuracyTask>> MakeAccuracyTask(
    absl::string_view name) {
  absl::string_view rest = name;
  int count = 0;
  if (absl::ConsumePrefix(&rest, "T2r-") && absl::SimpleAtoi(rest, &count) &&
      count >= 2 && count <= 44) {
    return MakeTraceTask(count);
  }
  if (absl::ConsumePrefix(&rest, "T3-")) {
    if (rest == "none") return MakeRegisterTask(0);
    if (rest == "16" || rest == "8" || rest == "4") {
      return MakeRegisterTask(absl::SimpleAtoi(rest, &count) ? count : 0);
    }
  }
  if (absl::ConsumePrefix(&rest, "T4-") && absl::SimpleAtoi(rest, &count) &&
      count >= 5 && count <= 30) {
    return MakeFactTask(count);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("task \"", std::string(name),
                   "\" must be T2r-2 to T2r-44, T3-none, T3-16, T3-8, T3-4, or "
                   "T4-5 to T4-30"));
}

}  // namespace farkv::bench
