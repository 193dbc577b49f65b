// The tokenizers of real models, where scripts/fetch_tokenizers.py has put
// them, against Hugging Face tokenizers on the 1,000 texts of
// tests/golden/tokenizers: every id by the sums that generate_real.py made.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "common/base/crc32c.h"
#include "gpu_worker/checkpoint/gguf_file.h"
#include "gpu_worker/model/gguf_tokenizer.h"
#include "gpu_worker/tokenizer/tokenizer.h"
#include "tests/unit/gpu_worker_tokenizer/reference_ids.h"

namespace farkv {
namespace {

// What the reference makes of a text; sums are CRC32C.
struct TextSums {
  size_t num_ids = 0;
  uint32_t ids = 0;
  uint32_t decoded = 0;

  bool operator==(const TextSums&) const = default;
};

void PrintTo(const TextSums& sums, std::ostream* out) {
  *out << sums.num_ids << " ids";
}

std::vector<TextSums> ReferenceSums(const std::string& name) {
  std::ifstream file(ReferencePath("real/" + name + ".sums"), std::ios::binary);
  const auto number = [&file] {
    uint32_t value = 0;
    for (int shift = 0; shift < 32; shift += 8) {
      value |= static_cast<uint32_t>(file.get()) << shift;
    }
    return value;
  };
  std::vector<TextSums> all;
  while (file.peek() != EOF) {
    TextSums& sums = all.emplace_back();
    for (int shift = 0, byte = 128; byte >= 128; shift += 7) {
      byte = file.get();
      sums.num_ids |= static_cast<size_t>(byte & 127) << shift;
    }
    sums.ids = number();
    sums.decoded = number();
  }
  return all;
}

TextSums SumsOf(const std::vector<int32_t>& ids, const std::string& decoded) {
  return {ids.size(), Crc32c(std::as_bytes(std::span(ids))),
          Crc32c(std::as_bytes(std::span(decoded)))};
}

absl::StatusOr<Tokenizer> LoadGguf(const std::string& path) {
  const auto file = GgufFile::Open(path);
  if (!file.ok()) return file.status();
  auto spec = ReadGgufTokenizer(**file);
  if (!spec.ok()) return spec.status();
  return Tokenizer::Create(*std::move(spec));
}

struct RealTokenizer {
  const char* name;
  const char* file;
  size_t round_trips;  // texts that decode to themselves
  // DeepSeek's first models have added tokens such as "\u00fc", which the
  // reference decodes as a byte of that number: its texts are not ours then.
  bool latin_added = false;
};

void PrintTo(const RealTokenizer& real, std::ostream* out) {
  *out << real.name;
}

class RealTokenizersTest : public ::testing::TestWithParam<RealTokenizer> {
 protected:
  // Skips where nothing was fetched; where $FARKV_TOKENIZERS names the folder,
  // or it is there without the file, the test fails.
  void SetUp() override {
    const char* named = std::getenv("FARKV_TOKENIZERS");
    const std::string folder = named != nullptr
                                   ? named
                                   : std::getenv("FARKV_TEST_SOURCE_DIR") +
                                         std::string("/models/tokenizers");
    path_ = folder + "/" + GetParam().name + "/" + GetParam().file;
    if (named == nullptr && !std::filesystem::exists(folder)) {
      GTEST_SKIP() << folder << " is not there; scripts/fetch_tokenizers.py "
                   << "fetches it";
    }
    ASSERT_TRUE(std::filesystem::exists(path_))
        << path_ << " is not there; scripts/fetch_tokenizers.py fetches it";
  }

  std::string path_;
};

TEST_P(RealTokenizersTest, EveryIdAndEveryDecodedTextIsTheReferences) {
  const auto tokenizer =
      path_.ends_with(".gguf") ? LoadGguf(path_) : Tokenizer::Load(path_);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const auto texts = ReferenceTexts();
  const auto sums = ReferenceSums(GetParam().name);
  ASSERT_EQ(texts.size(), 1000u);
  ASSERT_EQ(sums.size(), texts.size());
  // SentencePiece takes no special token from a text.
  const bool sentencepiece = tokenizer->strip_first_space();
  const auto special =
      sentencepiece ? SpecialText::kLiteral : SpecialText::kParsed;
  size_t round_trips = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto ids = tokenizer->Encode(texts[i], special);
    ASSERT_TRUE(ids.ok()) << ids.status() << " in text " << i;
    const std::string decoded = tokenizer->DecodeText(*ids);
    TextSums made = SumsOf(*ids, decoded);
    if (GetParam().latin_added) made.decoded = sums[i].decoded;
    EXPECT_EQ(made, sums[i]) << "text " << i << ": " << texts[i]
                             << "\nids: " << ::testing::PrintToString(*ids)
                             << "\ndecoded: " << decoded;
    round_trips += decoded == texts[i];
  }
  // The others have special tokens, which no text shows, or characters that
  // the normaliser writes in another way.
  EXPECT_EQ(round_trips, GetParam().round_trips);
}

INSTANTIATE_TEST_SUITE_P(
    All, RealTokenizersTest,
    ::testing::Values(
        RealTokenizer{"gpt2", "tokenizer.json", 988},
        RealTokenizer{"gpt2-gguf", "vocabulary.gguf", 988},
        RealTokenizer{"llama-2", "vocabulary.gguf", 986},
        RealTokenizer{"llama-3", "vocabulary.gguf", 1000},
        RealTokenizer{"llama-3.2", "tokenizer.json", 1000},
        RealTokenizer{"qwen-2", "vocabulary.gguf", 920},
        RealTokenizer{"qwen-2.5", "tokenizer.json", 920},
        RealTokenizer{"qwen-3", "tokenizer.json", 920},
        RealTokenizer{"deepseek-coder", "tokenizer.json", 1000, true},
        RealTokenizer{"deepseek-llm", "tokenizer.json", 1000, true},
        RealTokenizer{"deepseek-v3", "tokenizer.json", 1000},
        RealTokenizer{"deepseek-r1", "tokenizer.json", 1000},
        RealTokenizer{"r1-distill-llama", "tokenizer.json", 1000},
        RealTokenizer{"r1-distill-qwen", "tokenizer.json", 946},
        RealTokenizer{"mistral-v1", "tokenizer.model", 986},
        RealTokenizer{"mistral-v3", "tokenizer.model", 986}),
    [](const auto& test) {
      std::string name = test.param.name;
      std::erase_if(name, [](char c) { return c == '-' || c == '.'; });
      return name;
    });

}  // namespace
}  // namespace farkv
