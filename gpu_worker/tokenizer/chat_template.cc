#include "gpu_worker/tokenizer/chat_template.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "gpu_worker/tokenizer/chat_marks.h"
#include "gpu_worker/tokenizer/utf8.h"

namespace farkv {
namespace {

// What Python's str.strip() takes.
bool IsStripped(uint32_t c) {
  return (c >= 9 && c <= 13) || (c >= 0x1c && c <= 0x20) || c == 0x85 ||
         c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) ||
         c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
         c == 0x3000;
}

// Text that is not UTF-8 is left for Encode to refuse.
std::string Trimmed(absl::string_view text) {
  while (!text.empty()) {
    const Utf8Prefix first = ReadUtf8(text);
    if (!IsStripped(first.code_point)) break;
    text.remove_prefix(first.bytes);
  }
  size_t end = 0;
  for (size_t at = 0; at < text.size();) {
    const Utf8Prefix next = ReadUtf8(text.substr(at));
    at += next.bytes;
    if (!IsStripped(next.code_point)) end = at;
  }
  return std::string(text.substr(0, end));
}

std::string WithoutThoughts(const std::string& answer) {
  const size_t at = answer.rfind(kThoughtEnd);
  return at == std::string::npos ? answer
                                 : answer.substr(at + sizeof(kThoughtEnd) - 1);
}

std::string WithoutFirstLineEnds(const std::string& text) {
  const size_t at = text.find_first_not_of('\n');
  return at == std::string::npos ? "" : text.substr(at);
}

}  // namespace

// Collects the parts of the rendered text.
class ChatTemplate::Parts {
 public:
  Parts& Marker(absl::string_view text) {
    return Add(text, SpecialText::kParsed);
  }
  Parts& Content(absl::string_view text) {
    return Add(text, SpecialText::kLiteral);
  }
  std::vector<TextPart> Take() { return std::move(parts_); }

 private:
  Parts& Add(absl::string_view text, SpecialText special) {
    if (!text.empty()) parts_.push_back({std::string(text), special});
    return *this;
  }

  std::vector<TextPart> parts_;
};

// Turns that Check has passed.
struct ChatTemplate::Conversation {
  const std::string* system = nullptr;
  std::span<const ChatTurn> turns;  // without the system turn

  explicit Conversation(std::span<const ChatTurn> all) : turns(all) {
    if (all.front().role != "system") return;
    system = &all.front().content;
    turns = all.subspan(1);
  }
};

void ChatTemplate::RenderChatMl(const Conversation& chat, Parts& parts) const {
  const auto add = [&parts](absl::string_view role, absl::string_view content) {
    parts.Marker(absl::StrCat("<|im_start|>", role, "\n"));
    parts.Content(content).Marker("<|im_end|>\n");
  };
  parts.Marker(ends_.bos);
  if (chat.system != nullptr) {
    add("system", *chat.system);
  } else if (!default_system_.empty()) {
    add("system", default_system_);
  }
  for (const ChatTurn& turn : chat.turns) {
    const bool drop = drops_thoughts_ && turn.role == "assistant" &&
                      absl::StrContains(turn.content, kThoughtEnd);
    add(turn.role, drop ? WithoutFirstLineEnds(WithoutThoughts(turn.content))
                        : turn.content);
  }
  parts.Marker(absl::StrCat("<|im_start|>assistant\n", thought_));
}

void ChatTemplate::RenderDeepSeek(const Conversation& chat,
                                  Parts& parts) const {
  parts.Marker(ends_.bos);
  if (chat.system != nullptr) parts.Content(*chat.system);
  for (const ChatTurn& turn : chat.turns) {
    if (turn.role == "user") {
      parts.Marker(kUser).Content(turn.content);
      continue;
    }
    parts.Marker(kAssistant);
    parts.Content(drops_thoughts_ ? WithoutThoughts(turn.content)
                                  : turn.content);
    parts.Marker(ends_.eos);
  }
  parts.Marker(absl::StrCat(kAssistant, thought_));
}

void ChatTemplate::RenderLlama2(const Conversation& chat, Parts& parts) const {
  bool first = true;
  for (const ChatTurn& turn : chat.turns) {
    if (turn.role == "assistant") {
      parts.Marker(" ").Content(Trimmed(turn.content));
      parts.Marker(absl::StrCat(" ", ends_.eos));
      continue;
    }
    parts.Marker(absl::StrCat(ends_.bos, "[INST] "));
    if (first && chat.system != nullptr) {
      // The template trims system text and content as one, which ends here.
      const std::string end = Trimmed("x\n\n" + turn.content).substr(1);
      parts.Marker("<<SYS>>\n").Content(*chat.system);
      parts.Marker("\n<</SYS>>").Content(end);
    } else {
      parts.Content(Trimmed(turn.content));
    }
    parts.Marker(" [/INST]");
    first = false;
  }
}

void ChatTemplate::RenderLlama3(const Conversation& chat,
                                absl::string_view today, Parts& parts) const {
  const auto add = [&parts](absl::string_view role, absl::string_view front,
                            absl::string_view content) {
    parts.Marker(absl::StrCat("<|start_header_id|>", role,
                              "<|end_header_id|>\n\n", front));
    parts.Content(Trimmed(content)).Marker("<|eot_id|>");
  };
  parts.Marker(ends_.bos);
  if (chat.system != nullptr || has_dates_) {
    const std::string dates =
        has_dates_ ? absl::StrCat(kKnowledgeDate, kToday,
                                  has_clock_ ? today : date_, "\n\n")
                   : "";
    add("system", dates, chat.system != nullptr ? *chat.system : "");
  }
  for (const ChatTurn& turn : chat.turns) add(turn.role, "", turn.content);
  parts.Marker("<|start_header_id|>assistant<|end_header_id|>\n\n");
}

// The system text goes in front of the last turn.
void ChatTemplate::RenderMistralV3(const Conversation& chat,
                                   Parts& parts) const {
  const bool spaces = form_ == Form::kMistralV3;
  parts.Marker(ends_.bos);
  for (const ChatTurn& turn : chat.turns) {
    if (turn.role == "assistant") {
      parts.Marker(spaces ? " " : "");
      parts.Content(trims_answers_ ? Trimmed(turn.content) : turn.content);
      parts.Marker(ends_.eos);
      continue;
    }
    parts.Marker(spaces ? "[INST] " : "[INST]");
    if (&turn == &chat.turns.back() && chat.system != nullptr) {
      parts.Content(*chat.system).Marker("\n\n");
    }
    parts.Content(turn.content).Marker("[/INST]");
  }
}

// The system text goes in front of the first turn.
void ChatTemplate::RenderMistralV1(const Conversation& chat,
                                   Parts& parts) const {
  parts.Marker(ends_.bos);
  for (const ChatTurn& turn : chat.turns) {
    if (turn.role == "assistant") {
      parts.Marker(" ");
      parts.Content(trims_answers_ ? Trimmed(turn.content) : turn.content);
      parts.Marker(ends_.eos);
      continue;
    }
    parts.Marker(" [INST] ");
    if (&turn == &chat.turns.front() && chat.system != nullptr) {
      parts.Content(*chat.system).Marker("\n\n");
    }
    parts.Content(turn.content).Marker(" [/INST]");
  }
}

void ChatTemplate::RenderMistral(const Conversation& chat, Parts& parts) const {
  parts.Marker(ends_.bos);
  for (const ChatTurn& turn : chat.turns) {
    if (turn.role == "assistant") {
      parts.Content(turn.content);
      parts.Marker(absl::StrCat(ends_.eos, space_behind_eos_ ? " " : ""));
    } else {
      parts.Marker("[INST] ").Content(turn.content).Marker(" [/INST]");
    }
  }
}

const char* ChatTemplate::name() const {
  switch (form_) {
    case Form::kChatMl:
      return "ChatML";
    case Form::kLlama2:
      return "Llama 2";
    case Form::kLlama3:
      return "Llama 3";
    case Form::kMistral:
      return "Mistral";
    case Form::kMistralV1:
      return "Mistral v1";
    case Form::kMistralV3:
      return "Mistral v3";
    case Form::kMistralTekken:
      return "Mistral Tekken";
    case Form::kDeepSeek:
      return "DeepSeek";
  }
  return "";
}

absl::Status ChatTemplate::Check(std::span<const ChatTurn> turns) const {
  const bool alternate = form_ == Form::kLlama2 || form_ == Form::kMistral ||
                         form_ == Form::kMistralV1 ||
                         form_ == Form::kMistralV3 ||
                         form_ == Form::kMistralTekken;
  const auto wrong = [&](size_t i, absl::string_view wanted) {
    return absl::InvalidArgumentError(
        absl::StrCat("message ", i, " has role \"",
                     absl::CHexEscape(turns[i].role), "\", must be ", wanted));
  };
  if (turns.empty()) {
    return absl::InvalidArgumentError("the chat has no messages");
  }
  const bool system = turns[0].role == "system";
  if (system && form_ == Form::kMistral) {
    return wrong(0, "user: the model's template has no system message");
  }
  for (size_t i = system ? 1 : 0; i < turns.size(); ++i) {
    const bool user = turns[i].role == "user";
    if (!user && turns[i].role != "assistant") {
      return wrong(i, "user or assistant (the first one also system)");
    }
    if (alternate && user != ((i - (system ? 1 : 0)) % 2 == 0)) {
      return wrong(i, user ? "assistant" : "user");
    }
  }
  if (turns.back().role != "user") {
    return wrong(turns.size() - 1, "user: the answer follows it");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<TextPart>> ChatTemplate::Render(
    std::span<const ChatTurn> turns, absl::string_view today) const {
  FARKV_RETURN_IF_ERROR(Check(turns));
  const Conversation chat(turns);
  Parts parts;
  switch (form_) {
    case Form::kLlama2:
      RenderLlama2(chat, parts);
      return parts.Take();
    case Form::kMistral:
      RenderMistral(chat, parts);
      return parts.Take();
    case Form::kMistralV1:
      RenderMistralV1(chat, parts);
      return parts.Take();
    case Form::kMistralV3:
    case Form::kMistralTekken:
      RenderMistralV3(chat, parts);
      return parts.Take();
    case Form::kChatMl:
      RenderChatMl(chat, parts);
      return parts.Take();
    case Form::kLlama3:
      RenderLlama3(chat, today, parts);
      return parts.Take();
    case Form::kDeepSeek:
      RenderDeepSeek(chat, parts);
      return parts.Take();
  }
  return absl::InternalError("a chat template of no form");
}

}  // namespace farkv
