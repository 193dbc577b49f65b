// The synthetic tasks of ALGORITHMS 14 as programs: a text of one character per
// token, of which some are forced and some are generated, and the lookups that
// the generated ones rest on. Plain values; a task is immutable.
#ifndef FARKV_BENCH_ACCURACY_TASK_H_
#define FARKV_BENCH_ACCURACY_TASK_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace farkv::bench {

// The value of a name is recalled.
struct Lookup {
  int64_t position = 0;  // of the name; its step needs one of the mentions
  // Where the value stood before, behind its name.
  std::vector<int64_t> mentions;
};

struct Program {
  // Position 0 is <bos>, so text[i] stands at position i + 1.
  std::string text;
  size_t prompt_size = 0;       // characters of `text`
  std::vector<bool> generated;  // by character; false in the prompt
  std::vector<Lookup> lookups;
  size_t num_answers = 0;  // the last lookups, which the program is about
};

// Writes a program from left to right.
class ProgramWriter {
 public:
  void Give(absl::string_view text);
  void GiveValue(char name, int value) { Value(name, value, false); }
  void EndPrompt() { program_.prompt_size = program_.text.size(); }
  // What the model generates: plain text, the first value of a name, the value
  // that a name already has.
  void Make(absl::string_view text);
  void MakeValue(char name, int value) { Value(name, value, true); }
  void Recall(char name, int value);
  Program Finish(size_t num_answers);
  size_t size() const { return program_.text.size(); }

 private:
  void Value(char name, int value, bool generated);

  Program program_;
  std::map<char, std::vector<int64_t>> mentions_;
};

// Draws of one program; the same for every row that runs it.
class ProgramDraws {
 public:
  ProgramDraws(uint64_t seed, uint64_t task, uint64_t program)
      : seed_(seed), task_(task), program_(program) {}
  // In [0, limit).
  int Below(int limit);
  // The characters of `items` in any order.
  std::string Shuffled(std::string items);

 private:
  const uint64_t seed_, task_, program_;
  uint64_t num_drawn_ = 0;
};

class AccuracyTask {
 public:
  virtual ~AccuracyTask() = default;
  // The folder under models/ that was trained on it.
  virtual const char* model() const = 0;
  virtual Program Make(ProgramDraws draws) const = 0;
};

// T1-S: six accumulators, S lines, 7 to 48. T2-S: a trace of S lines, 6 to 48,
// the first five in the prompt. T2r-S: S definitions, 2 to 44. T3-C: 48 lines
// with a checkpoint every C lines, "none", 16, 8 or 4. T4-E: a fact is asked
// for after E events of 16 tokens, 5 to 30. INVALID_ARGUMENT for any other
// name.
absl::StatusOr<std::unique_ptr<AccuracyTask>> MakeAccuracyTask(
    absl::string_view name);

// One family each.
std::unique_ptr<AccuracyTask> MakeAccumulatorTask(int num_lines);
std::unique_ptr<AccuracyTask> MakeTraceTask(int num_lines);
std::unique_ptr<AccuracyTask> MakeRestatedTraceTask(int num_definitions);
std::unique_ptr<AccuracyTask> MakeRegisterTask(int spacing);
std::unique_ptr<AccuracyTask> MakeFactTask(int num_events);

}  // namespace farkv::bench

#endif  // FARKV_BENCH_ACCURACY_TASK_H_
