#include "common/telemetry/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <vector>

namespace farkv {
namespace {

const prometheus::Histogram::BucketBoundaries& SecondsBuckets() {
  static const prometheus::Histogram::BucketBoundaries buckets = [] {
    std::vector<double> bounds;
    for (double decade = 1e-5; decade < 99.0; decade *= 10.0) {
      for (double step : {1.0, 2.0, 5.0}) bounds.push_back(decade * step);
    }
    bounds.push_back(100.0);
    return bounds;
  }();
  return buckets;
}

}  // namespace

// A handle is null only before Metrics has filled it in.
void Counter::Increment(double amount) {
  if (handle_ != nullptr) {
    static_cast<prometheus::Counter*>(handle_)->Increment(amount);
  }
}

void Gauge::Set(double value) {
  if (handle_ != nullptr) static_cast<prometheus::Gauge*>(handle_)->Set(value);
}

void Histogram::Observe(double value) {
  if (handle_ != nullptr) {
    static_cast<prometheus::Histogram*>(handle_)->Observe(value);
  }
}

Metrics::Metrics() : registry_(std::make_unique<prometheus::Registry>()) {}
Metrics::~Metrics() = default;

Counter Metrics::AddCounter(const std::string& name, const std::string& help,
                            const MetricLabels& labels) {
  Counter counter;
  counter.handle_ = &prometheus::BuildCounter()
                         .Name(name)
                         .Help(help)
                         .Register(*registry_)
                         .Add(labels);
  return counter;
}

Gauge Metrics::AddGauge(const std::string& name, const std::string& help,
                        const MetricLabels& labels) {
  Gauge gauge;
  gauge.handle_ = &prometheus::BuildGauge()
                       .Name(name)
                       .Help(help)
                       .Register(*registry_)
                       .Add(labels);
  return gauge;
}

Histogram Metrics::AddSecondsHistogram(const std::string& name,
                                       const std::string& help,
                                       const MetricLabels& labels) {
  Histogram histogram;
  histogram.handle_ = &prometheus::BuildHistogram()
                           .Name(name)
                           .Help(help)
                           .Register(*registry_)
                           .Add(labels, SecondsBuckets());
  return histogram;
}

std::map<std::string, double> Metrics::Sums() const {
  std::map<std::string, double> sums;
  for (const prometheus::MetricFamily& family : registry_->Collect()) {
    const bool counter = family.type == prometheus::MetricType::Counter;
    if (!counter && family.type != prometheus::MetricType::Gauge) continue;
    double& sum = sums[family.name];
    for (const prometheus::ClientMetric& metric : family.metric) {
      sum += counter ? metric.counter.value : metric.gauge.value;
    }
  }
  return sums;
}

std::string Metrics::Render() const {
  return prometheus::TextSerializer().Serialize(registry_->Collect());
}

}  // namespace farkv
