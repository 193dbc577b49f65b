#include "gpu_worker/checkpoint/gguf_tensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/testing/gguf_writer.h"

namespace farkv {
namespace {

using ::farkv::testing::GgufWriter;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kQuery[] = "model.layers.0.self_attn.q_proj.weight";
constexpr char kKey[] = "model.layers.0.self_attn.k_proj.weight";

struct StoredType {
  uint32_t number;
  TensorType type;
};
constexpr StoredType kTypes[] = {
    {0, TensorType::kF32},   {1, TensorType::kF16},   {30, TensorType::kBf16},
    {8, TensorType::kQ8_0},  {2, TensorType::kQ4_0},  {3, TensorType::kQ4_1},
    {12, TensorType::kQ4_K}, {14, TensorType::kQ6_K},
};

// Holds the bytes; what they are the tensors of outlives a test's use.
class GgufTensorsTest : public ::testing::Test {
 protected:
  GgufTensorsTest() { Describe("llama", 4, 2); }

  void Describe(const std::string& architecture, uint32_t heads,
                uint32_t kv_heads) {
    writer_ = GgufWriter();
    writer_.Add("general.architecture", architecture);
    writer_.Add(architecture + ".attention.head_count", heads);
    writer_.Add(architecture + ".attention.head_count_kv", kv_heads);
  }

  absl::StatusOr<std::unique_ptr<GgufTensors>> Source() {
    bytes_ = writer_.Bytes();
    auto file = GgufFile::Parse(std::as_bytes(std::span(bytes_)), "x.gguf");
    if (!file.ok()) return file.status();
    return GgufTensors::Create(*std::move(file));
  }

  // Rows of `row_bytes`, each filled with its number in the file.
  static std::string NumberedRows(size_t rows, size_t row_bytes) {
    std::string bytes;
    for (size_t row = 0; row < rows; ++row) {
      bytes += std::string(row_bytes, static_cast<char>(row));
    }
    return bytes;
  }

  // The number in every byte of each row; -1 for a row that is torn.
  static std::vector<int> RowNumbers(const TensorView& view) {
    const auto rows = static_cast<size_t>(view.shape[0]);
    const size_t row_bytes = view.bytes.size() / rows;
    std::vector<int> numbers;
    for (size_t row = 0; row < rows; ++row) {
      const auto bytes = view.bytes.subspan(row * row_bytes, row_bytes);
      const bool torn = std::any_of(bytes.begin(), bytes.end(),
                                    [&](std::byte b) { return b != bytes[0]; });
      numbers.push_back(torn ? -1 : static_cast<int>(bytes[0]));
    }
    return numbers;
  }

  GgufWriter writer_;
  std::string bytes_;
};

TEST_F(GgufTensorsTest, NamesAreThoseOfHuggingFace) {
  EXPECT_EQ(GgufTensorName("model.embed_tokens.weight"), "token_embd.weight");
  EXPECT_EQ(GgufTensorName("model.norm.weight"), "output_norm.weight");
  EXPECT_EQ(GgufTensorName("lm_head.weight"), "output.weight");
  EXPECT_EQ(GgufTensorName("rope_freqs.weight"), "rope_freqs.weight");
  EXPECT_EQ(GgufTensorName(kQuery), "blk.0.attn_q.weight");
  EXPECT_EQ(GgufTensorName("model.layers.17.self_attn.k_proj.bias"),
            "blk.17.attn_k.bias");
  EXPECT_EQ(GgufTensorName("model.layers.3.self_attn.v_proj.weight"),
            "blk.3.attn_v.weight");
  EXPECT_EQ(GgufTensorName("model.layers.3.self_attn.o_proj.weight"),
            "blk.3.attn_output.weight");
  EXPECT_EQ(GgufTensorName("model.layers.3.self_attn.q_norm.weight"),
            "blk.3.attn_q_norm.weight");
  EXPECT_EQ(GgufTensorName("model.layers.3.self_attn.k_norm.weight"),
            "blk.3.attn_k_norm.weight");
  EXPECT_EQ(GgufTensorName("model.layers.3.input_layernorm.weight"),
            "blk.3.attn_norm.weight");
  EXPECT_EQ(GgufTensorName("model.layers.3.post_attention_layernorm.weight"),
            "blk.3.ffn_norm.weight");
  EXPECT_EQ(GgufTensorName("model.layers.3.mlp.gate_proj.weight"),
            "blk.3.ffn_gate.weight");
  EXPECT_EQ(GgufTensorName("model.layers.3.mlp.up_proj.weight"),
            "blk.3.ffn_up.weight");
  EXPECT_EQ(GgufTensorName("model.layers.3.mlp.down_proj.weight"),
            "blk.3.ffn_down.weight");
}

TEST_F(GgufTensorsTest, NamesWithoutAPlaceInGgufAreUnknown) {
  for (const char* name :
       {"", "token_embd.weight", "model.layers.0.self_attn.q_proj",
        "model.layers..self_attn.q_proj.weight",
        "model.layers.01.self_attn.q_proj.weight",
        "model.layers.-1.self_attn.q_proj.weight",
        "model.layers.99999999999.self_attn.q_proj.weight", "model.layers.3"}) {
    EXPECT_FALSE(GgufTensorName(name).has_value()) << name;
  }
}

TEST_F(GgufTensorsTest, EveryTypeIsMappedNotCopied) {
  for (const StoredType& stored : kTypes) {
    Describe("llama", 4, 2);
    const auto bytes = *TensorBytes(stored.type, {3, 512});
    writer_.AddTensor("output.weight", {3, 512}, stored.number,
                      NumberedRows(3, bytes / 3));
    const auto source = Source();
    ASSERT_TRUE(source.ok()) << source.status();

    const auto view = (*source)->Find("lm_head.weight", {3, 512});
    ASSERT_TRUE(view.ok()) << view.status();
    EXPECT_EQ(view->type, stored.type) << TensorTypeName(stored.type);
    EXPECT_EQ(view->bytes.size(), bytes);
    EXPECT_EQ(view->owner, nullptr);
    EXPECT_EQ(RowNumbers(*view), (std::vector<int>{0, 1, 2}));
  }
}

TEST_F(GgufTensorsTest, LlamaRowsOfQueryAndKeyGoBackToHalvesInEveryType) {
  for (const StoredType& stored : kTypes) {
    Describe("llama", 4, 2);
    const size_t row = *TensorBytes(stored.type, {1, 512});
    writer_.AddTensor("blk.0.attn_q.weight", {16, 512}, stored.number,
                      NumberedRows(16, row));
    writer_.AddTensor("blk.0.attn_k.weight", {8, 512}, stored.number,
                      NumberedRows(8, row));
    const auto source = Source();
    ASSERT_TRUE(source.ok()) << source.status();

    const auto query = (*source)->Find(kQuery, {16, 512});
    const auto key = (*source)->Find(kKey, {8, 512});
    ASSERT_TRUE(query.ok()) << query.status();
    ASSERT_TRUE(key.ok()) << key.status();
    EXPECT_EQ(RowNumbers(*query), (std::vector<int>{0, 2, 1, 3, 4, 6, 5, 7, 8,
                                                    10, 9, 11, 12, 14, 13, 15}))
        << TensorTypeName(stored.type);
    EXPECT_EQ(RowNumbers(*key), (std::vector<int>{0, 2, 1, 3, 4, 6, 5, 7}))
        << TensorTypeName(stored.type);
  }
}

// What the converter does, on a head of six rows: row (half, pair) of Hugging
// Face is stored at (pair, half).
TEST_F(GgufTensorsTest, RowsComeBackToWhereTheConverterTookThemFrom) {
  Describe("llama", 1, 1);
  std::string stored(6 * 4, '\0');
  for (size_t half = 0; half < 2; ++half) {
    for (size_t pair = 0; pair < 3; ++pair) {
      const std::string row(4, static_cast<char>(half * 3 + pair));
      stored.replace((pair * 2 + half) * 4, 4, row);
    }
  }
  writer_.AddTensor("blk.0.attn_q.weight", {6, 1}, 0, stored);
  writer_.AddTensor("blk.0.attn_q.bias", {6}, 0, stored);
  const auto source = Source();
  ASSERT_TRUE(source.ok()) << source.status();

  const auto weight = (*source)->Find(kQuery, {6, 1});
  const auto bias =
      (*source)->Find("model.layers.0.self_attn.q_proj.bias", {6});
  ASSERT_TRUE(weight.ok()) << weight.status();
  ASSERT_TRUE(bias.ok()) << bias.status();
  EXPECT_EQ(RowNumbers(*weight), (std::vector<int>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(RowNumbers(*bias), (std::vector<int>{0, 1, 2, 3, 4, 5}));
}

TEST_F(GgufTensorsTest, MovedRowsOutliveTheSource) {
  writer_.AddTensor("blk.0.attn_q.weight", {16, 1}, 0, NumberedRows(16, 4));
  auto source = Source();
  ASSERT_TRUE(source.ok()) << source.status();

  const auto view = (*source)->Find(kQuery, {16, 1});
  source->reset();

  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_EQ(RowNumbers(*view)[1], 2);
}

TEST_F(GgufTensorsTest, OtherArchitecturesAndTensorsKeepTheirRows) {
  writer_.AddTensor("blk.0.attn_v.weight", {8, 1}, 0, NumberedRows(8, 4));
  const auto llama = Source();
  ASSERT_TRUE(llama.ok()) << llama.status();
  const auto value =
      (*llama)->Find("model.layers.0.self_attn.v_proj.weight", {8, 1});
  ASSERT_TRUE(value.ok()) << value.status();
  EXPECT_EQ(RowNumbers(*value), (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}));

  Describe("qwen2", 4, 2);
  writer_.AddTensor("blk.0.attn_k.weight", {8, 1}, 0, NumberedRows(8, 4));
  const auto qwen = Source();
  ASSERT_TRUE(qwen.ok()) << qwen.status();
  const auto key = (*qwen)->Find(kKey, {8, 1});
  ASSERT_TRUE(key.ok()) << key.status();
  EXPECT_EQ(RowNumbers(*key), (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST_F(GgufTensorsTest, AbsentTensorsOtherShapesAndUnknownTypesAreNamed) {
  writer_.AddTensor("output.weight", {2, 3}, 0, std::string(24, 'x'));
  writer_.AddTensor("token_embd.weight", {2, 32}, 6, std::string(44, 'x'));
  const auto source = Source();
  ASSERT_TRUE(source.ok()) << source.status();

  const std::string embedding = "model.embed_tokens.weight";
  EXPECT_EQ((*source)->FindUnused({"lm_head.weight", embedding}), std::nullopt);
  EXPECT_EQ((*source)->FindUnused({"lm_head.weight", "token_embd.weight"}),
            "token_embd.weight");
  EXPECT_EQ((*source)->FindUnused({"output.weight", embedding}),
            "output.weight");
  EXPECT_EQ((*source)->Find("model.norm.weight", {3}).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ((*source)->Find("anything", {3}).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_THAT(
      std::string((*source)->Find("lm_head.weight", {3, 2}).status().message()),
      AllOf(HasSubstr("output.weight"), HasSubstr("[2, 3]"),
            HasSubstr("[3, 2]")));
  const absl::Status unknown =
      (*source)->Find("model.embed_tokens.weight", {2, 32}).status();
  EXPECT_EQ(unknown.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(unknown.message()),
              AllOf(HasSubstr("token_embd.weight"), HasSubstr("Q5_0 (6)")));
}

TEST_F(GgufTensorsTest, RowsThatAreNotThoseOfTheHeadsAreRefused) {
  writer_.AddTensor("blk.0.attn_q.weight", {12, 1}, 0, std::string(48, 'x'));
  writer_.AddTensor("blk.0.attn_k.weight", {1, 1}, 0, std::string(4, 'x'));
  writer_.AddTensor("blk.0.attn_k.bias", {32}, 8, std::string(34, 'x'));
  const auto source = Source();
  ASSERT_TRUE(source.ok()) << source.status();

  EXPECT_THAT(std::string((*source)->Find(kQuery, {12, 1}).status().message()),
              AllOf(HasSubstr("attn_q"), HasSubstr("4 heads")));
  EXPECT_FALSE((*source)->Find(kKey, {1, 1}).ok());
  EXPECT_FALSE(
      (*source)->Find("model.layers.0.self_attn.k_proj.bias", {32}).ok());
}

TEST_F(GgufTensorsTest, AFileWithoutArchitectureOrHeadsIsRefused) {
  writer_ = GgufWriter();
  EXPECT_THAT(std::string(Source().status().message()),
              HasSubstr("general.architecture"));
  writer_.Add("general.architecture", "llama");
  EXPECT_THAT(std::string(Source().status().message()),
              HasSubstr("llama.attention.head_count"));
  for (const uint32_t heads : {0u, 0x80000000u}) {
    Describe("llama", heads, 1);
    EXPECT_THAT(std::string(Source().status().message()),
                HasSubstr(absl::StrCat("head_count is ", heads)));
  }
}

TEST_F(GgufTensorsTest, OnePartOfASplitModelIsRefused) {
  writer_.Add("split.count", uint16_t{3});

  const absl::Status status = Source().status();

  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()), HasSubstr("one of 3 files"));
}

}  // namespace
}  // namespace farkv
