// The programs of a task as token ids, whatever wrote them: the synthetic tasks
// of accuracy_task.h, or texts for a language model (accuracy_text.h).
#ifndef FARKV_BENCH_ACCURACY_PROGRAMS_H_
#define FARKV_BENCH_ACCURACY_PROGRAMS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "bench/accuracy_rows.h"
#include "bench/accuracy_task.h"
#include "common/layout/kv_geometry.h"

namespace farkv::bench {

struct EncodedProgram {
  std::vector<int32_t> tokens;  // by position
  size_t prompt_size = 0;
  std::vector<bool> generated;  // by position; the others are forced
  std::vector<Lookup> lookups;
  size_t num_answers = 0;  // the last lookups, which the program is about
};

// What a policy loses cannot be told from what the model never knew.
struct Gate {
  double answers = 0;  // right ones
  double lookups = 0;  // that find what the trace says (ALGORITHMS 14.4)
};

struct ProgramSet {
  std::string model;  // path
  KvGeometry geometry;
  std::vector<EncodedProgram> programs;
  PolicySizes sizes;
  // What counts is how likely the forced tokens are; nothing is asked.
  bool by_likelihood = false;
  // Shares with the full cache below which no other row is run; 0: none.
  Gate gate;
};

struct ProgramSource {
  std::string models;  // folder that holds reasoner/ and ledger/
  std::string language_model;
  std::string text;  // file
  int num_programs = 200;
  uint64_t seed = 1;
};

// The draws of a task depend on its name, not on its place in a list.
ProgramDraws DrawsOf(absl::string_view task, uint64_t seed, int program);

// The names of MakeAccuracyTask and MakeTextPrograms; INVALID_ARGUMENT for any
// other, NOT_FOUND saying what to do when the model or the text is not there.
absl::StatusOr<ProgramSet> MakePrograms(const std::string& task,
                                        const ProgramSource& source);

}  // namespace farkv::bench

#endif  // FARKV_BENCH_ACCURACY_PROGRAMS_H_
