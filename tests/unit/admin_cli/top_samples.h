// Samples of processes that never were.
#ifndef FARKV_TESTS_UNIT_ADMIN_CLI_TOP_SAMPLES_H_
#define FARKV_TESTS_UNIT_ADMIN_CLI_TOP_SAMPLES_H_

#include <map>
#include <string>

#include "admin_cli/top_sample.h"

namespace farkv {

using SampledMetrics = std::map<std::string, double>;

inline ProcessSample SampleOf(bool worker, const std::string& id,
                              int64_t uptime_seconds,
                              const SampledMetrics& metrics) {
  ProcessSample sample;
  sample.address = id + ":1";
  sample.is_worker = worker;
  sample.process.set_kind(worker ? admin::v1::PROCESS_KIND_WORKER
                                 : admin::v1::PROCESS_KIND_MEMORY_NODE);
  sample.process.set_id(id);
  sample.process.set_epoch(7);
  sample.process.mutable_uptime()->set_seconds(uptime_seconds);
  for (const auto& [name, value] : metrics) {
    (*sample.process.mutable_metrics())[name] = value;
  }
  return sample;
}

inline ProcessSample SilentSample(bool worker, const std::string& id) {
  ProcessSample sample;
  sample.address = id + ":1";
  sample.is_worker = worker;
  sample.status = absl::DeadlineExceededError("no answer");
  return sample;
}

}  // namespace farkv

#endif  // FARKV_TESTS_UNIT_ADMIN_CLI_TOP_SAMPLES_H_
