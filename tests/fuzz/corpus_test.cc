// Which seeds of the model files' corpora are well-formed; every other one must
// get an error that says what is wrong.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <span>
#include <string>

#include "gpu_worker/checkpoint/gguf_tensors.h"
#include "gpu_worker/checkpoint/safetensors.h"
#include "gpu_worker/checkpoint/safetensors_shards.h"
#include "gpu_worker/model/gguf_config.h"
#include "gpu_worker/model/gguf_tokenizer.h"
#include "gpu_worker/tokenizer/sentencepiece_model.h"
#include "gpu_worker/tokenizer/tokenizer.h"
#include "gpu_worker/tokenizer/tokenizer_json.h"

namespace farkv {
namespace {

using Opener = std::function<absl::Status(const std::string&)>;

std::span<const std::byte> Bytes(const std::string& text) {
  return std::as_bytes(std::span(text));
}

// The verdicts of `open` by the names of the seeds of a corpus.
std::map<std::string, absl::Status> Verdicts(const std::string& corpus,
                                             const Opener& open) {
  const char* root = std::getenv("FARKV_TEST_SOURCE_DIR");
  const auto folder = std::filesystem::path(root == nullptr ? "." : root) /
                      "tests/fuzz/corpus" / corpus;
  std::map<std::string, absl::Status> verdicts;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file),
                           std::istreambuf_iterator<char>()};
    verdicts[entry.path().filename().string()] = open(text);
  }
  return verdicts;
}

void ExpectAccepted(const std::string& corpus,
                    const std::set<std::string>& well_formed,
                    const Opener& open) {
  size_t accepted = 0;
  for (const auto& [seed, status] : Verdicts(corpus, open)) {
    const bool expected = well_formed.contains(seed);
    EXPECT_EQ(status.ok(), expected) << corpus << "/" << seed << ": " << status;
    EXPECT_NE(status.message().empty(), !status.ok()) << seed;
    accepted += expected;
  }
  EXPECT_EQ(accepted, well_formed.size()) << corpus;
}

absl::Status OpenTokenizer(absl::StatusOr<TokenizerSpec> spec) {
  if (!spec.ok()) return spec.status();
  return Tokenizer::Create(*std::move(spec)).status();
}

absl::Status OpenGguf(const std::string& text) {
  return GgufFile::Parse(Bytes(text), "seed").status();
}

absl::Status OpenGgufModel(const std::string& text) {
  const auto file = GgufFile::Parse(Bytes(text), "seed");
  if (!file.ok()) return file.status();
  const absl::Status config = ReadGgufConfig(**file).status();
  return config.ok() ? OpenTokenizer(ReadGgufTokenizer(**file)) : config;
}

TEST(CorpusTest, EveryMalformedModelFileGetsAnError) {
  ExpectAccepted("gguf",
                 {"aligned_128", "llama_f32_f16", "quantised_256",
                  "quantised_32", "scalars", "unknown_type", "version_2"},
                 OpenGguf);
  ExpectAccepted("gguf_model",
                 {"llama_bpe", "llama_spm", "qwen2_yarn", "qwen3_divisors"},
                 OpenGgufModel);
  ExpectAccepted("safetensors", {"empty", "scalar", "three_types"},
                 [](const std::string& text) {
                   return SafetensorsFile::Parse(Bytes(text), "seed").status();
                 });
  ExpectAccepted("safetensors_index", {"two_shards"},
                 [](const std::string& text) {
                   return ParseSafetensorsIndex(Bytes(text)).status();
                 });
  // What "growing" and "pattern_slow" ask for is refused with each text.
  ExpectAccepted("tokenizer_json",
                 {"byte_level", "characters", "growing", "pattern_slow",
                  "sentencepiece", "special_normalized", "split", "unigram"},
                 [](const std::string& text) {
                   return OpenTokenizer(ParseTokenizerJson(text));
                 });
  ExpectAccepted("sentencepiece_model", {"bpe_bytes", "unigram"},
                 [](const std::string& text) {
                   return OpenTokenizer(ParseSentencePieceModel(text));
                 });
}

}  // namespace
}  // namespace farkv
