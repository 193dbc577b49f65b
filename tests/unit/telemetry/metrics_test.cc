#include "common/telemetry/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/telemetry/failure_counter.h"
#include "common/telemetry/log.h"

namespace farkv {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

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

TEST(MetricsTest, SumsAddUpTheSeriesOfANameAndLeaveHistogramsOut) {
  Metrics metrics;
  metrics.AddCounter("farkv_x_total", "Xs", {{"mode", "map"}}).Increment(2);
  metrics.AddCounter("farkv_x_total", "Xs", {{"mode", "tcp"}}).Increment(3);
  metrics.AddGauge("farkv_y_bytes", "Ys").Set(-7);
  metrics.AddSecondsHistogram("farkv_z_seconds", "Zs").Observe(0.5);

  EXPECT_THAT(metrics.Sums(),
              ElementsAre(Pair("farkv_x_total", 5), Pair("farkv_y_bytes", -7)));
}

TEST(MetricsTest, AMetricWithoutRegistryDoesNothing) {
  Counter counter;
  counter.Increment();
  Gauge gauge;
  gauge.Set(1);
  Histogram histogram;
  histogram.Observe(1);
}

TEST(FailureCounterTest, FailuresAreCountedByReasonAndOkIsNone) {
  Metrics metrics;
  FailureCounter failures(metrics, "farkv_failures_total", "Failures");

  failures.Count(absl::StatusCode::kDataLoss);
  failures.Count(absl::StatusCode::kDataLoss);
  failures.Count(absl::StatusCode::kOk);
  FailureCounter().Count(absl::StatusCode::kDataLoss);

  const std::string text = metrics.Render();
  EXPECT_THAT(text, HasSubstr("{reason=\"DATA_LOSS\"} 2"));
  EXPECT_THAT(text, HasSubstr("{reason=\"UNAUTHENTICATED\"} 0"));
  EXPECT_THAT(text, Not(HasSubstr("{reason=\"OK\"}")));
}

TEST(LogTest, BadOptionsAreNamed) {
  EXPECT_THAT(std::string(SetUpLogging({"loud", "text"}, "p").message()),
              HasSubstr("loud"));
  EXPECT_THAT(std::string(SetUpLogging({"info", "xml"}, "p").message()),
              HasSubstr("xml"));
}

}  // namespace
}  // namespace farkv
