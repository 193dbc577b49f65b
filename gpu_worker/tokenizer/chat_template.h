// A conversation as the text that a chat model was trained to continue. Model
// files carry a Jinja program for this; it is not run, but recognised as one of
// the known forms by the texts that it writes, and anything else is refused.
// Immutable, thread-safe.
//
// Not here: tools, images, and answers that the model is to go on with.
#ifndef FARKV_GPU_WORKER_TOKENIZER_CHAT_TEMPLATE_H_
#define FARKV_GPU_WORKER_TOKENIZER_CHAT_TEMPLATE_H_

#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gpu_worker/tokenizer/tokenizer.h"

namespace farkv {

struct JinjaText;

struct ChatTurn {
  std::string role;  // system, user or assistant
  std::string content;
};

class ChatTemplate {
 public:
  // How the tokens of begin and end are spelled.
  struct Ends {
    std::string bos, eos;
  };

  // UNIMPLEMENTED when `jinja` is none of ChatML (SmolLM2, Qwen2 and 3), Llama
  // 2, Llama 3, Mistral and DeepSeek, or has a text that its form does not
  // write, naming it. Texts that are for tools only do not count.
  static absl::StatusOr<ChatTemplate> Recognise(absl::string_view jinja,
                                                Ends ends);

  // The text up to where the assistant's answer starts, begin token included.
  // Only what the template wrote may hold special tokens. `today` is the day as
  // in "26 Jul 2024". INVALID_ARGUMENT naming the turn that does not fit: at
  // most one system turn, the first; user and assistant in turns where the
  // template demands it; a user turn last.
  absl::StatusOr<std::vector<TextPart>> Render(std::span<const ChatTurn> turns,
                                               absl::string_view today) const;

  const char* name() const;
  // What a chat without a system turn starts with; empty for nothing.
  const std::string& default_system() const { return default_system_; }

 private:
  enum class Form {
    kChatMl,
    kLlama2,
    kLlama3,
    kMistral,    // "[INST] text [/INST]", no system turn
    kMistralV1,  // " [INST] text [/INST]", the system text in the first turn
    kMistralV3,  // "[INST] text[/INST]", the system text in the last turn
    kMistralTekken,  // the same without spaces
    kDeepSeek,
  };

  class Parts;
  struct Conversation;

  void RenderChatMl(const Conversation& chat, Parts& parts) const;
  void RenderDeepSeek(const Conversation& chat, Parts& parts) const;
  void RenderLlama2(const Conversation& chat, Parts& parts) const;
  void RenderLlama3(const Conversation& chat, absl::string_view today,
                    Parts& parts) const;
  void RenderMistral(const Conversation& chat, Parts& parts) const;
  void RenderMistralV1(const Conversation& chat, Parts& parts) const;
  void RenderMistralV3(const Conversation& chat, Parts& parts) const;
  absl::Status Check(std::span<const ChatTurn> turns) const;

  // What a form writes beside messages, begin and end.
  struct Texts {
    std::vector<std::string> parts;  // literals are made of them
    std::vector<std::string> whole;  // or are one of these
    std::string required;
  };

  absl::Status SetForm(const JinjaText& text, absl::string_view jinja);
  absl::Status CheckTexts(const JinjaText& text) const;
  Texts FormTexts() const;

  Form form_ = Form::kChatMl;
  Ends ends_;                      // empty where the template writes none
  std::string default_system_;     // kChatMl: without a system turn
  bool has_dates_ = false;         // kLlama3: a system turn starts with them
  bool has_clock_ = false;         // kLlama3: the date is today's
  std::string date_;               // kLlama3: else this
  bool drops_thoughts_ = false;    // of earlier answers, up to "</think>"
  std::string thought_;            // how the answer starts
  bool trims_answers_ = false;     // kMistralV1, kMistralV3
  bool space_behind_eos_ = false;  // kMistral
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TOKENIZER_CHAT_TEMPLATE_H_
