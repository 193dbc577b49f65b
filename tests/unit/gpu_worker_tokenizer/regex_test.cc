#include "gpu_worker/tokenizer/regex.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/base/crc32c.h"
#include "gpu_worker/tokenizer/utf8.h"
#include "tests/unit/gpu_worker_tokenizer/reference_ids.h"

namespace farkv {
namespace {

std::string EveryCharacter() {
  std::string text;
  for (uint32_t c = 0; c < 0x110000; ++c) {
    if (c < 0xd800 || c >= 0xe000) AppendUtf8(c, text);
  }
  return text;
}

// The characters that `one` matches, as golden/tokenizers/categories.json has
// them: their number and the CRC32C of their code points.
std::pair<size_t, uint32_t> Matched(const std::string& one,
                                    const std::string& text) {
  const auto regex = Regex::Compile(one + "+");
  EXPECT_TRUE(regex.ok()) << regex.status();
  std::vector<TextSpan> matches;
  const absl::Status status =
      RegexSearch(*regex).FindAll(text, {0, text.size()}, matches);
  EXPECT_TRUE(status.ok()) << status;
  std::vector<uint32_t> points;
  for (const TextSpan& match : matches) {
    for (size_t at = match.begin; at < match.end;) {
      const Utf8Prefix character = ReadUtf8(absl::string_view(text).substr(at));
      points.push_back(character.code_point);
      at += character.bytes;
    }
  }
  return {points.size(), Crc32c(std::as_bytes(std::span(points)))};
}

TEST(RegexTest, GeneralCategoriesAreThoseOfTheReference) {
  const std::string text = EveryCharacter();
  std::ifstream file(ReferencePath("categories.json"));
  const auto golden = nlohmann::json::parse(file);
  ASSERT_EQ(golden.size(), 6u);
  for (const auto& [category, expected] : golden.items()) {
    const std::string property = "\\p{" + category + "}";
    const auto wanted = expected.get<std::pair<size_t, uint32_t>>();

    EXPECT_EQ(Matched(property, text), wanted) << property;
    EXPECT_EQ(Matched("[" + property + "]", text), wanted) << property;
    EXPECT_EQ(Matched("[^" + property + "]", text).first,
              0x110000u - 0x800u - wanted.first)
        << property;
  }
}

TEST(RegexTest, OtherPropertiesStayWhatTheyAre) {
  const struct {
    const char* pattern;
    const char* text;
    TextSpan first;
  } kCases[] = {
      {R"(\p{Lu}+)", "aBC", {1, 3}},        {R"(\pL+)", "1ab", {1, 3}},
      {R"(\P{L}+)", "a12", {1, 3}},         {R"(\p{^L}+)", "a12", {1, 3}},
      {R"([\P{N}a]+)", "1ab", {1, 3}},      {R"(\\p{L}+)", "a\\p{L}", {1, 6}},
      {R"(\p{Greek}+)", "a\u03b1", {1, 3}},
  };
  for (const auto& c : kCases) {
    const auto regex = Regex::Compile(c.pattern);
    ASSERT_TRUE(regex.ok()) << regex.status();
    const std::string text = c.text;
    std::vector<TextSpan> matches;
    const absl::Status status =
        RegexSearch(*regex).FindAll(text, {0, text.size()}, matches);
    EXPECT_TRUE(status.ok()) << status;
    const TextSpan first = matches.empty() ? TextSpan{} : matches.front();
    EXPECT_EQ(first, c.first) << c.pattern;
  }
}

TEST(RegexTest, AWrongPatternIsShownAsItWasWritten) {
  const auto regex = Regex::Compile(R"(\p{L}\p{S}()");

  ASSERT_FALSE(regex.ok());
  EXPECT_LT(regex.status().message().size(), 120u) << regex.status();
}

// Its classes would hold more than PCRE2 compiles.
TEST(RegexTest, APatternOfManyCategoriesIsTaken) {
  std::string pattern;
  for (int i = 0; i < 2000; ++i) pattern += R"(\p{L}|)";

  EXPECT_TRUE(Regex::Compile(pattern + "x").ok());
}

}  // namespace
}  // namespace farkv
