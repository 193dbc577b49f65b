// The metrics of one process: counters, gauges and histograms by the names of
// OPS 2 (prefix farkv_, base units, counters end in _total), stored by
// prometheus-cpp. A metric is registered once and lives as long as the
// registry; updating one is cheap and thread-safe.
#ifndef FARKV_COMMON_TELEMETRY_METRICS_H_
#define FARKV_COMMON_TELEMETRY_METRICS_H_

#include <map>
#include <memory>
#include <string>

namespace prometheus {
class Registry;
}

namespace farkv {

using MetricLabels = std::map<std::string, std::string>;

class Counter {
 public:
  void Increment(double amount = 1.0);

 private:
  friend class Metrics;
  void* handle_ = nullptr;
};

class Gauge {
 public:
  void Set(double value);

 private:
  friend class Metrics;
  void* handle_ = nullptr;
};

class Histogram {
 public:
  void Observe(double value);

 private:
  friend class Metrics;
  void* handle_ = nullptr;
};

class Metrics {
 public:
  Metrics();
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // The same name and labels give the same metric.
  Counter AddCounter(const std::string& name, const std::string& help,
                     const MetricLabels& labels = {});
  Gauge AddGauge(const std::string& name, const std::string& help,
                 const MetricLabels& labels = {});
  // Buckets in seconds, 10 us to 100 s, about three per decade.
  Histogram AddSecondsHistogram(const std::string& name,
                                const std::string& help,
                                const MetricLabels& labels = {});

  // Of each counter and gauge the sum over its labels, by name. Histograms are
  // left out.
  std::map<std::string, double> Sums() const;
  // Prometheus text format, as /metrics serves it.
  std::string Render() const;

 private:
  std::unique_ptr<prometheus::Registry> registry_;
};

}  // namespace farkv

#endif  // FARKV_COMMON_TELEMETRY_METRICS_H_
