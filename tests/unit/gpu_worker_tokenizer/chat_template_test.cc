#include "gpu_worker/tokenizer/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "gpu_worker/tokenizer/utf8.h"

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

nlohmann::json Golden() {
  std::ifstream file(std::string(std::getenv("FARKV_TEST_SOURCE_DIR")) +
                     "/tests/golden/chat/chat.json");
  return nlohmann::json::parse(file);
}

// The first template of a form.
std::string GoldenTemplate(const std::string& name) {
  for (const auto& golden : Golden()) {
    if (golden["name"] == name) return golden["template"];
  }
  ADD_FAILURE() << "no golden template of " << name;
  return "";
}

std::vector<ChatTurn> Turns(const nlohmann::json& messages) {
  std::vector<ChatTurn> turns;
  for (const auto& message : messages) {
    turns.push_back({message["role"], message["content"]});
  }
  return turns;
}

std::string Refusal(const std::string& jinja,
                    const std::vector<ChatTurn>& turns) {
  const auto chat = ChatTemplate::Recognise(jinja, {"<s>", "</s>"});
  EXPECT_TRUE(chat.ok()) << chat.status();
  return std::string(chat->Render(turns, "").status().message());
}

TEST(ChatTemplateTest, EveryConversationReadsAsJinjaRendersIt) {
  const auto cases = Golden();
  ASSERT_EQ(cases.size(), 18u);
  for (const auto& golden : cases) {
    const auto chat = ChatTemplate::Recognise(
        golden["template"].get<std::string>(), {golden["bos"], golden["eos"]});
    ASSERT_TRUE(chat.ok()) << chat.status() << golden["template"];
    EXPECT_EQ(chat->name(), golden["name"].get<std::string>());
    for (const auto& rendered : golden["rendered"]) {
      const auto parts =
          chat->Render(Turns(rendered["messages"]), "03 Feb 2025");
      ASSERT_TRUE(parts.ok()) << parts.status();
      EXPECT_EQ(Text(*parts), rendered["text"].get<std::string>())
          << golden["template"];
    }
  }
}

TEST(ChatTemplateTest, WhatOnlyToolsAreGivenDoesNotCount) {
  for (const auto& golden : Golden()) {
    const std::string jinja = golden["template"];
    for (const char* addition :
         {"{%- if tools %}{{ 'Tools.' }}{% endif -%}",
          "{%- if not tools %}{% else %}{{ 'Tools.' }}{% endif -%}",
          "{%- if tools is not none and not in_user %}Tools.{% endif -%}",
          "{%- if in_user and not tools is none %}{{ 'x}}' }}{% endif -%}",
          "{%- if not (a or m.tool_calls is defined) %}{% elif 'tool_calls' in "
          "m %}{{ 'x' }}{% endif -%}",
          "{%- for t in tools %}{% if a %}{{ 'x' }}{% endif %}{% endfor -%}",
          "{%- if m['role'] == \"tool\" %}{{ 'x' }}{% endif -%}",
          "{%- set x = m['y'].split('z')[-1] | join(', ') -%}",
          "{#- 'Not said' -#}", "{{- raise_exception('No') -}}"}) {
      const auto chat = ChatTemplate::Recognise(jinja + addition,
                                                {golden["bos"], golden["eos"]});
      EXPECT_TRUE(chat.ok()) << chat.status() << addition;
    }
  }
}

TEST(ChatTemplateTest, ATextThatItsFormDoesNotWriteIsRefused) {
  for (const auto& golden : Golden()) {
    const std::string jinja = golden["template"];
    for (const char* addition :
         {"{{ 'Be kind.' }}", "Be kind.", "{%- set x = \"Be kind.\" -%}",
          "{% if not tools %}{{ 'Be kind.' }}{% endif %}",
          "{% if tools is none %}Be kind.{% endif %}",
          "{% if m.role == 'user' and not m.tool_calls %}{{ 'Be kind.' }}"
          "{% endif %}",
          "{% if tools %}{% else %}{{ 'Be kind.' }}{% endif %}",
          "{% for m in messages %}{{ a + 'Be kind.' }}{% endfor %}"}) {
      const auto chat = ChatTemplate::Recognise(jinja + addition,
                                                {golden["bos"], golden["eos"]});
      EXPECT_EQ(chat.status().code(), absl::StatusCode::kUnimplemented)
          << addition << jinja;
      EXPECT_THAT(std::string(chat.status().message()),
                  AllOf(HasSubstr("Be kind."),
                        HasSubstr(golden["name"].get<std::string>())));
    }
  }
}

TEST(ChatTemplateTest, OtherWhiteSpaceAroundMarksIsRefused) {
  const std::string smollm = GoldenTemplate("ChatML");
  const auto refused = [](absl::string_view jinja) {
    return ChatTemplate::Recognise(jinja, {}).status().code() ==
           absl::StatusCode::kUnimplemented;
  };
  const auto with = [](std::string text, const char* from, const char* to) {
    EXPECT_TRUE(absl::StrContains(text, from)) << from;
    return absl::StrReplaceAll(text, {{from, to}});
  };

  EXPECT_FALSE(refused(smollm));
  EXPECT_TRUE(refused(with(smollm, "'<|im_end|>' + '\n'", "'<|im_end|>'")));
  EXPECT_TRUE(refused(with(smollm, "+ '\n'}}", "+ '\n\n'}}")));
  EXPECT_TRUE(refused(with(smollm, "assistant\n'", "assistant: '")));
  EXPECT_TRUE(refused(with(smollm, "message['content'] +",
                           "message['content'] + eos_token +")));
  EXPECT_TRUE(refused(with(GoldenTemplate("Llama 3"), "_id|>\n\n", "_id|>\n")));
  EXPECT_TRUE(
      refused(with(GoldenTemplate("Mistral"), "' [/INST]", "'  [/INST]")));
  EXPECT_TRUE(refused(
      with(GoldenTemplate("DeepSeek"), "'<｜User｜>'", "'<｜User｜> '")));
}

TEST(ChatTemplateTest, NoTemplateThatEndsWithinATagIsTaken) {
  for (const auto& golden : Golden()) {
    const std::string jinja = golden["template"];
    for (size_t bytes = 0; bytes < jinja.size(); ++bytes) {
      // An answer, not a crash; within a tag always a refusal.
      const auto chat = ChatTemplate::Recognise(
          absl::string_view(jinja).substr(0, bytes), {});
      const size_t open = jinja.rfind("{{", bytes);
      const size_t close = jinja.find("}}", open);
      if (open < bytes && close != std::string::npos && bytes < close) {
        EXPECT_FALSE(chat.ok()) << jinja.substr(0, bytes);
      }
    }
  }
}

TEST(ChatTemplateTest, DeepNestingIsReadInOnePass) {
  const auto nested = [](const char* open, const char* close) {
    std::string text;
    for (int i = 0; i < 50000; ++i) text += open;
    for (int i = 0; i < 50000; ++i) text += close;
    return text;
  };
  // A square of these would take minutes.
  for (const std::string& jinja :
       {nested("{% if a %}x", "{% endif %}"),
        "{% if " + nested("not (tools or ", ")") + " %}{% endif %}",
        "{{ " + nested("f(a, 'x', ", ")") + " }}"}) {
    EXPECT_EQ(ChatTemplate::Recognise(jinja, {}).status().code(),
              absl::StatusCode::kUnimplemented);
  }
}

// Marks of all forms; the tokenizer has a token for each.
constexpr const char* kMarks[] = {"<|im_start|>",
                                  "<|im_end|>",
                                  "<|start_header_id|>",
                                  "<|end_header_id|>",
                                  "<|eot_id|>",
                                  "<|begin_of_text|>",
                                  "<｜User｜>",
                                  "<｜Assistant｜>",
                                  "<｜begin▁of▁sentence｜>",
                                  "<｜end▁of▁sentence｜>",
                                  "<think>",
                                  "</think>"};

// Characters have ids below 1000, marks above.
Tokenizer MarkTokenizer(const std::string& texts) {
  TokenizerSpec spec;
  spec.pieces.push_back("\n");
  for (size_t at = 0; at < texts.size();) {
    const size_t bytes = ReadUtf8(absl::string_view(texts).substr(at)).bytes;
    const std::string piece = texts.substr(at, bytes);
    if (std::count(spec.pieces.begin(), spec.pieces.end(), piece) == 0) {
      spec.pieces.push_back(piece);
    }
    at += bytes;
  }
  for (const char* mark : kMarks) {
    AddedToken token;
    token.id = static_cast<int32_t>(spec.pieces.size() + 1000 +
                                    spec.added_tokens.size());
    token.content = mark;
    spec.added_tokens.push_back(token);
  }
  const auto made = Tokenizer::Create(spec);
  EXPECT_TRUE(made.ok()) << made.status();
  return *made;
}

TEST(ChatTemplateTest, AMessageCannotForgeATurnThoughItsMarksAreNotSpecial) {
  std::string marks;
  for (const char* mark : kMarks) marks += mark;
  for (const auto& golden : Golden()) {
    const auto chat = ChatTemplate::Recognise(
        golden["template"].get<std::string>(), {golden["bos"], golden["eos"]});
    ASSERT_TRUE(chat.ok()) << chat.status();
    const auto count = [&](const std::string& content) {
      const auto parts = chat->Render(
          std::vector<ChatTurn>{
              {"user", content}, {"assistant", "a"}, {"user", content}},
          "26 Jul 2024");
      EXPECT_TRUE(parts.ok()) << parts.status();
      const auto tokens =
          MarkTokenizer(Text(*parts) + marks)
              .Encode(std::vector<TextPart>(parts->begin(), parts->end()));
      EXPECT_TRUE(tokens.ok()) << tokens.status();
      return std::count_if(tokens->begin(), tokens->end(),
                           [](int32_t id) { return id >= 1000; });
    };
    EXPECT_EQ(count(marks), count("hello")) << golden["template"];
  }
}

TEST(ChatTemplateTest, OnlyTheTemplatesOwnTextMayHoldSpecialTokens) {
  const auto chat = ChatTemplate::Recognise(kChatMl, {});
  ASSERT_TRUE(chat.ok()) << chat.status();

  const auto parts =
      chat->Render(std::vector<ChatTurn>{{"user", "<|im_end|>"}}, "");
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
  const std::string llama2 = GoldenTemplate("Llama 2");
  const std::string mistral = GoldenTemplate("Mistral");

  EXPECT_THAT(Refusal(kChatMl, {}), HasSubstr("no messages"));
  EXPECT_THAT(Refusal(kChatMl, {{"tool", "x"}}),
              AllOf(HasSubstr("message 0"), HasSubstr("tool")));
  EXPECT_THAT(Refusal(kChatMl, {{"user", "x"}, {"system", "y"}}),
              HasSubstr("message 1"));
  EXPECT_THAT(Refusal(kChatMl, {{"user", "x"}, {"assistant", "y"}}),
              HasSubstr("message 1"));
  EXPECT_THAT(Refusal(kChatMl, {{"system", "x"}}), HasSubstr("message 0"));
  EXPECT_EQ(Refusal(kChatMl, {{"user", "x"}, {"user", "y"}}), "");
  EXPECT_THAT(Refusal(llama2, {{"user", "x"}, {"user", "y"}}),
              HasSubstr("message 1"));
  EXPECT_EQ(Refusal(llama2, {{"system", "x"}, {"user", "y"}}), "");
  EXPECT_THAT(Refusal(mistral, {{"system", "x"}, {"user", "y"}}),
              HasSubstr("system"));
}

}  // namespace
}  // namespace farkv
