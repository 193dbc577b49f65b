#include "memory_node/fill_report.h"

#include <spdlog/sinks/ostream_sink.h>

#include <memory>
#include <sstream>

#include "common/telemetry/log.h"
#include "gtest/gtest.h"

namespace farkv {
namespace {

// What is logged while it lives.
class Logged {
 public:
  Logged() {
    spdlog::set_default_logger(std::make_shared<spdlog::logger>(
        "test", std::make_shared<spdlog::sinks::ostream_sink_mt>(lines_)));
    spdlog::set_pattern("%l: %v");
  }
  ~Logged() { spdlog::set_default_logger(before_); }

  std::string Take() {
    std::string lines = lines_.str();
    lines_.str("");
    return lines;
  }

 private:
  std::ostringstream lines_;
  const std::shared_ptr<spdlog::logger> before_ = spdlog::default_logger();
};

TEST(FillReportTest, SmallPagesWhereHugeOnesWereWantedAreWarnedOfOnce) {
  Logged logged;
  FillReport report(1 << 30);

  report.Slab(true, true);
  report.Slab(false, false);
  EXPECT_EQ(logged.Take(), "");
  report.Slab(true, false);
  EXPECT_EQ(logged.Take(),
            "warning: no reserved huge pages are left: slabs use 4 KiB "
            "pages\n");
  report.Slab(true, false);
  EXPECT_EQ(logged.Take(), "");
}

}  // namespace
}  // namespace farkv
