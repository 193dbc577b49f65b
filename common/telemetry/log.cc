#include "common/telemetry/log.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"

namespace farkv {
namespace {

// One JSON object per line; nlohmann does the escaping.
class JsonFormatter final : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& message,
              spdlog::memory_buf_t& to) override {
    const auto since_epoch = message.time.time_since_epoch();
    const double seconds = std::chrono::duration<double>(since_epoch).count();
    const nlohmann::json line = {
        {"time", seconds},
        {"level",
         std::string(spdlog::level::to_string_view(message.level).data())},
        {"process",
         std::string(message.logger_name.data(), message.logger_name.size())},
        {"message",
         std::string(message.payload.data(), message.payload.size())}};
    const std::string text =
        line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) +
        "\n";
    to.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<JsonFormatter>();
  }
};

}  // namespace

absl::Status SetUpLogging(const LogOptions& options,
                          const std::string& process) {
  const auto level = spdlog::level::from_str(options.level);
  if (level == spdlog::level::off && options.level != "off") {
    return absl::InvalidArgumentError(
        absl::StrCat("--log-level is \"", options.level,
                     "\", must be debug, info, warn, error or off"));
  }
  if (options.format != "text" && options.format != "json") {
    return absl::InvalidArgumentError(absl::StrCat(
        "--log-format is \"", options.format, "\", must be text or json"));
  }
  auto sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  auto logger = std::make_shared<spdlog::logger>(process, sink);
  if (options.format == "json") {
    logger->set_formatter(std::make_unique<JsonFormatter>());
  } else {
    logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e %^%l%$ %n: %v");
  }
  logger->set_level(level);
  spdlog::set_default_logger(std::move(logger));
  return absl::OkStatus();
}

}  // namespace farkv
