#include "bench/accuracy_task.h"

#include <optional>
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

namespace {

// "T2r-20" with the family "T2r-" is 20; nullopt where it is none of a family
// or out of range.
std::optional<int> SizeOf(absl::string_view name, absl::string_view family,
                          int least, int most) {
  int size = 0;
  if (!absl::ConsumePrefix(&name, family) || !absl::SimpleAtoi(name, &size) ||
      size < least || size > most) {
    return std::nullopt;
  }
  return size;
}

}  // namespace

absl::StatusOr<std::unique_ptr<AccuracyTask>> MakeAccuracyTask(
    absl::string_view name) {
  if (const auto lines = SizeOf(name, "T1-", 7, 48)) {
    return MakeAccumulatorTask(*lines);
  }
  if (const auto lines = SizeOf(name, "T2-", 6, 48)) {
    return MakeTraceTask(*lines);
  }
  if (const auto definitions = SizeOf(name, "T2r-", 2, 44)) {
    return MakeRestatedTraceTask(*definitions);
  }
  if (name == "T3-none") return MakeRegisterTask(0);
  for (const int spacing : {16, 8, 4}) {
    if (SizeOf(name, "T3-", spacing, spacing)) return MakeRegisterTask(spacing);
  }
  if (const auto events = SizeOf(name, "T4-", 5, 30)) {
    return MakeFactTask(*events);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "task \"", std::string(name),
      "\" must be T1-7 to T1-48, T2-6 to T2-48, T2r-2 to T2r-44, T3-none, "
      "T3-16, T3-8, T3-4, or T4-5 to T4-30"));
}

}  // namespace farkv::bench
