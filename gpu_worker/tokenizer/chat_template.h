// A conversation as the text that a chat model was trained to continue. Model
// files carry a Jinja program for this; it is not run, but recognised as one of
// the known forms by its markers, and anything else is refused. Immutable,
// thread-safe.
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

struct ChatTurn {
  std::string role;  // system, user or assistant
  std::string content;
};

class ChatTemplate {
 public:
  // What templates take from outside: the spelling of the tokens of begin and
  // end, and the day, as in "26 Jul 2024".
  struct Values {
    std::string bos, eos, today;
  };

  // UNIMPLEMENTED when `jinja` is none of ChatML (SmolLM2, Qwen2 and 3), Llama
  // 2, Llama 3, Mistral and DeepSeek.
  static absl::StatusOr<ChatTemplate> Recognise(absl::string_view jinja,
                                                Values values);

  // The text up to where the assistant's answer starts, begin token included.
  // Only what the template wrote may hold special tokens. INVALID_ARGUMENT
  // naming the turn that does not fit: at most one system turn, the first; user
  // and assistant in turns where the template demands it; a user turn last.
  absl::StatusOr<std::vector<TextPart>> Render(
      std::span<const ChatTurn> turns) const;

  const char* name() const;

 private:
  enum class Form {
    kChatMl,
    kLlama2,
    kLlama3,
    kMistral,        // "[INST] text [/INST]", no system turn
    kMistralV3,      // "[INST] text[/INST]", the system text in the last turn
    kMistralTekken,  // the same without spaces
    kDeepSeek,
  };

  class Parts;
  struct Conversation;

  void RenderChatMl(const Conversation& chat, Parts& parts) const;
  void RenderDeepSeek(const Conversation& chat, Parts& parts) const;
  void RenderLlama2(const Conversation& chat, Parts& parts) const;
  void RenderLlama3(const Conversation& chat, Parts& parts) const;
  void RenderMistral(const Conversation& chat, Parts& parts) const;
  void RenderMistralV3(const Conversation& chat, Parts& parts) const;
  absl::Status Check(std::span<const ChatTurn> turns) const;

  Form form_ = Form::kChatMl;
  Values values_;
  std::string default_system_;     // kChatMl: without a system turn
  std::string dates_;              // kLlama3: what a system turn starts with
  bool drops_thoughts_ = false;    // of earlier answers, up to "</think>"
  std::string thought_;            // how the answer starts
  bool space_behind_eos_ = false;  // kMistral
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TOKENIZER_CHAT_TEMPLATE_H_
