#include "gpu_worker/tokenizer/pre_tokenizers.h"

#include <vector>

#include "absl/strings/str_cat.h"

namespace farkv {
namespace {

using Step = PreTokenizerStep;

// Contractions in any case, words with at most one other character in front,
// numbers of up to three digits, signs, line ends, white space.
constexpr char kLlama3Regex[] =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)"
    R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
// The same with single digits.
constexpr char kQwen2Regex[] =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|)"
    R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
// DeepSeek-V3 and R1: numbers, then Chinese and Japanese, then the rest.
constexpr char kDeepSeekNumbers[] = R"(\p{N}{1,3})";
constexpr char kDeepSeekHan[] =
    R"([\x{4e00}-\x{9fa5}\x{3040}-\x{309f}\x{30a0}-\x{30ff}]+)";
constexpr char kDeepSeekRest[] =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|)"
    R"([^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|)"
    R"(\s*[\r\n]+|\s+(?!\S)|\s+)";

Step Split(const char* regex) {
  Step step;
  step.regex = regex;
  return step;
}

Step ByteLevel(bool use_gpt2_regex) {
  Step step;
  step.kind = Step::Kind::kByteLevel;
  step.use_gpt2_regex = use_gpt2_regex;
  return step;
}

Step Digits() {
  Step step;
  step.kind = Step::Kind::kDigits;
  step.individual = true;
  return step;
}

}  // namespace

const char kKnownPreTokenizers[] =
    "gpt-2, smollm, llama-bpe, qwen2, deepseek-r1-qwen and deepseek-v3";
const char kMetaspace[] = "\xe2\x96\x81";
const char kGpt2Regex[] =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|)"
    R"(\s+(?!\S)|\s+)";

absl::Status SetPreTokenizer(absl::string_view name, TokenizerSpec& spec) {
  if (name == "gpt-2" || name == "gpt2") {
    spec.pre_tokenizer = {ByteLevel(true)};
  } else if (name == "smollm") {
    spec.pre_tokenizer = {Digits(), ByteLevel(true)};
  } else if (name == "llama-bpe" || name == "llama3" || name == "llama-v3") {
    spec.pre_tokenizer = {Split(kLlama3Regex), ByteLevel(false)};
    spec.ignore_merges = true;
  } else if (name == "qwen2" || name == "deepseek-r1-qwen") {
    spec.normalizer = {NormalizerStep{}};
    spec.pre_tokenizer = {Split(kQwen2Regex), ByteLevel(false)};
  } else if (name == "deepseek-v3") {
    spec.pre_tokenizer = {Split(kDeepSeekNumbers), Split(kDeepSeekHan),
                          Split(kDeepSeekRest), ByteLevel(false)};
  } else {
    return absl::UnimplementedError(
        absl::StrCat("the pre-tokenizer is \"", std::string(name),
                     "\"; known are ", kKnownPreTokenizers));
  }
  return absl::OkStatus();
}

void SetSentencePiece(bool add_space_prefix, TokenizerSpec& spec) {
  spec.normalizer.clear();
  NormalizerStep step;
  if (add_space_prefix) {
    step.kind = NormalizerStep::Kind::kPrepend;
    step.content = kMetaspace;
    spec.normalizer.push_back(step);
  }
  step.kind = NormalizerStep::Kind::kReplace;
  step.pattern.assign(1, ' ');  // gcc 12 warns of = " " for nothing
  step.content = kMetaspace;
  spec.normalizer.push_back(step);
  spec.pre_tokenizer.clear();
  spec.byte_fallback = true;
  spec.fuse_unknown = true;
  spec.metaspace = true;
  spec.strip_first_space = add_space_prefix;
}

}  // namespace farkv
