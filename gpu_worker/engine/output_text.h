// Turns the bytes of generated tokens into text to send: whole UTF-8 characters
// only. Holds back what may still become a stop text or a character, fewer
// bytes than the longest stop text and 4 more; bytes that can become none are
// sent as U+FFFD. Thread-compatible.
#ifndef FARKV_GPU_WORKER_ENGINE_OUTPUT_TEXT_H_
#define FARKV_GPU_WORKER_ENGINE_OUTPUT_TEXT_H_

#include <optional>
#include <string>
#include <vector>

namespace farkv {

class OutputText {
 public:
  // Stop texts are matched over token borders; the earliest match wins, among
  // equals the first of the list. `include_stop` sends the match as well.
  OutputText(std::vector<std::string> stop_texts, bool include_stop)
      : stop_texts_(std::move(stop_texts)), include_stop_(include_stop) {}

  // The text starts here and its first space is SentencePiece's own: not sent.
  void DropFirstSpace() { drop_first_space_ = true; }
  // Appends a piece, any bytes, and returns what may be sent now. After a
  // match nothing more is sent.
  std::string Push(const std::string& piece);
  // The same for a piece that was not chosen and ends nothing: no stop text is
  // looked for in it, nor in what was held back before it.
  std::string PushForced(const std::string& piece);
  // Everything held back, when the output ends without a match.
  std::string Flush();
  const std::optional<std::string>& matched() const { return matched_; }

 private:
  void TakeCharacters(bool at_end);
  size_t SafeLength() const;

  std::vector<std::string> stop_texts_;
  bool include_stop_;
  bool drop_first_space_ = false;
  std::string bytes_;  // at most the front of one character
  std::string held_;   // whole characters
  std::optional<std::string> matched_;
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_ENGINE_OUTPUT_TEXT_H_
