// What a Generate stream has brought, as farkvctl shows it. Thread-compatible.
#ifndef FARKV_ADMIN_CLI_GENERATION_RESULT_H_
#define FARKV_ADMIN_CLI_GENERATION_RESULT_H_

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "farkv/worker/v1/generation.pb.h"

namespace farkv {

class GenerationResult {
 public:
  void Take(const farkv::worker::v1::GenerateResponse& response);

  // The first output's fields; of several outputs also "outputs", each with
  // the same fields. Log probabilities where some came.
  nlohmann::ordered_json Document() const;
  // Texts, each under its number where there are several, and a line for each
  // token that has log probabilities.
  void Print(std::ostream& out) const;
  // The tier block of each output.
  void PrintTiers(std::ostream& out) const;

  const std::optional<farkv::worker::v1::GenerateError>& error() const {
    return error_;
  }
  // An error where an output is not all that was asked for.
  absl::Status Completeness() const;

 private:
  struct OutputParts {
    std::string text;
    std::vector<int32_t> tokens;
    std::vector<farkv::worker::v1::TokenLogprobs> logprobs;
    std::vector<farkv::worker::v1::TokenLogprobs> prompt_logprobs;
    farkv::worker::v1::Finished finished;
  };

  static nlohmann::ordered_json Fields(const OutputParts& output);
  static absl::Status Completeness(const OutputParts& output);

  std::string request_id_;
  std::map<int32_t, OutputParts> outputs_ = {{0, {}}};  // by their index
  std::optional<farkv::worker::v1::GenerateError> error_;
};

}  // namespace farkv

#endif  // FARKV_ADMIN_CLI_GENERATION_RESULT_H_
