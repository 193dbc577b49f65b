// The tokenizers of tests/golden/tokenizers as a converter puts them into GGUF
// files: pieces, their kinds, merges or scores, and the pre-tokenizer's name.
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "gpu_worker/model/gguf_tokenizer.h"
#include "gpu_worker/tokenizer/tokenizer.h"
#include "gpu_worker/tokenizer/tokenizer_files.h"
#include "tests/testing/gguf_writer.h"
#include "tests/unit/gpu_worker_tokenizer/reference_ids.h"

namespace farkv {
namespace {

using ::farkv::testing::GgufWriter;

constexpr int32_t kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4,
                  kByte = 6;

int32_t GgufKind(PieceKind kind) {
  switch (kind) {
    case PieceKind::kUnknown:
      return kUnknown;
    case PieceKind::kControl:
      return kControl;
    case PieceKind::kUserDefined:
      return kUserDefined;
    case PieceKind::kByte:
      return kByte;
    case PieceKind::kNormal:
    case PieceKind::kUnused:
      return kNormal;
  }
  return kNormal;
}

// What both kinds of models have: pieces and kinds, added tokens among them.
void AddPieces(const TokenizerSpec& spec, GgufWriter& writer) {
  std::vector<std::string> pieces = spec.pieces;
  std::vector<int32_t> kinds;
  for (const PieceKind kind : spec.kinds) kinds.push_back(GgufKind(kind));
  kinds.resize(pieces.size(), kNormal);
  for (const AddedToken& token : spec.added_tokens) {
    const auto id = static_cast<size_t>(token.id);
    pieces.resize(std::max(pieces.size(), id + 1));
    kinds.resize(pieces.size(), kNormal);
    pieces[id] = token.content;
    kinds[id] = token.special ? kControl : kUserDefined;
  }
  writer.AddArray<std::string>("tokenizer.ggml.tokens", pieces);
  writer.AddArray<int32_t>("tokenizer.ggml.token_type", kinds);
}

Tokenizer FromGguf(const GgufWriter& writer) {
  const std::string bytes = writer.Bytes();
  const auto file = GgufFile::Parse(std::as_bytes(std::span(bytes)), "x.gguf");
  EXPECT_TRUE(file.ok()) << file.status();
  auto spec = ReadGgufTokenizer(**file);
  EXPECT_TRUE(spec.ok()) << spec.status();
  auto tokenizer = Tokenizer::Create(*std::move(spec));
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return *tokenizer;
}

// The texts that hold no token of a kind that GGUF cannot say: such ones are
// looked for in another way there.
std::vector<size_t> ComparableTexts(const TokenizerSpec& spec,
                                    const std::vector<std::string>& texts) {
  std::vector<size_t> comparable;
  for (size_t i = 0; i < texts.size(); ++i) {
    const bool odd = std::any_of(
        spec.added_tokens.begin(), spec.added_tokens.end(),
        [&](const AddedToken& token) {
          return (token.lstrip || token.rstrip || token.single_word) &&
                 absl::StrContains(texts[i], token.content);
        });
    if (!odd) comparable.push_back(i);
  }
  return comparable;
}

void ExpectReferenceIds(const Tokenizer& tokenizer, const std::string& family,
                        const TokenizerSpec& spec, SpecialText special) {
  const auto texts = ReferenceTexts();
  const auto ids = ReferenceIds(family);
  const auto decoded = ReferenceDecoded(family);
  const auto comparable = ComparableTexts(spec, texts);
  ASSERT_GE(comparable.size(), 900u) << family;
  for (const size_t i : comparable) {
    const auto made = tokenizer.Encode(texts[i], special);
    ASSERT_TRUE(made.ok()) << made.status() << " in text " << i;
    EXPECT_EQ(*made, ids[i]) << family << ", text " << i << ": " << texts[i];
    // SentencePiece shows an unknown token as U+2047 between spaces.
    EXPECT_EQ(tokenizer.DecodeText(ids[i]),
              absl::StrReplaceAll(decoded[i], {{" \xe2\x81\x87 ", ""}}))
        << family << ", text " << i;
  }
}

struct Family {
  const char* name;
  const char* pre;
};

class GgufFamilyTest : public ::testing::TestWithParam<Family> {};

TEST_P(GgufFamilyTest, GivesTheReferencesIdsAndTexts) {
  const std::string family = GetParam().name;
  const auto spec =
      ReadTokenizerFiles(ReferencePath(family + "/tokenizer.json"));
  ASSERT_TRUE(spec.ok()) << spec.status();
  GgufWriter writer;
  writer.Add("tokenizer.ggml.model", "gpt2");
  writer.Add("tokenizer.ggml.pre", GetParam().pre);
  AddPieces(*spec, writer);
  std::vector<std::string> merges;
  for (const TokenizerMerge& merge : spec->merges) {
    merges.push_back(merge.left + " " + merge.right);
  }
  writer.AddArray<std::string>("tokenizer.ggml.merges", merges);

  ExpectReferenceIds(FromGguf(writer), family, *spec, SpecialText::kParsed);
}

INSTANTIATE_TEST_SUITE_P(All, GgufFamilyTest,
                         ::testing::Values(Family{"gpt2", "gpt-2"},
                                           Family{"smollm2", "smollm"},
                                           Family{"llama3", "llama-bpe"},
                                           Family{"qwen2", "qwen2"},
                                           Family{"qwen2", "deepseek-r1-qwen"},
                                           Family{"deepseek", "deepseek-v3"}));

TEST(GgufSentencePieceTest, GivesTheLibrarysIdsAndTexts) {
  const auto spec =
      ReadTokenizerFiles(ReferencePath("spm_bpe/tokenizer.model"));
  ASSERT_TRUE(spec.ok()) << spec.status();
  GgufWriter writer;
  writer.Add("tokenizer.ggml.model", "llama");
  AddPieces(*spec, writer);
  writer.AddArray<float>("tokenizer.ggml.scores",
                         {spec->scores.begin(), spec->scores.end()});
  writer.Add("tokenizer.ggml.unknown_token_id",
             static_cast<uint32_t>(spec->unknown_token.value()));

  ExpectReferenceIds(FromGguf(writer), "spm_bpe", *spec, SpecialText::kLiteral);
}

}  // namespace
}  // namespace farkv
