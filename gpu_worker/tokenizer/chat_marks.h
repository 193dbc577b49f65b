// Texts of chat templates that both reading and writing them needs.
#ifndef FARKV_GPU_WORKER_TOKENIZER_CHAT_MARKS_H_
#define FARKV_GPU_WORKER_TOKENIZER_CHAT_MARKS_H_

namespace farkv {

// DeepSeek.
inline constexpr char kUser[] = "<｜User｜>";
inline constexpr char kAssistant[] = "<｜Assistant｜>";
inline constexpr char kThoughtEnd[] = "</think>";
// Llama 3.1 and later.
inline constexpr char kKnowledgeDate[] =
    "Cutting Knowledge Date: December 2023\n";
inline constexpr char kToday[] = "Today Date: ";

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TOKENIZER_CHAT_MARKS_H_
