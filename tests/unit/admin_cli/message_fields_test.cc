#include "admin_cli/message_fields.h"

#include <gtest/gtest.h>

#include "farkv/worker/v1/generation.pb.h"

namespace farkv {
namespace {

TEST(MessageFieldsTest, EveryFieldOfTheTierBlockIsInTheDocument) {
  const worker::v1::TierUsage none;

  const nlohmann::ordered_json document = MessageFields(none);

  const auto* descriptor = none.GetDescriptor();
  ASSERT_EQ(document.size(), static_cast<size_t>(descriptor->field_count()));
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const std::string name = descriptor->field(i)->json_name();
    EXPECT_TRUE(document.contains(name)) << name;
  }
}

TEST(MessageFieldsTest, NumbersSharesAndNamesAreThoseOfTheMessage) {
  worker::v1::TierUsage usage;
  usage.set_recomputed_tokens(70);
  usage.set_t0_share(0.25);
  usage.set_exactness(worker::v1::OUTPUT_EXACTNESS_BITWISE);

  const nlohmann::ordered_json document = MessageFields(usage);

  EXPECT_EQ(document["recomputedTokens"], 70);
  EXPECT_EQ(document["t0Share"], 0.25);
  EXPECT_EQ(document["exactness"], "OUTPUT_EXACTNESS_BITWISE");
  EXPECT_EQ(document["plans"], 0);
}

TEST(MessageFieldsTest, WhatIsNoPlainValueIsLeftOut) {
  worker::v1::Delta delta;
  delta.set_text("a");
  delta.add_token_ids(1);

  const nlohmann::ordered_json document = MessageFields(delta);

  EXPECT_EQ(document["text"], "a");
  EXPECT_FALSE(document.contains("tokenIds"));
}

}  // namespace
}  // namespace farkv
