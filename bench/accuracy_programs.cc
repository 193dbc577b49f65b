#include "bench/accuracy_programs.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "bench/accuracy_text.h"
#include "common/base/random.h"
#include "common/base/status_macros.h"
#include "gpu_worker/model/model_files.h"

namespace farkv::bench {
namespace {

// The second one gives the first for a chain of 48 lookups.
constexpr Gate kGate = {.answers = 0.95, .lookups = 0.999};

absl::StatusOr<EncodedProgram> Encode(const Tokenizer& tokenizer, int32_t begin,
                                      const Program& program) {
  FARKV_ASSIGN_OR_RETURN(const auto ids, tokenizer.Encode(program.text));
  if (ids.size() != program.text.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the model's tokenizer makes ", ids.size(), " tokens of the ",
        program.text.size(), " characters of \"", program.text,
        "\"; the task needs one each"));
  }
  EncodedProgram encoded;
  encoded.tokens.push_back(begin);
  encoded.tokens.insert(encoded.tokens.end(), ids.begin(), ids.end());
  encoded.prompt_size = program.prompt_size + 1;
  encoded.generated.push_back(false);
  encoded.generated.insert(encoded.generated.end(), program.generated.begin(),
                           program.generated.end());
  encoded.lookups = program.lookups;
  encoded.num_answers = program.num_answers;
  return encoded;
}

}  // namespace

ProgramDraws DrawsOf(absl::string_view task, uint64_t seed, int program) {
  uint64_t stream = 0;
  for (const char c : task) {
    stream = CounterDraw(stream, {static_cast<uint64_t>(c)});
  }
  return ProgramDraws(seed, stream, static_cast<uint64_t>(program));
}

absl::StatusOr<ProgramSet> MakePrograms(const std::string& task,
                                        const ProgramSource& source) {
  if (IsTextTask(task)) return MakeTextPrograms(task, source);
  FARKV_ASSIGN_OR_RETURN(const auto writer, MakeAccuracyTask(task));
  ProgramSet set;
  set.model = absl::StrCat(source.models, "/", writer->model());
  set.sizes = kChainSizes;
  set.gate = kGate;
  FARKV_ASSIGN_OR_RETURN(const ModelFiles files, ModelFiles::Open(set.model));
  FARKV_ASSIGN_OR_RETURN(const ModelConfig config, files.ReadConfig());
  FARKV_ASSIGN_OR_RETURN(const Tokenizer tokenizer, files.ReadTokenizer());
  set.geometry = config.Geometry(DType::kBf16);
  for (int i = 0; i < source.num_programs; ++i) {
    FARKV_ASSIGN_OR_RETURN(auto program,
                           Encode(tokenizer, config.bos_token,
                                  writer->Make(DrawsOf(task, source.seed, i))));
    set.programs.push_back(std::move(program));
  }
  return set;
}

}  // namespace farkv::bench
