// Turns the pieces of generated tokens into text to send: holds back what may
// still become a stop text and what is not yet a whole UTF-8 character.
// Thread-compatible.
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

  // Appends a piece and returns what may be sent now. After a match nothing
  // more is sent.
  std::string Push(const std::string& piece);
  // Everything held back, when the output ends without a match.
  std::string Flush();
  const std::optional<std::string>& matched() const { return matched_; }

 private:
  size_t SafeLength() const;

  std::vector<std::string> stop_texts_;
  bool include_stop_;
  std::string held_;
  std::optional<std::string> matched_;
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_ENGINE_OUTPUT_TEXT_H_
