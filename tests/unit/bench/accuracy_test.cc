#include <algorithm>
#include <cctype>
#include <set>
#include <string>

#include "bench/accuracy_rows.h"
#include "bench/accuracy_run.h"
#include "bench/accuracy_task.h"
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
  for (const char* task : {"T2r-20", "T3-none", "T3-4", "T4-15"}) {
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
  for (const char* name : {"T2r-1", "T2r-45", "T3-5", "T4-57", "T5"}) {
    EXPECT_THAT(std::string(MakeAccuracyTask(name).status().message()),
                HasSubstr(name));
  }
}

TEST(AccuracyRowsTest, NamesAreUniqueAndEveryDestructionIsValid) {
  std::set<std::string> names;
  for (const AccuracyRow& row : AllAccuracyRows()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    if (!row.policy.has_value()) continue;
    const DestructionSettings settings = row.Destruction(200, 320);
    EXPECT_TRUE(settings.Validate().ok()) << row.name;
    EXPECT_TRUE(settings.ValidateRequest(200).ok())
        << row.name << ": " << settings.ValidateRequest(200);
  }
}

TEST(AccuracyRowsTest, FullComesFirstAndAStarTakesAllThatBeginSo) {
  const auto rows = ChooseAccuracyRows({"attention-cap-*", "tiers-10"});
  ASSERT_TRUE(rows.ok());
  ASSERT_EQ(rows->size(), 4u);
  EXPECT_TRUE((*rows)[0].is_full());
  EXPECT_FALSE(ChooseAccuracyRows({"tiers-11"}).ok());
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

}  // namespace
}  // namespace farkv::bench
