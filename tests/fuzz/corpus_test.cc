// Which seeds of the model files' corpora are well-formed; every other one must
// get an error that says what is wrong.
#include <gmock/gmock.h>
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
#include "gpu_worker/model/model_config.h"
#include "gpu_worker/tokenizer/sentencepiece_model.h"
#include "gpu_worker/tokenizer/tokenizer.h"
#include "gpu_worker/tokenizer/tokenizer_files.h"
#include "gpu_worker/tokenizer/tokenizer_json.h"
#include "kernels/stream.h"
#include "tests/fuzz/model_input.h"

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

// `head`, a value nested `levels` deep and `tail`.
std::string Nested(const std::string& head, bool objects, int levels,
                   const std::string& tail) {
  std::string text = head;
  for (int i = 0; i < levels; ++i) text += objects ? "{\"a\":" : "[";
  text += "0";
  for (int i = 0; i < levels; ++i) text += objects ? "}" : "]";
  return text + tail;
}

// Expects an error where `head` opens a value, as deep as no stack is: whoever
// descends into it, copies it or prints it does not return.
void ExpectDepthIsRefused(const std::string& head, const std::string& tail,
                          const Opener& open) {
  for (const bool objects : {false, true}) {
    const absl::Status status = open(Nested(head, objects, 200000, tail));
    EXPECT_THAT(std::string(status.message()),
                ::testing::HasSubstr("nested deeper than"))
        << head;
  }
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
  ExpectAccepted("config_json",
                 {"llama", "llama3", "mistral", "qwen2_yarn", "qwen3"},
                 [](const std::string& text) {
                   return ModelConfig::Parse(text).status();
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

// Each seed that is malformed differs from one that loads in one thing.
TEST(CorpusTest, AModelThatDoesNotFitItsConfigGetsAnError) {
  ThreadPool pool(1);
  const auto device = OpenDevice("cpu", pool).value();
  ExpectAccepted("model_weights",
                 {"folder_bf16", "folder_f16_tied", "llama_f16", "llama_q4_0",
                  "qwen3_tied"},
                 [&device](const std::string& text) {
                   const auto input = testing::OpenModelInput(Bytes(text));
                   if (!input.ok()) return input.status();
                   return ModelWeights::Load(*input->tensors, input->config,
                                             *device)
                       .status();
                 });
}

TEST(CorpusTest, DeeplyNestedJsonIsRefusedWhereverItStands) {
  const Opener config = [](const std::string& text) {
    return ModelConfig::Parse(text).status();
  };
  const std::string llama = R"({"architectures":["LlamaForCausalLM"],)";
  for (const char* field :
       {"quantization_config", "model_type", "hidden_act", "layer_types",
        "partial_rotary_factor", "hidden_size", "rope_scaling", "eos_token_id",
        "of_no_meaning"}) {
    ExpectDepthIsRefused(llama + "\"" + field + "\":", "}", config);
  }
  ExpectDepthIsRefused("", "", config);
  const Opener tokenizer = [](const std::string& text) {
    return OpenTokenizer(ParseTokenizerJson(text));
  };
  const std::string model = R"({"model":{"vocab":{"a":0},"merges":[]},)";
  ExpectDepthIsRefused(model + R"("post_processor":)", "}", tokenizer);
  ExpectDepthIsRefused(model + R"("post_processor":{"processors":)", "}}",
                       tokenizer);
  ExpectDepthIsRefused(
      model + R"("decoder":{"type":"Strip","start":1,"content":)", "}}",
      tokenizer);
  ExpectDepthIsRefused(R"({"chat_template":)", "}",
                       [](const std::string& text) {
                         TokenizerSpec spec;
                         return ParseTokenizerConfig(text, spec);
                       });
  ExpectDepthIsRefused(R"({"metadata":)", "}", [](const std::string& text) {
    return ParseSafetensorsIndex(Bytes(text)).status();
  });
}

TEST(CorpusTest, NestingWithinTheBoundIsRead) {
  const std::string head =
      R"({"model":{"vocab":{"a":0},"merges":[]},"escaped":"\"[[","other":)";
  const auto read = [&](int levels) {
    return ParseTokenizerJson(Nested(head, false, levels, "}")).status();
  };

  EXPECT_TRUE(read(63).ok()) << read(63);
  EXPECT_FALSE(read(64).ok());
}

}  // namespace
}  // namespace farkv
