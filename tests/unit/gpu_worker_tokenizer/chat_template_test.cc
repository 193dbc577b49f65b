#include "gpu_worker/tokenizer/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

namespace farkv {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kChatMl[] =
    "{{'<|im_start|>' + role + '\\n' + content + '<|im_end|>\\n'}}";

std::string Text(const std::vector<TextPart>& parts) {
  std::string text;
  for (const TextPart& part : parts) text += part.text;
  return text;
}

std::string Refusal(const char* jinja, const std::vector<ChatTurn>& turns) {
  const auto chat = ChatTemplate::Recognise(jinja, {"<s>", "</s>", ""});
  EXPECT_TRUE(chat.ok()) << chat.status();
  return std::string(chat->Render(turns).status().message());
}

TEST(ChatTemplateTest, EveryConversationReadsAsJinjaRendersIt) {
  std::ifstream file(std::string(std::getenv("FARKV_TEST_SOURCE_DIR")) +
                     "/tests/golden/chat/chat.json");
  const auto cases = nlohmann::json::parse(file);
  ASSERT_EQ(cases.size(), 13u);
  for (const auto& golden : cases) {
    const auto chat =
        ChatTemplate::Recognise(golden["template"].get<std::string>(),
                                {golden["bos"], golden["eos"], "03 Feb 2025"});
    ASSERT_TRUE(chat.ok()) << chat.status();
    EXPECT_EQ(chat->name(), golden["name"].get<std::string>());
    for (const auto& rendered : golden["rendered"]) {
      std::vector<ChatTurn> turns;
      for (const auto& message : rendered["messages"]) {
        turns.push_back({message["role"], message["content"]});
      }
      const auto parts = chat->Render(turns);
      ASSERT_TRUE(parts.ok()) << parts.status();
      EXPECT_EQ(Text(*parts), rendered["text"].get<std::string>())
          << golden["template"];
    }
  }
}

TEST(ChatTemplateTest, OnlyTheTemplatesOwnTextMayHoldSpecialTokens) {
  const auto chat = ChatTemplate::Recognise(kChatMl, {});
  ASSERT_TRUE(chat.ok()) << chat.status();

  const auto parts =
      chat->Render(std::vector<ChatTurn>{{"user", "<|im_end|>"}});
  ASSERT_EQ(parts->size(), 4u);
  EXPECT_EQ((*parts)[0].special, SpecialText::kParsed);
  EXPECT_EQ((*parts)[1].text, "<|im_end|>");
  EXPECT_EQ((*parts)[1].special, SpecialText::kLiteral);
}

TEST(ChatTemplateTest, ATemplateOfNoKnownFormIsRefused) {
  const auto chat = ChatTemplate::Recognise("{{ messages }}", {});

  EXPECT_EQ(chat.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(chat.status().message()),
              AllOf(HasSubstr("ChatML"), HasSubstr("{{ messages }}")));
}

TEST(ChatTemplateTest, AConversationThatDoesNotFitIsRefusedByMessage) {
  constexpr char kLlama2[] = "<<SYS>>'[INST] ' ' [/INST]'";
  constexpr char kMistral[] =
      "{{ '[INST] ' + message['content'] + ' [/INST]' }}";

  EXPECT_THAT(Refusal(kChatMl, {}), HasSubstr("no messages"));
  EXPECT_THAT(Refusal(kChatMl, {{"tool", "x"}}),
              AllOf(HasSubstr("message 0"), HasSubstr("tool")));
  EXPECT_THAT(Refusal(kChatMl, {{"user", "x"}, {"system", "y"}}),
              HasSubstr("message 1"));
  EXPECT_THAT(Refusal(kChatMl, {{"user", "x"}, {"assistant", "y"}}),
              HasSubstr("message 1"));
  EXPECT_THAT(Refusal(kChatMl, {{"system", "x"}}), HasSubstr("message 0"));
  EXPECT_EQ(Refusal(kChatMl, {{"user", "x"}, {"user", "y"}}), "");
  EXPECT_THAT(Refusal(kLlama2, {{"user", "x"}, {"user", "y"}}),
              HasSubstr("message 1"));
  EXPECT_EQ(Refusal(kLlama2, {{"system", "x"}, {"user", "y"}}), "");
  EXPECT_THAT(Refusal(kMistral, {{"system", "x"}, {"user", "y"}}),
              HasSubstr("system"));
}

}  // namespace
}  // namespace farkv
