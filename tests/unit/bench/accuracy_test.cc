#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "bench/accuracy_lines.h"
#include "bench/accuracy_rows.h"
#include "bench/accuracy_run.h"
#include "bench/accuracy_task.h"
#include "bench/accuracy_text.h"
#include "common/base/bf16.h"
#include "common/base/endian.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace farkv::bench {
namespace {

using ::testing::HasSubstr;

Program Make(const std::string& task, uint64_t program = 0) {
  return (*MakeAccuracyTask(task))->Make(ProgramDraws(1, 2, program));
}

// The character at a position; <bos> stands at 0.
char At(const Program& program, int64_t position) {
  return program.text[static_cast<size_t>(position - 1)];
}

TEST(AccuracyTaskTest, EveryLookupStandsBehindItsNameAndFindsItsValue) {
  for (const char* task :
       {"T1-48", "T2-24", "T2-48", "T2r-20", "T3-none", "T3-4", "T4-15"}) {
    const Program program = Make(task);
    for (const Lookup& lookup : program.lookups) {
      const char name = At(program, lookup.position);
      const char value = At(program, lookup.position + 1);
      EXPECT_TRUE(std::isdigit(value)) << task << " " << program.text;
      EXPECT_TRUE(program.generated[static_cast<size_t>(lookup.position)]);
      ASSERT_FALSE(lookup.mentions.empty());
      for (const int64_t mention : lookup.mentions) {
        EXPECT_LT(mention, lookup.position);
        EXPECT_EQ(At(program, mention), value);
        if (name == '!') continue;  // stands for the last name
        EXPECT_EQ(At(program, mention - 1), name);
      }
    }
  }
}

TEST(AccuracyTaskTest, ATraceIsGeneratedWholeAndEndsWithTheLastName) {
  const Program program = Make("T2r-20");
  EXPECT_EQ(
      std::count(program.generated.begin(), program.generated.end(), true),
      20 * 10 + 2);
  EXPECT_EQ(program.num_answers, 1u);
  const size_t end = program.prompt_size;
  EXPECT_EQ(program.text.substr(end - 3, 1), "?");
  EXPECT_EQ(program.text[end - 1], '|');
  // `k=8;!8`: the result of the last line is the answer.
  const std::string tail = program.text.substr(program.text.size() - 5);
  EXPECT_EQ(tail[0], program.text[end - 2]);
  EXPECT_EQ(tail[1], tail[4]);
}

TEST(AccuracyTaskTest, AccumulatorsAreReadOnceEachAndAllLinesAreCounted) {
  const Program program = Make("T1-48");
  // 48 lines of 8 tokens, of which six begin an accumulator; header and end.
  EXPECT_EQ(program.text.size(), 4u + 48 * 8 + 3);
  EXPECT_EQ(program.lookups.size(), 48u - 6 + 1);
  EXPECT_EQ(std::count(program.text.begin(), program.text.end(), '@'), 6);
  for (const Lookup& lookup : program.lookups) {
    EXPECT_EQ(lookup.mentions.size(), 1u);
  }
  EXPECT_EQ(program.num_answers, 1u);
}

// ALGORITHMS 14.2: line t adds one of the lines 0 to t - 5 and any other, or a
// constant.
TEST(AccuracyTaskTest, LeftOperandsOfATraceAreFarAndOnlyValuesAreGenerated) {
  const Program program = Make("T2-48");
  EXPECT_EQ(
      std::count(program.generated.begin(), program.generated.end(), true),
      43 * 3 + 1);
  EXPECT_EQ(program.num_answers, 1u);
  // `a7;` five times, `|`, then a line of 6 for each of the others.
  std::map<char, int> line_of;
  for (int i = 0; i < 5; ++i) {
    line_of[program.text[static_cast<size_t>(3 * i)]] = i;
  }
  int near = 0, constants = 0;
  for (int line = 5; line < 48; ++line) {
    const auto at = static_cast<size_t>(16 + 6 * (line - 5));
    const std::string text = program.text.substr(at, 6);
    ASSERT_EQ(text[1], '=');
    ASSERT_EQ(text[3], '+');
    ASSERT_TRUE(line_of.count(text[2]) > 0 && line_of.count(text[4]) > 0);
    EXPECT_LE(line_of[text[2]], line - 5);
    near += line_of[text[4]] > line - 5;
    constants += line_of[text[4]] < 5;
    line_of[text[0]] = line;
  }
  EXPECT_GT(near, 0);
  EXPECT_GT(constants, 43 / 3);
  EXPECT_LT(constants, 43);
}

TEST(AccuracyTaskTest, CheckpointsMakeMentionsOfARegister) {
  const auto mentions = [](const Program& program) {
    size_t sum = 0;
    for (const Lookup& lookup : program.lookups) sum += lookup.mentions.size();
    return static_cast<double>(sum) /
           static_cast<double>(program.lookups.size());
  };
  EXPECT_EQ(mentions(Make("T3-none")), 1);
  EXPECT_GT(mentions(Make("T3-4")), 1.5);
  // 8 registers, 48 lines of 8 tokens, 11 checkpoints of 18, header and end.
  EXPECT_EQ(Make("T3-4").text.size(), 4u + 56 * 8 + 11 * 18 + 3);
}

TEST(AccuracyTaskTest, AFactIsStatedOnceAndAskedForAfterItsEvents) {
  const Program program = Make("T4-15");
  ASSERT_EQ(program.num_answers, 3u);
  for (size_t i = program.lookups.size() - 3; i < program.lookups.size(); ++i) {
    EXPECT_EQ(program.lookups[i].mentions.size(), 1u);
    EXPECT_GE(program.lookups[i].position - program.lookups[i].mentions[0],
              15 * 16);
  }
}

TEST(AccuracyTaskTest, ProgramsDependOnTheirNumberAlone) {
  EXPECT_EQ(Make("T2r-32", 3).text, Make("T2r-32", 3).text);
  EXPECT_NE(Make("T2r-32", 3).text, Make("T2r-32", 4).text);
}

TEST(AccuracyTaskTest, AnUnknownTaskIsRefusedByName) {
  for (const char* name : {"T1-6", "T1-49", "T2-5", "T2-49", "T2", "T2r-1",
                           "T2r-45", "T3-5", "T3-", "T4-57", "T5"}) {
    EXPECT_THAT(std::string(MakeAccuracyTask(name).status().message()),
                HasSubstr(name));
  }
}

TEST(AccuracyRowsTest, NamesAreUniqueAndEveryDestructionIsValid) {
  for (const PolicySizes& sizes : {kChainSizes, kTextSizes}) {
    std::set<std::string> names;
    for (const AccuracyRow& row : AllAccuracyRows(sizes)) {
      EXPECT_TRUE(names.insert(row.name).second) << row.name;
      if (!row.policy.has_value()) continue;
      const int64_t chain = 20 * sizes.interval;
      const DestructionSettings settings = row.Destruction(200, chain);
      EXPECT_TRUE(settings.Validate().ok()) << row.name;
      EXPECT_TRUE(settings.ValidateRequest(200).ok())
          << row.name << ": " << settings.ValidateRequest(200);
    }
  }
}

TEST(AccuracyRowsTest, SelectionReadsLessAndIsNeitherFullNorExact) {
  const auto rows = ChooseAccuracyRows({"quest-*"}, kChainSizes);
  ASSERT_TRUE(rows.ok());
  ASSERT_EQ(rows->size(), 4u);
  for (size_t i = 1; i < rows->size(); ++i) {
    const AccuracyRow& row = (*rows)[i];
    EXPECT_FALSE(row.is_full() || row.is_exact()) << row.name;
    EXPECT_TRUE(row.selection.Validate().ok()) << row.selection.Validate();
    EXPECT_STREQ(row.budget_kind(), "selection");
  }
}

TEST(AccuracyRowsTest, PositionModesDestroyWhatTheirAbsoluteRowDoes) {
  const auto rows = ChooseAccuracyRows({"*"}, kChainSizes);
  ASSERT_TRUE(rows.ok());
  int compared = 0;
  for (const AccuracyRow& row : *rows) {
    if (row.positions == PositionMode::kAbsolute) continue;
    const std::string base = row.name.substr(0, row.name.rfind('-'));
    const auto absolute = ChooseAccuracyRows({base}, kChainSizes);
    ASSERT_TRUE(absolute.ok()) << absolute.status();
    EXPECT_EQ(absolute->back().share, row.share);
    EXPECT_EQ(absolute->back().policy->index(), row.policy->index());
    EXPECT_EQ(absolute->back().positions, PositionMode::kAbsolute);
    ++compared;
  }
  EXPECT_EQ(compared, 12);
}

TEST(AccuracyRowsTest, RoundedRowsAreNotExactAndKeepNothingInT0) {
  const auto rows = ChooseAccuracyRows({"t2-*"}, kChainSizes);
  ASSERT_TRUE(rows.ok());
  ASSERT_EQ(rows->size(), 6u);
  for (size_t i = 1; i < rows->size(); ++i) {
    const AccuracyRow& row = (*rows)[i];
    EXPECT_TRUE(row.is_rounded()) << row.name;
    EXPECT_FALSE(row.is_exact()) << row.name;
    EXPECT_EQ(row.hbm_ratio, 0) << row.name;
    // Nodes know nothing of the schemes that only the bench has.
    EXPECT_NE(row.rounding.has_value(), row.t2_ratio > 0) << row.name;
  }
}

TEST(AccuracyRowsTest, FullComesFirstAndAStarTakesAllThatBeginSo) {
  const auto rows =
      ChooseAccuracyRows({"attention-cap-*", "tiers-10"}, kChainSizes);
  ASSERT_TRUE(rows.ok());
  ASSERT_EQ(rows->size(), 4u);
  EXPECT_TRUE((*rows)[0].is_full());
  EXPECT_FALSE(ChooseAccuracyRows({"tiers-11"}, kChainSizes).ok());
}

// A prompt `<bos> a 1 b 2`, behind it `a_b_a_`: 10 and 11 are the names.
EncodedProgram TwoLookups() {
  EncodedProgram program;
  program.tokens = {0, 10, 1, 11, 2, 10, 1, 11, 2, 10, 1};
  program.prompt_size = 5;
  program.generated = {false, false, false, false, false, false,
                       true,  false, true,  false, true};
  program.lookups = {{5, {2}}, {7, {4}}, {9, {2, 6}}};
  program.num_answers = 1;
  return program;
}

TEST(AccuracyRunTest, ALookupIsRightWhenItFindsWhatItsOwnTraceSays) {
  const auto score = [](std::vector<int32_t> made) {
    ProgramOutcome outcome;
    outcome.run.tokens = std::move(made);
    ScoreProgram(TwoLookups(), outcome);
    EXPECT_EQ(outcome.asked, 3);
    EXPECT_EQ(outcome.made, 3);
    return outcome;
  };
  EXPECT_EQ(score({10, 1, 11, 2, 10, 1}).found, 3);
  EXPECT_EQ(score({10, 1, 11, 3, 10, 1}).found, 2);
  // The first one is wrong; the last one repeats it, and finds its value.
  const ProgramOutcome repeated = score({10, 4, 11, 2, 10, 4});
  EXPECT_EQ(repeated.found, 2);
  EXPECT_EQ(repeated.right, 1);
  EXPECT_FALSE(repeated.answered);
  // What was never made is not found, not even where nothing was before.
  EXPECT_EQ(score({10}).found, 0);
}

TEST(AccuracyRunTest, TheGateNeedsLookupsAndAnswers) {
  ProgramSet set;
  set.gate = {.answers = 0.95, .lookups = 0.999};
  RowOutcome full;
  full.programs.resize(100);
  for (ProgramOutcome& p : full.programs) {
    p.answered = true;
    p.asked = p.found = 10;
  }
  EXPECT_TRUE(PassesGate(set, full));
  full.programs[0].found = 9;
  EXPECT_TRUE(PassesGate(set, full)) << full.found();
  full.programs[1].found = 9;
  EXPECT_FALSE(PassesGate(set, full)) << full.found();
  EXPECT_THAT(GateReport("T2-48", set, full),
              testing::AllOf(HasSubstr("T2-48"), HasSubstr("998 of 1000"),
                             HasSubstr("missed")));

  full.programs[1].found = 10;
  for (size_t i = 0; i < 6; ++i) full.programs[i].answered = false;
  EXPECT_FALSE(PassesGate(set, full));
  set.gate = {};
  EXPECT_TRUE(PassesGate(set, full));
}

TEST(AccuracyRunTest, TheIntervalOfAShareIsWilsons) {
  const Interval half = WilsonInterval(0.5, 400);
  EXPECT_NEAR(half.high - 0.5, 0.0488, 1e-3);
  const Interval all = WilsonInterval(1.0, 32);
  EXPECT_NEAR(all.low, 0.8928, 1e-4);
  EXPECT_DOUBLE_EQ(all.high, 1.0);
}

TEST(AccuracyRunTest, DifferencesArePairedByProgram) {
  RowOutcome base, row;
  base.programs.resize(4);
  row.programs.resize(4);
  for (auto& p : base.programs) p.answered = true;
  row.programs[0].answered = row.programs[1].answered = true;
  row.programs[2].answered = true;
  EXPECT_DOUBLE_EQ(CompareAnswers(row, base).mean, -0.25);
  EXPECT_DOUBLE_EQ(CompareAnswers(base, base).half_width, 0.0);
  EXPECT_TRUE(SameTokens(row, base));
  row.programs[3].run.tokens = {1};
  EXPECT_FALSE(SameTokens(row, base));
}

TEST(AccuracyRunTest, SurpriseIsTheNegativeLogarithmOfTheProbability) {
  const float logits[] = {1.0f, 1.0f + std::log(3.0f), 1.0f};
  EXPECT_NEAR(Surprise(logits, 1), std::log(5.0 / 3.0), 1e-6);
  EXPECT_NEAR(Surprise(logits, 0), std::log(5.0), 1e-6);
}

TEST(AccuracyRunTest, SurpriseIsComparedTokenByToken) {
  RowOutcome base, row;
  base.programs.resize(2);
  row.programs.resize(2);
  base.programs[0].surprise = {1.0, 2.0};
  base.programs[1].surprise = {3.0};
  row.programs[0].surprise = {1.0, 2.5};
  row.programs[1].surprise = {4.0};

  EXPECT_DOUBLE_EQ(base.surprise(), 2.0);
  EXPECT_DOUBLE_EQ(row.surprise(), 2.5);
  EXPECT_DOUBLE_EQ(CompareSurprise(row, base).mean, 0.5);
  EXPECT_FALSE(SameTokens(row, base));
}

// Both figures of the hierarchy's bounds; other kinds have neither.
TEST(AccuracyLinesTest, ALineSaysBothBoundsOfItsBudget) {
  const auto rows = AllAccuracyRows(kChainSizes);
  ProgramSet set;
  RowOutcome outcome;
  outcome.programs.resize(1);
  outcome.programs[0].made = 1;
  int bounds = 0;
  for (const AccuracyRow& row : rows) {
    const BenchLine line =
        MakeAccuracyLine({"T2r-20", set, row, outcome, outcome, 1});
    const bool expected =
        row.policy.has_value() && row.budget.kind == BudgetKind::kBounds;
    ASSERT_EQ(line.params.contains("per_event_ratio"), expected) << row.name;
    ASSERT_EQ(line.params.contains("cumulative_cap"), expected) << row.name;
    if (!expected) continue;
    ++bounds;
    EXPECT_DOUBLE_EQ(line.params["per_event_ratio"].get<double>(),
                     row.budget.bounds.per_event_ratio / 10000.0);
    EXPECT_DOUBLE_EQ(line.params["cumulative_cap"].get<double>(),
                     row.budget.bounds.cumulative_cap / 10000.0);
  }
  EXPECT_GE(bounds, 4);
}

// ALGORITHMS 11.1: four keys of three channels.
constexpr float kToy[4][3] = {
    {.1f, -.2f, 10}, {.2f, .1f, 10.4f}, {-.1f, .3f, 9.8f}, {0, -.1f, 10.2f}};

// The mean squared error of rounding each group of (token, channel) pairs to a
// range of its own.
double ToyError(const std::vector<std::vector<std::pair<int, int>>>& groups,
                int bits) {
  double error = 0;
  for (const auto& group : groups) {
    std::vector<float> exact;
    for (const auto& [t, c] : group) exact.push_back(kToy[t][c]);
    std::vector<float> rounded = exact;
    RoundToOneRange(rounded, bits);
    for (size_t i = 0; i < exact.size(); ++i) {
      error += std::pow(static_cast<double>(rounded[i] - exact[i]), 2) / 12;
    }
  }
  return error;
}

TEST(AccuracyRoundingTest, RangesPerTensorTokenAndChannelMakeTheToysErrors) {
  std::vector<std::vector<std::pair<int, int>>> tensor(1), tokens(4),
      channels(3);
  for (int t = 0; t < 4; ++t) {
    for (int c = 0; c < 3; ++c) {
      tensor[0].emplace_back(t, c);
      tokens[static_cast<size_t>(t)].emplace_back(t, c);
      channels[static_cast<size_t>(c)].emplace_back(t, c);
    }
  }
  struct Errors {
    int bits;
    double tensor, token, channel;
  };
  for (const Errors& expected :
       {Errors{2, .10083333, .0225, .00046296}, Errors{4, .04351481, .0148, 0},
        Errors{8, .00013945, .00010641, 0}}) {
    const auto expect = [&](const auto& groups, double error) {
      EXPECT_NEAR(ToyError(groups, expected.bits), error, 1e-5 * error + 1e-8)
          << expected.bits;
    };
    expect(tensor, expected.tensor);
    expect(tokens, expected.token);
    expect(channels, expected.channel);
  }
}

TEST(AccuracyRoundingTest, AZeroRangeIsExact) {
  std::vector<float> equal(3, 0.25f);
  RoundToOneRange(equal, 8);
  EXPECT_EQ(equal, std::vector<float>(3, 0.25f));
}

constexpr KvGeometry kGeometry = {1, 2, 16, DType::kBf16};

// One layer of a page. Channel 0 of every key is around 100, the other numbers
// lie in [-1, 1); the value in slot 5 of head 0 reaches to 3.
std::vector<std::byte> TestPage() {
  std::vector<std::byte> page(kGeometry.BlockBytes(kPageTokens));
  const auto put = [&](size_t offset, size_t seed) {
    for (size_t c = 0; c < 16; ++c) {
      const auto value = static_cast<float>((seed * 31 + c * 17) % 64) / 32 - 1;
      StoreLe(page.data() + offset + 2 * c, FloatToBf16(value));
    }
  };
  for (size_t head = 0; head < 2; ++head) {
    for (size_t slot = 0; slot < kPageTokens; ++slot) {
      const size_t key = kGeometry.KeyOffset(kPageTokens, head, slot);
      put(key, slot + head);
      put(kGeometry.ValueOffset(kPageTokens, head, slot), slot * 7 + head);
      StoreLe(page.data() + key,
              FloatToBf16(static_cast<float>(96 + slot % 8)));
    }
  }
  StoreLe(page.data() + kGeometry.ValueOffset(kPageTokens, 0, 5),
          FloatToBf16(3.0f));
  return page;
}

// Largest error of channel 1 of any key.
double KeyError(RoundingScheme scheme) {
  const std::vector<std::byte> page = TestPage();
  std::vector<std::byte> rounded = page;
  RowRounding rounding(scheme, kGeometry);
  rounding.Apply(rounded);
  EXPECT_TRUE(rounding.status().ok()) << rounding.status();
  EXPECT_EQ(rounding.num_pages(), 1);
  double largest = 0;
  for (size_t slot = 0; slot < kPageTokens; ++slot) {
    const size_t at = kGeometry.KeyOffset(kPageTokens, 1, slot) + 2;
    const float error = Bf16ToFloat(LoadLe<uint16_t>(rounded.data() + at)) -
                        Bf16ToFloat(LoadLe<uint16_t>(page.data() + at));
    largest = std::max(largest, static_cast<double>(std::abs(error)));
  }
  return largest;
}

TEST(AccuracyRoundingTest, OneRangeSuffersFromALargeChannelWhereT2DoesNot) {
  using Kind = RoundingScheme::Kind;
  const double per_channel = KeyError({Kind::kNoExceptions, 8});
  const double one_range = KeyError({Kind::kOneRange, 8});
  EXPECT_GT(per_channel, 0);
  EXPECT_LT(per_channel, 0.01);
  EXPECT_GT(one_range, 0.15);  // half a step of (103 + 1) / 255
  EXPECT_GT(KeyError({Kind::kOneRange, 4}), one_range);
}

TEST(AccuracyRoundingTest, BytesOfATokenCountScales) {
  using Kind = RoundingScheme::Kind;
  const double full = 2.0 * 2 * 16 * 2;  // heads, keys and values, channels
  const double bare =
      RoundingScheme{Kind::kNoExceptions, 8}.TokenBytes(kGeometry);
  EXPECT_GT(bare, full / 2);
  EXPECT_LT(bare, full);
  const RoundingScheme eight = {Kind::kOneRange, 8};
  const RoundingScheme four = {Kind::kOneRange, 4};
  EXPECT_DOUBLE_EQ(eight.TokenBytes(kGeometry), full / 2 + 16.0 / 64);
  EXPECT_DOUBLE_EQ(four.TokenBytes(kGeometry), full / 4 + 16.0 / 64);
}

TEST(AccuracyRoundingTest, RangesOfValuesAreSummedUp) {
  ValueRanges ranges(kGeometry);
  EXPECT_EQ(ranges.Summarise().num_values, 0);
  const std::vector<std::byte> page = TestPage();
  ranges.Add(0, page);
  ranges.Add(3, page);

  const ValueRanges::Summary summary = ranges.Summarise();

  EXPECT_EQ(summary.num_values, 2 * 2 * 64);
  EXPECT_LT(summary.median, 2.0);
  EXPECT_LE(summary.median, summary.p90);
  EXPECT_LE(summary.p99, summary.largest);
  EXPECT_GT(summary.largest, 3.0);
  EXPECT_DOUBLE_EQ(summary.first_page_rows, 0.5);
  EXPECT_GT(summary.first_page_in_top_quarter, 0.2);
  EXPECT_LT(summary.first_page_in_top_quarter, 0.8);
}

TEST(AccuracyLinesTest, RowsOfAnEarlierRunAreDoneForItsProgramsAndSeed) {
  const auto done = DoneRows::Parse(
      R"({"case":"T2r-32/full","params":{"programs":200,"seed":1}})"
      "\n\n"
      R"({"case":"text/full","params":{"programs":4,"seed":2}})"
      "\n");
  ASSERT_TRUE(done.ok()) << done.status();
  EXPECT_TRUE(done->Contains("T2r-32", "full", 200, 1));
  EXPECT_TRUE(done->Contains("text", "full", 4, 2));
  EXPECT_FALSE(done->Contains("T2r-32", "full", 60, 1));
  EXPECT_FALSE(done->Contains("T2r-32", "full", 200, 2));
  EXPECT_FALSE(done->Contains("T2r-32", "tiers-10", 200, 1));
  for (const char* bad :
       {"x", "{}", R"({"case":1,"params":{}})", R"({"case":"a","params":3})"}) {
    EXPECT_THAT(std::string(DoneRows::Parse(bad).status().message()),
                HasSubstr(bad));
  }
}

TEST(AccuracyTextTest, AFactIsStatedOnceAndAskedForBehindItsEvents) {
  const char* source = std::getenv("FARKV_TEST_SOURCE_DIR");
  const auto tokenizer =
      Tokenizer::Load(std::string(source == nullptr ? "." : source) +
                      "/tests/golden/tokenizers/smollm2/tokenizer.json");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const std::vector<int32_t> text(500, 65);

  const auto program =
      MakeTextFact(*tokenizer, text, /*num_events=*/5, ProgramDraws(1, 2, 3));

  ASSERT_TRUE(program.ok()) << program.status();
  const auto& tokens = program->tokens;
  ASSERT_EQ(program->generated.size(), tokens.size());
  ASSERT_GE(program->num_answers, 4u);
  ASSERT_EQ(program->lookups.size(), program->num_answers);
  for (const Lookup& lookup : program->lookups) {
    ASSERT_EQ(lookup.mentions.size(), 1u);
    const auto asked = static_cast<size_t>(lookup.position) + 1;
    const auto stated = static_cast<size_t>(lookup.mentions[0]);
    EXPECT_EQ(tokens[asked], tokens[stated]);
    EXPECT_TRUE(program->generated[asked]);
    EXPECT_GE(stated, program->prompt_size);
    EXPECT_GE(asked - stated, 5u * kFactEventTokens);
  }
  EXPECT_EQ(
      std::count(program->generated.begin(), program->generated.end(), true),
      static_cast<std::ptrdiff_t>(program->num_answers));
}

TEST(AccuracyTextTest, AMissingModelOrTextSaysWhatToDo) {
  const auto source = [](std::string model, std::string text) {
    ProgramSource made;
    made.language_model = std::move(model);
    made.text = std::move(text);
    return made;
  };
  const char* folder = std::getenv("FARKV_TEST_SOURCE_DIR");
  const std::string text = std::string(folder == nullptr ? "." : folder) +
                           "/bench/texts/constitution.txt";
  EXPECT_THAT(std::string(MakePrograms("text", source("no/such/model", text))
                              .status()
                              .message()),
              HasSubstr("scripts/fetch_model.sh smollm2"));
  EXPECT_THAT(std::string(MakePrograms("fact-5", source("", "no/such/text"))
                              .status()
                              .message()),
              HasSubstr("no/such/text"));
  for (const char* task : {"fact-0", "fact-31", "fact-x"}) {
    EXPECT_THAT(
        std::string(MakePrograms(task, source("", text)).status().message()),
        HasSubstr(task));
  }
}

}  // namespace
}  // namespace farkv::bench
