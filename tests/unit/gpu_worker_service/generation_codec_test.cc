#include "gpu_worker/service/generation_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace farkv {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using worker::v1::GenerateRequest;

constexpr int32_t kBegin = 3, kStart = 4, kEnd = 5;

// A model of the characters a, b and line end.
class GenerationCodecTest : public ::testing::Test {
 protected:
  GenerationCodecTest() {
    spec_.pieces = {"a", "b", "\n", "<s>", "<|im_start|>", "<|im_end|>"};
    spec_.pieces.insert(spec_.pieces.end(), {"user", "assistant", "system"});
    for (int c : {'<', '|', 'i', 'm', '_', 'e', 'n', 'd', '>'}) {
      spec_.pieces.emplace_back(1, static_cast<char>(c));
    }
    spec_.kinds.assign(spec_.pieces.size(), PieceKind::kNormal);
    for (int32_t id : {kBegin, kStart, kEnd}) {
      spec_.kinds[static_cast<size_t>(id)] = PieceKind::kControl;
    }
    spec_.bos_token = kBegin;
    spec_.chat_template =
        "{{ '<|im_start|>' + role + '\\n' + text + '<|im_end|>\\n' }}";
    model_.config.max_position = 64;
  }

  absl::StatusOr<std::vector<int32_t>> Prompt(const GenerateRequest& request) {
    auto tokenizer = Tokenizer::Create(spec_);
    if (!tokenizer.ok()) return tokenizer.status();
    model_.tokenizer = *std::move(tokenizer);
    model_.chat = Model::FindChat(model_.tokenizer);
    const auto read = FromProto(request, model_, EngineOptions());
    if (!read.ok()) return read.status();
    return read->prompt;
  }
  static GenerateRequest Text(const char* text) {
    GenerateRequest request;
    request.set_text(text);
    return request;
  }
  static GenerateRequest UserSays(const char* text) {
    GenerateRequest request;
    auto* message = request.mutable_chat()->add_messages();
    message->set_role("user");
    message->set_content(text);
    return request;
  }

  TokenizerSpec spec_;
  Model model_;
};

TEST_F(GenerationCodecTest, TheTokenizerSaysWhetherABeginTokenGoesFirst) {
  EXPECT_THAT(*Prompt(Text("ab")), ElementsAre(kBegin, 0, 1));
  EXPECT_THAT(*Prompt(Text("<s>a")), ElementsAre(kBegin, 0));
  spec_.add_bos = false;
  EXPECT_THAT(*Prompt(Text("ab")), ElementsAre(0, 1));
  spec_.add_bos = true;
  spec_.bos_token.reset();
  EXPECT_THAT(*Prompt(Text("ab")), ElementsAre(0, 1));
  model_.config.bos_token = kBegin;
  EXPECT_THAT(*Prompt(Text("ab")), ElementsAre(kBegin, 0, 1));
}

TEST_F(GenerationCodecTest, AChatIsWrittenByTheModelsTemplate) {
  EXPECT_THAT(*Prompt(UserSays("ab")),
              ElementsAre(kStart, 6, 2, 0, 1, kEnd, 2, kStart, 7, 2));
}

TEST_F(GenerationCodecTest, AMessageCannotEndItsTurn) {
  const auto prompt = Prompt(UserSays("<|im_end|>"));
  ASSERT_TRUE(prompt.ok()) << prompt.status();

  EXPECT_EQ(std::count(prompt->begin(), prompt->end(), kEnd), 1);
}

TEST_F(GenerationCodecTest, AChatThatCannotBeIsRefused) {
  const auto refusal = [this](const GenerateRequest& request) {
    return std::string(Prompt(request).status().message());
  };
  GenerateRequest empty;
  empty.mutable_chat();
  GenerateRequest tool = UserSays("a");
  tool.mutable_chat()->mutable_messages(0)->set_role("tool");

  EXPECT_THAT(refusal(empty), HasSubstr("empty"));
  EXPECT_THAT(refusal(tool), HasSubstr("tool"));
  EXPECT_THAT(refusal(UserSays(std::string(100'000, 'a').c_str())),
              HasSubstr("100000"));
  spec_.chat_template = "{{ messages }}";
  EXPECT_EQ(Prompt(UserSays("a")).status().code(),
            absl::StatusCode::kUnimplemented);
  spec_.chat_template.reset();
  EXPECT_EQ(Prompt(UserSays("a")).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

SequenceTierStats BusyTiers() {
  SequenceTierStats stats;
  for (int64_t* count : {&stats.t0_tokens,
                         &stats.t1_tokens,
                         &stats.t2_tokens,
                         &stats.t3_tokens,
                         &stats.t0_peak_bytes,
                         &stats.staging_peak_bytes,
                         &stats.stored_pages,
                         &stats.stored_bytes,
                         &stats.promoted_tokens,
                         &stats.demoted_tokens,
                         &stats.cold_rows_mapped,
                         &stats.cold_rows_fetched,
                         &stats.cold_rows_pushed_down,
                         &stats.cold_bytes_fetched,
                         &stats.late_fetches,
                         &stats.plans,
                         &stats.deferred_drops,
                         &stats.recomputed_tokens,
                         &stats.lost_score_collections,
                         &stats.destroyed_rows,
                         &stats.evictions,
                         &stats.postponed_evictions,
                         &stats.skipped_evictions,
                         &stats.node_evictions,
                         &stats.selected_groups,
                         &stats.skipped_groups,
                         &stats.undone_promotions,
                         &stats.lossy_tokens}) {
    *count = 2;
  }
  stats.destroyed_share = stats.destroyed_share_average = 0.5;
  return stats;
}

TEST(GenerationUsageTest, EveryFieldOfTheTierBlockIsFilled) {
  GenerationEnd end;
  end.tiers = BusyTiers();

  const auto tiers = ToFinished(end).tiers();

  const auto* fields = tiers.GetDescriptor();
  for (int i = 0; i < fields->field_count(); ++i) {
    EXPECT_TRUE(tiers.GetReflection()->HasField(tiers, fields->field(i)))
        << fields->field(i)->name();
  }
}

TEST(GenerationUsageTest, ThoughtsAndSeedAreTold) {
  GenerationEnd end;
  end.completion_tokens = 9;
  end.reasoning_tokens = 4;
  end.seed = 7;

  const auto usage = ToFinished(end).usage();

  EXPECT_EQ(usage.completion_tokens(), 9);
  EXPECT_EQ(usage.reasoning_tokens(), 4);
  EXPECT_EQ(usage.seed(), 7u);
}

TEST(GenerationDeltaTest, LogProbabilitiesKeepTheirPlaces) {
  GenerationEvent event;
  event.output = 3;
  event.tokens = {5, 6};
  event.logprobs.resize(2);
  event.logprobs[1].chosen = TokenLogprob{6, -0.5f};
  event.logprobs[1].top = {{9, -0.25f}, {6, -0.5f}};
  event.prompt_logprobs.resize(1);

  const worker::v1::Delta delta = ToDelta(event);

  EXPECT_EQ(delta.output_index(), 3);
  ASSERT_EQ(delta.logprobs_size(), 2);
  EXPECT_FALSE(delta.logprobs(0).has_chosen());
  EXPECT_EQ(delta.logprobs(1).chosen().token_id(), 6);
  EXPECT_EQ(delta.logprobs(1).chosen().logprob(), -0.5f);
  ASSERT_EQ(delta.logprobs(1).top_size(), 2);
  EXPECT_EQ(delta.logprobs(1).top(0).token_id(), 9);
  EXPECT_EQ(delta.logprobs(1).top(0).logprob(), -0.25f);
  ASSERT_EQ(delta.prompt_logprobs_size(), 1);
  EXPECT_FALSE(delta.prompt_logprobs(0).has_chosen());
}

TEST(GenerationUsageTest, ThePushdownShareIsOfTheColdRowsThatWereRead) {
  GenerationEnd end;
  EXPECT_EQ(ToFinished(end).tiers().pushdown_share(), 0.0);
  end.tiers.cold_rows_mapped = 1;
  end.tiers.cold_rows_fetched = 2;
  end.tiers.cold_rows_pushed_down = 9;

  EXPECT_EQ(ToFinished(end).tiers().pushdown_share(), 0.75);
}

TEST(GenerationEndTest, TheTierBlockSaysWhatIsLossyAndWhatWasUndone) {
  GenerationEnd end;
  end.tiers.t0_tokens = 90;
  end.tiers.lossy_tokens = 64;
  end.tiers.undone_promotions = 7;

  const worker::v1::TierUsage tiers = ToFinished(end).tiers();

  EXPECT_EQ(tiers.t0_tokens(), 90);
  EXPECT_EQ(tiers.lossy_tokens(), 64);
  EXPECT_EQ(tiers.undone_promotions(), 7);
}

}  // namespace
}  // namespace farkv
