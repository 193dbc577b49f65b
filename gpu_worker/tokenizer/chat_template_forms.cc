// Which form a chat template is of, told by the texts that it writes.
#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"
#include "gpu_worker/tokenizer/chat_marks.h"
#include "gpu_worker/tokenizer/chat_template.h"
#include "gpu_worker/tokenizer/jinja_text.h"

namespace farkv {
namespace {

// Whether some literal has `marker` in it.
bool Has(const JinjaText& text, absl::string_view marker) {
  return std::any_of(text.literals.begin(), text.literals.end(),
                     [marker](const std::string& literal) {
                       return absl::StrContains(literal, marker);
                     });
}

bool HasWhole(const JinjaText& text, absl::string_view wanted) {
  return std::count(text.literals.begin(), text.literals.end(), wanted) > 0;
}

// Whether `literal` is made of `texts`, the longest one first at each place.
bool IsMadeOf(absl::string_view literal,
              const std::vector<std::string>& texts) {
  while (!literal.empty()) {
    size_t longest = 0;
    for (const std::string& text : texts) {
      if (absl::StartsWith(literal, text)) {
        longest = std::max(longest, text.size());
      }
    }
    if (longest == 0) return false;
    literal.remove_prefix(longest);
  }
  return true;
}

// ChatML's system text for conversations without one: between its marks in one
// literal.
std::string DefaultSystem(const JinjaText& text) {
  for (absl::string_view literal : text.literals) {
    if (!absl::ConsumePrefix(&literal, "<|im_start|>system\n")) continue;
    const size_t end = literal.find("<|im_end|>");
    if (end == absl::string_view::npos || end == 0) continue;
    return std::string(literal.substr(0, end));
  }
  return "";
}

// The date that a template of Llama 3 states for want of a clock.
std::string StatedDate(const JinjaText& text) {
  for (const std::string& literal : text.literals) {
    // "26 Jul 2024".
    if (literal.size() == 11 && literal[2] == ' ' && literal[6] == ' ') {
      return literal;
    }
  }
  return "";
}

}  // namespace

absl::Status ChatTemplate::SetForm(const JinjaText& text,
                                   absl::string_view jinja) {
  if (Has(text, kAssistant) && Has(text, kUser)) {
    form_ = Form::kDeepSeek;
    if (Has(text, absl::StrCat(kAssistant, "<think>\n"))) {
      thought_ = "<think>\n";
    }
  } else if (Has(text, "<|im_start|>") && Has(text, "<|im_end|>")) {
    form_ = Form::kChatMl;
    default_system_ = DefaultSystem(text);
    if (Has(text, "<|im_start|>assistant\n<think>\n")) thought_ = "<think>\n";
  } else if (Has(text, "<|end_header_id|>\n\n") && Has(text, "<|eot_id|>")) {
    form_ = Form::kLlama3;
    has_dates_ = Has(text, kKnowledgeDate);
    has_clock_ = absl::StrContains(jinja, "strftime_now");
    date_ = StatedDate(text);
  } else if (Has(text, "<<SYS>>\n") && Has(text, "[INST] ") &&
             Has(text, " [/INST]")) {
    form_ = Form::kLlama2;
  } else if (HasWhole(text, " [INST] ") && HasWhole(text, " [/INST]")) {
    form_ = Form::kMistralV1;
  } else if (HasWhole(text, "[INST] ") && HasWhole(text, " [/INST]")) {
    form_ = Form::kMistral;
    space_behind_eos_ = HasWhole(text, " ");
  } else if (HasWhole(text, "[INST] ") && HasWhole(text, "[/INST]")) {
    form_ = Form::kMistralV3;
  } else if (HasWhole(text, "[INST]") && HasWhole(text, "[/INST]")) {
    form_ = Form::kMistralTekken;
  } else {
    return absl::UnimplementedError(absl::StrCat(
        "the model's chat template is of no known form (ChatML, Llama 2, Llama "
        "3, Mistral, DeepSeek); it starts with \"",
        absl::CHexEscape(jinja.substr(0, 60)), "\""));
  }
  return absl::OkStatus();
}

ChatTemplate::Texts ChatTemplate::FormTexts() const {
  const std::vector<std::string> dates =
      has_dates_ ? std::vector<std::string>{kKnowledgeDate, kToday, "\n\n"}
                 : std::vector<std::string>();
  switch (form_) {
    case Form::kChatMl:
      // Whole: a role's end, thoughts of the last turn, and their absence.
      return {
          {"<|im_start|>", "<|im_start|>system\n", "<|im_start|>user\n",
           "<|im_start|>assistant\n", "<|im_end|>\n", default_system_,
           thought_},
          {"\n", "\n<think>\n", "\n</think>\n\n", "<think>\n\n</think>\n\n"},
          "<|im_end|>\n"};
    case Form::kDeepSeek:
      // Whole: what goes between system turns, of which there is one.
      return {{kUser, kAssistant, thought_, ends_.eos}, {"\n\n"}, kUser};
    case Form::kLlama2:
      return {{"[INST] ", " [/INST]", "<<SYS>>\n", "\n<</SYS>>\n\n", " "},
              {},
              "\n<</SYS>>\n\n"};
    case Form::kLlama3: {
      Texts texts = {{"<|start_header_id|>", "<|end_header_id|>\n\n",
                      "<|eot_id|>", "system", "user", "assistant"},
                     {date_},
                     has_dates_ ? kToday : "<|eot_id|>"};
      texts.parts.insert(texts.parts.end(), dates.begin(), dates.end());
      return texts;
    }
    case Form::kMistral:
      return {{"[INST] ", " [/INST]", space_behind_eos_ ? " " : ""}, {}, ""};
    case Form::kMistralV1:
      return {{" [INST] ", " [/INST]", "\n\n", " "}, {}, " "};
    case Form::kMistralV3:
      return {{"[INST] ", "[/INST]", "\n\n", " "}, {}, " "};
    case Form::kMistralTekken:
      return {{"[INST]", "[/INST]", "\n\n"}, {}, "\n\n"};
  }
  return {};
}

absl::Status ChatTemplate::CheckTexts(const JinjaText& text) const {
  const Texts texts = FormTexts();
  const auto refuse = [this](absl::string_view how, absl::string_view what) {
    return absl::UnimplementedError(
        absl::StrCat("the model's chat template looks like ", name(), ", but ",
                     how, " \"", absl::CHexEscape(what.substr(0, 80)), "\""));
  };
  for (const std::string& literal : text.literals) {
    if (literal == ends_.bos || IsMadeOf(literal, texts.parts) ||
        std::count(texts.whole.begin(), texts.whole.end(), literal) > 0) {
      continue;
    }
    return refuse("writes", literal);
  }
  if (!Has(text, texts.required)) {
    return refuse("never writes", texts.required);
  }
  if (text.eos && (form_ == Form::kChatMl || form_ == Form::kLlama3)) {
    return refuse("writes", "eos_token");
  }
  if (has_dates_ && date_.empty() && !has_clock_) {
    return refuse("states", "no date");
  }
  return absl::OkStatus();
}

absl::StatusOr<ChatTemplate> ChatTemplate::Recognise(absl::string_view jinja,
                                                     Ends ends) {
  FARKV_ASSIGN_OR_RETURN(const JinjaText text, ReadJinjaText(jinja));
  ChatTemplate made;
  FARKV_RETURN_IF_ERROR(made.SetForm(text, jinja));
  // A begin or end that the template neither names nor spells is not written.
  // ChatML's marks may be those of the vocabulary, too, and are no begin.
  if (text.bos || (made.form_ != Form::kChatMl && HasWhole(text, ends.bos))) {
    made.ends_.bos = ends.bos;
  }
  if (text.eos || Has(text, ends.eos)) made.ends_.eos = ends.eos;
  made.drops_thoughts_ = absl::StrContains(jinja, kThoughtEnd);
  made.trims_answers_ =
      absl::StrContains(jinja, "|trim") || absl::StrContains(jinja, "| trim");
  FARKV_RETURN_IF_ERROR(made.CheckTexts(text));
  return made;
}

}  // namespace farkv
