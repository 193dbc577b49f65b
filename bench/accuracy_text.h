// Tasks of a real language model: how likely it finds a text, and whether it
// recalls a fact that was stated once. Pure but for the files that are read.
#ifndef FARKV_BENCH_ACCURACY_TEXT_H_
#define FARKV_BENCH_ACCURACY_TEXT_H_

#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "bench/accuracy_programs.h"
#include "gpu_worker/tokenizer/tokenizer.h"

namespace farkv::bench {

// Tokens of a window of the text, of which the first ones are its prompt.
inline constexpr size_t kTextWindow = 1024, kTextPrompt = 64;
// Between the statement of a fact and the question; of one event each.
inline constexpr int kFactEventTokens = 64;

bool IsTextTask(absl::string_view task);

// "text": the whole windows of the text, forced token by token. "fact-E": the
// code of something is stated behind the prompt, then comes the text, from a
// place that each program draws, for E events; then the code is asked for. E
// is 1 to 30. NOT_FOUND naming scripts/fetch_model.sh for a missing model.
absl::StatusOr<ProgramSet> MakeTextPrograms(const std::string& task,
                                            const ProgramSource& source);

// Of one "fact-E"; `text` must have more tokens than lie between.
absl::StatusOr<EncodedProgram> MakeTextFact(const Tokenizer& tokenizer,
                                            std::span<const int32_t> text,
                                            int num_events, ProgramDraws draws);

}  // namespace farkv::bench

#endif  // FARKV_BENCH_ACCURACY_TEXT_H_
