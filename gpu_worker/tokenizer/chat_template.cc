#include "gpu_worker/tokenizer/chat_template.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/status_macros.h"
#include "gpu_worker/tokenizer/utf8.h"

namespace farkv {
namespace {

constexpr char kUser[] = "<｜User｜>";
constexpr char kAssistant[] = "<｜Assistant｜>";
constexpr char kThoughtEnd[] = "</think>";

// What Python's str.strip() takes.
bool IsSpace(uint32_t c) {
  return (c >= 9 && c <= 13) || (c >= 0x1c && c <= 0x20) || c == 0x85 ||
         c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) ||
         c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
         c == 0x3000;
}

// Text that is not UTF-8 is left for Encode to refuse.
std::string Trimmed(absl::string_view text) {
  while (!text.empty()) {
    const Utf8Prefix first = ReadUtf8(text);
    if (!IsSpace(first.code_point)) break;
    text.remove_prefix(first.bytes);
  }
  size_t end = 0;
  for (size_t at = 0; at < text.size();) {
    const Utf8Prefix next = ReadUtf8(text.substr(at));
    at += next.bytes;
    if (!IsSpace(next.code_point)) end = at;
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

// ChatML's system text for conversations without one: what stands between the
// markers within one string of the template.
std::string DefaultSystem(absl::string_view jinja) {
  constexpr absl::string_view kStart = "<|im_start|>system\n";
  constexpr absl::string_view kEnd = "<|im_end|>";
  for (size_t at = jinja.find(kStart); at != absl::string_view::npos;
       at = jinja.find(kStart, at + 1)) {
    const absl::string_view rest = jinja.substr(at + kStart.size());
    const size_t end = rest.find(kEnd);
    const absl::string_view text = rest.substr(0, end);
    if (end == absl::string_view::npos || text.empty() ||
        text.find_first_of("'{}+") != absl::string_view::npos) {
      continue;
    }
    return std::string(text);
  }
  return "";
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
  parts.Marker(values_.bos);
  if (chat.system != nullptr) parts.Content(*chat.system);
  for (const ChatTurn& turn : chat.turns) {
    if (turn.role == "user") {
      parts.Marker(kUser).Content(turn.content);
      continue;
    }
    parts.Marker(kAssistant);
    parts.Content(drops_thoughts_ ? WithoutThoughts(turn.content)
                                  : turn.content);
    parts.Marker(values_.eos);
  }
  parts.Marker(absl::StrCat(kAssistant, thought_));
}

void ChatTemplate::RenderLlama2(const Conversation& chat, Parts& parts) const {
  bool first = true;
  for (const ChatTurn& turn : chat.turns) {
    if (turn.role == "assistant") {
      parts.Marker(" ").Content(Trimmed(turn.content));
      parts.Marker(absl::StrCat(" ", values_.eos));
      continue;
    }
    parts.Marker(absl::StrCat(values_.bos, "[INST] "));
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

void ChatTemplate::RenderLlama3(const Conversation& chat, Parts& parts) const {
  const auto add = [&parts](absl::string_view role, absl::string_view front,
                            absl::string_view content) {
    parts.Marker(absl::StrCat("<|start_header_id|>", role,
                              "<|end_header_id|>\n\n", front));
    parts.Content(Trimmed(content)).Marker("<|eot_id|>");
  };
  parts.Marker(values_.bos);
  if (chat.system != nullptr || !dates_.empty()) {
    add("system", dates_, chat.system != nullptr ? *chat.system : "");
  }
  for (const ChatTurn& turn : chat.turns) add(turn.role, "", turn.content);
  parts.Marker("<|start_header_id|>assistant<|end_header_id|>\n\n");
}

// The system text goes in front of the last turn.
void ChatTemplate::RenderMistralV3(const Conversation& chat,
                                   Parts& parts) const {
  const bool spaces = form_ == Form::kMistralV3;
  parts.Marker(values_.bos);
  for (const ChatTurn& turn : chat.turns) {
    if (turn.role == "assistant") {
      parts.Marker(spaces ? " " : "");
      parts.Content(spaces ? Trimmed(turn.content) : turn.content);
      parts.Marker(values_.eos);
      continue;
    }
    parts.Marker(spaces ? "[INST] " : "[INST]");
    if (&turn == &chat.turns.back() && chat.system != nullptr) {
      parts.Content(*chat.system).Marker("\n\n");
    }
    parts.Content(turn.content).Marker("[/INST]");
  }
}

void ChatTemplate::RenderMistral(const Conversation& chat, Parts& parts) const {
  parts.Marker(values_.bos);
  for (const ChatTurn& turn : chat.turns) {
    if (turn.role == "assistant") {
      parts.Content(turn.content);
      parts.Marker(absl::StrCat(values_.eos, space_behind_eos_ ? " " : ""));
    } else {
      parts.Marker("[INST] ").Content(turn.content).Marker(" [/INST]");
    }
  }
}

absl::StatusOr<ChatTemplate> ChatTemplate::Recognise(absl::string_view jinja,
                                                     Values values) {
  // A line end is written as such or as \n, depending on the file.
  const std::string text = absl::StrReplaceAll(jinja, {{"\\n", "\n"}});
  const auto has = [&text](absl::string_view marker) {
    return absl::StrContains(text, marker);
  };
  ChatTemplate made;
  made.drops_thoughts_ = has(kThoughtEnd);
  if (has(kAssistant) && has(kUser)) {
    made.form_ = Form::kDeepSeek;
    if (has(absl::StrCat(kAssistant, "<think>\n"))) made.thought_ = "<think>\n";
  } else if (has("<|im_start|>") && has("<|im_end|>")) {
    made.form_ = Form::kChatMl;
    made.default_system_ = DefaultSystem(text);
    if (has("<|im_start|>assistant\n<think>\n")) made.thought_ = "<think>\n";
  } else if (has("<|start_header_id|>") && has("<|eot_id|>")) {
    made.form_ = Form::kLlama3;
    if (has("Cutting Knowledge Date: December 2023\n")) {
      made.dates_ = absl::StrCat(
          "Cutting Knowledge Date: December 2023\nToday Date: ",
          has("strftime_now") ? values.today : "26 Jul 2024", "\n\n");
    }
  } else if (has("<<SYS>>") && has("[INST] ") && has(" [/INST]")) {
    made.form_ = Form::kLlama2;
  } else if (has("'[INST] ' + message['content'] + ' [/INST]'")) {
    made.form_ = Form::kMistral;
    made.space_behind_eos_ = has("eos_token + ' '") || has("eos_token+ ' '");
  } else if (has("[AVAILABLE_TOOLS]") && has("\"[/INST]\"")) {
    made.form_ = has("\"[INST] \"") ? Form::kMistralV3 : Form::kMistralTekken;
  } else {
    return absl::UnimplementedError(absl::StrCat(
        "the model's chat template is of no known form (ChatML, Llama 2, Llama "
        "3, Mistral, DeepSeek); it starts with \"",
        absl::CHexEscape(jinja.substr(0, 60)), "\""));
  }
  made.values_ = std::move(values);
  return made;
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
    std::span<const ChatTurn> turns) const {
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
    case Form::kMistralV3:
    case Form::kMistralTekken:
      RenderMistralV3(chat, parts);
      return parts.Take();
    case Form::kChatMl:
      RenderChatMl(chat, parts);
      return parts.Take();
    case Form::kLlama3:
      RenderLlama3(chat, parts);
      return parts.Take();
    case Form::kDeepSeek:
      RenderDeepSeek(chat, parts);
      return parts.Take();
  }
  return absl::InternalError("a chat template of no form");
}

}  // namespace farkv
