#include "common/telemetry/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/telemetry/log.h"

namespace farkv {
namespace {

using ::testing::HasSubstr;

TEST(MetricsTest, ValuesAreRenderedInPrometheusText) {
  Metrics metrics;
  Counter counter =
      metrics.AddCounter("farkv_x_total", "Xs", {{"mode", "map"}});
  metrics.AddCounter("farkv_x_total", "Xs", {{"mode", "map"}}).Increment();
  counter.Increment(2);
  metrics.AddGauge("farkv_y_bytes", "Ys").Set(7);
  metrics.AddSecondsHistogram("farkv_z_seconds", "Zs").Observe(0.5);

  const std::string text = metrics.Render();

  EXPECT_THAT(text, HasSubstr("farkv_x_total{mode=\"map\"} 3"));
  EXPECT_THAT(text, HasSubstr("farkv_y_bytes 7"));
  EXPECT_THAT(text, HasSubstr("farkv_z_seconds_count 1"));
}

TEST(MetricsTest, AMetricWithoutRegistryDoesNothing) {
  Counter counter;
  counter.Increment();
  Gauge gauge;
  gauge.Set(1);
  Histogram histogram;
  histogram.Observe(1);
}

TEST(LogTest, BadOptionsAreNamed) {
  EXPECT_THAT(std::string(SetUpLogging({"loud", "text"}, "p").message()),
              HasSubstr("loud"));
  EXPECT_THAT(std::string(SetUpLogging({"info", "xml"}, "p").message()),
              HasSubstr("xml"));
}

}  // namespace
}  // namespace farkv
