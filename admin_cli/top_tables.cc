#include "admin_cli/top_tables.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "admin_cli/rates.h"
#include "admin_cli/tables.h"
#include "common/rpc/duration_codec.h"

namespace farkv {
namespace {

using namespace admin::v1;  // NOLINT: the messages of the admin service

constexpr char kStored[] = "farkv_node_store_bytes_total";
constexpr char kFetched[] = "farkv_node_fetch_bytes_total";
constexpr char kAttended[] = "farkv_node_attend_bytes_total";
constexpr char kPromoted[] = "farkv_worker_promoted_tokens_total";
constexpr char kLate[] = "farkv_worker_late_fetches_total";
constexpr char kTokens[] = "farkv_worker_generated_tokens_total";
constexpr char kRunning[] = "farkv_worker_running_sequences";
constexpr char kWaiting[] = "farkv_worker_waiting_requests";
constexpr char kT0Used[] = "farkv_worker_t0_used_bytes";
constexpr char kT0Capacity[] = "farkv_worker_t0_capacity_bytes";

double ValueOf(const nlohmann::json& value) {
  return value.is_number() ? value.get<double>() : 0.0;
}

std::string ShowBytes(const nlohmann::json& value) {
  return value.is_null() ? "-" : ShownBytes(ValueOf(value));
}

std::string ShowByteRate(const nlohmann::json& value) {
  return value.is_null() ? "-" : ShownBytes(ValueOf(value)) + "/s";
}

std::string ShowRate(const nlohmann::json& value) {
  return value.is_null() ? "-" : absl::StrFormat("%.1f", ValueOf(value));
}

std::string ShowCount(const nlohmann::json& value) {
  return value.is_null() ? "-" : absl::StrFormat("%.0f", ValueOf(value));
}

std::string ShowShare(const nlohmann::json& value) {
  return value.is_null() ? "-"
                         : absl::StrFormat("%.0f%%", 100 * ValueOf(value));
}

// [{"worker": "a", "transport": "map"}] -> "a:map".
std::string ShowTransports(const nlohmann::json& value) {
  std::vector<std::string> shown;
  for (const auto& item : value) {
    shown.push_back(absl::StrCat(item.value("worker", ""), ":",
                                 item.value("transport", "")));
  }
  return shown.empty() ? "-" : absl::StrJoin(shown, ",");
}

std::string StateOf(const ProcessSample& sample) {
  if (absl::IsDeadlineExceeded(sample.status)) return "silent";
  if (absl::IsUnavailable(sample.status)) return "unreachable";
  if (!sample.status.ok()) {
    return absl::StatusCodeToString(sample.status.code());
  }
  if (sample.process.draining()) return "draining";
  return sample.process.pressure() ? "pressure" : "ready";
}

nlohmann::json Metric(const ProcessSample& sample, const char* name) {
  const auto& metrics = sample.process.metrics();
  const auto found = metrics.find(name);
  if (!sample.status.ok() || found == metrics.end()) return nullptr;
  return found->second;
}

nlohmann::json Share(const nlohmann::json& part, const nlohmann::json& whole) {
  if (part.is_null() || ValueOf(whole) <= 0) return nullptr;
  return ValueOf(part) / ValueOf(whole);
}

bool IsWorker(const ProcessSample& sample) {
  if (sample.process.kind() == PROCESS_KIND_UNSPECIFIED) {
    return sample.is_worker;
  }
  return sample.process.kind() == PROCESS_KIND_WORKER;
}

void AddPoolRow(const Pool& pool, Output& output) {
  const uint64_t taken = pool.used_bytes() + pool.quarantined_bytes();
  const uint64_t free =
      pool.capacity_bytes() - std::min(pool.capacity_bytes(), taken);
  nlohmann::json numa = nullptr;
  if (pool.tier() != types::v1::TIER_T0 && pool.numa_node() >= 0) {
    numa = pool.numa_node();
  }
  output.AddRow(
      {pool.owner_id(), TierName(pool.tier()), numa, pool.capacity_bytes(),
       pool.used_bytes(), free, Share(pool.used_bytes(), pool.capacity_bytes()),
       pool.used_pages(), pool.quarantined_bytes(), pool.stranded_bytes()});
}

void Accumulate(const nlohmann::json& rate, std::optional<double>& sum) {
  if (!rate.is_null()) sum = sum.value_or(0) + ValueOf(rate);
}

nlohmann::json OrNull(const std::optional<double>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json();
}

}  // namespace

std::optional<double> RatePerSecond(const GetProcessResponse& before,
                                    const GetProcessResponse& now,
                                    const std::string& metric) {
  const auto old_value = before.metrics().find(metric);
  const auto new_value = now.metrics().find(metric);
  if (old_value == before.metrics().end() || new_value == now.metrics().end()) {
    return std::nullopt;
  }
  // Time as the process has counted it: an answer may have come late.
  const absl::Duration time =
      FromProto(now.uptime()) - FromProto(before.uptime());
  const double rise = new_value->second - old_value->second;
  if (before.id() != now.id() || before.epoch() != now.epoch() ||
      time <= absl::ZeroDuration() || rise < 0) {
    return std::nullopt;
  }
  return rise / absl::ToDoubleSeconds(time);
}

void TopTables::Add(std::vector<ProcessSample> samples, absl::Time time) {
  samples_ = std::move(samples);
  time_ = time;
  for (const ProcessSample& sample : samples_) {
    Known& known = known_[sample.address];
    if (!sample.status.ok()) continue;
    known.id = sample.process.id();
    known.before = std::exchange(known.now, sample.process);
  }
}

nlohmann::json TopTables::Rate(const ProcessSample& sample,
                               const char* metric) const {
  const Known& known = known_.at(sample.address);
  if (!sample.status.ok() || !known.before) return nullptr;
  return OrNull(RatePerSecond(*known.before, *known.now, metric));
}

std::string TopTables::IdOf(const ProcessSample& sample) const {
  const std::string& id = known_.at(sample.address).id;
  return id.empty() ? sample.address : id;
}

nlohmann::json TopTables::Transports(const ProcessSample& node) const {
  nlohmann::json transports = nlohmann::json::array();
  for (const ProcessSample& worker : samples_) {
    if (!IsWorker(worker)) continue;
    for (const Peer& peer : worker.peers) {
      if (peer.id() != IdOf(node)) continue;
      transports.push_back(
          {{"worker", IdOf(worker)},
           {"transport", peer.healthy() ? peer.transport() : "down"}});
    }
  }
  return transports;
}

std::array<Output, TopTables::kTables> TopTables::Empty() {
  return {Output("NodeList",
                 {{"NODE", "node"},
                  {"STATE", "state"},
                  {"SESSIONS", "sessions", false, ShowCount},
                  {"STORED/S", "storedBytesPerSecond", false, ShowByteRate},
                  {"FETCHED/S", "fetchedBytesPerSecond", false, ShowByteRate},
                  {"ATTENDED/S", "attendedBytesPerSecond", false, ShowByteRate},
                  {"TRANSPORTS", "transports", false, ShowTransports},
                  {"ADDRESS", "address", true}}),
          Output("PoolList",
                 {{"OWNER", "owner"},
                  {"TIER", "tier"},
                  {"NUMA", "numaNode", false, ShowCount},
                  {"CAPACITY", "capacityBytes", false, ShowBytes},
                  {"USED", "usedBytes", false, ShowBytes},
                  {"FREE", "freeBytes", false, ShowBytes},
                  {"USE", "usedShare", false, ShowShare},
                  {"PAGES", "usedPages", false, ShowCount},
                  {"QUARANTINED", "quarantinedBytes", false, ShowBytes},
                  {"STRANDED", "strandedBytes", true, ShowBytes}},
                 /*name_columns=*/2),
          Output("WorkerList",
                 {{"WORKER", "worker"},
                  {"STATE", "state"},
                  {"RUNNING", "running", false, ShowCount},
                  {"WAITING", "waiting", false, ShowCount},
                  {"T0-USED", "t0UsedBytes", false, ShowBytes},
                  {"T0", "t0UsedShare", false, ShowShare},
                  {"TOKENS/S", "tokensPerSecond", false, ShowRate},
                  {"PROMOTED/S", "promotedTokensPerSecond", false, ShowRate},
                  {"LATE", "lateFetches", false, ShowCount},
                  {"LATE/S", "lateFetchesPerSecond", false, ShowRate},
                  {"ADDRESS", "address", true}})};
}

void TopTables::AddNode(const ProcessSample& sample, Output& output) const {
  nlohmann::json sessions = nullptr;
  if (sample.status.ok()) sessions = sample.process.sessions();
  output.AddRow({IdOf(sample), StateOf(sample), sessions, Rate(sample, kStored),
                 Rate(sample, kFetched), Rate(sample, kAttended),
                 Transports(sample), sample.address});
}

void TopTables::AddWorker(const ProcessSample& sample, Output& output) const {
  const nlohmann::json used = Metric(sample, kT0Used);
  output.AddRow({IdOf(sample), StateOf(sample), Metric(sample, kRunning),
                 Metric(sample, kWaiting), used,
                 Share(used, Metric(sample, kT0Capacity)),
                 Rate(sample, kTokens), Rate(sample, kPromoted),
                 Metric(sample, kLate), Rate(sample, kLate), sample.address});
}

std::array<Output, TopTables::kTables> TopTables::Tables() const {
  std::array<Output, kTables> tables = Empty();
  for (const ProcessSample& sample : samples_) {
    if (IsWorker(sample)) {
      AddWorker(sample, tables[2]);
    } else {
      AddNode(sample, tables[0]);
    }
    if (!sample.status.ok()) continue;
    for (const Pool& pool : sample.pools) AddPoolRow(pool, tables[1]);
  }
  return tables;
}

TopTables::Totals TopTables::Sum() const {
  Totals sum;
  for (const ProcessSample& sample : samples_) {
    const bool worker = IsWorker(sample);
    ++(worker ? sum.workers : sum.nodes);
    if (!sample.status.ok()) continue;
    ++(worker ? sum.workers_up : sum.nodes_up);
    if (!worker) sum.sessions += sample.process.sessions();
    Accumulate(Rate(sample, kStored), sum.stored);
    Accumulate(Rate(sample, kFetched), sum.fetched);
    Accumulate(Rate(sample, kAttended), sum.attended);
    Accumulate(Rate(sample, kPromoted), sum.promoted);
    Accumulate(Rate(sample, kLate), sum.late_rate);
    Accumulate(Rate(sample, kTokens), sum.tokens);
    sum.late += ValueOf(Metric(sample, kLate));
  }
  return sum;
}

std::string TopTables::Summary() const {
  const Totals sum = Sum();
  return absl::StrCat(
      absl::FormatTime("%H:%M:%S", time_, absl::LocalTimeZone()), "  ",
      sum.nodes_up, "/", sum.nodes, " nodes, ", sum.workers_up, "/",
      sum.workers, " workers, ", sum.sessions, " sessions; stored ",
      ShowByteRate(OrNull(sum.stored)), ", fetched ",
      ShowByteRate(OrNull(sum.fetched)), ", attended ",
      ShowByteRate(OrNull(sum.attended)), "; tokens/s ",
      ShowRate(OrNull(sum.tokens)), ", promoted/s ",
      ShowRate(OrNull(sum.promoted)), ", late ", ShowCount(sum.late), " (",
      ShowRate(OrNull(sum.late_rate)), "/s)");
}

nlohmann::ordered_json TopTables::Document(const std::string& sort_by) const {
  const Totals sum = Sum();
  const std::array<Output, kTables> tables = Tables();
  nlohmann::ordered_json document;
  document["apiVersion"] = "farkv/v1";
  document["kind"] = "Top";
  document["time"] =
      absl::FormatTime(absl::RFC3339_sec, time_, absl::UTCTimeZone());
  document["total"] = {{"nodes", sum.nodes},
                       {"nodesUp", sum.nodes_up},
                       {"workers", sum.workers},
                       {"workersUp", sum.workers_up},
                       {"sessions", sum.sessions},
                       {"storedBytesPerSecond", OrNull(sum.stored)},
                       {"fetchedBytesPerSecond", OrNull(sum.fetched)},
                       {"attendedBytesPerSecond", OrNull(sum.attended)},
                       {"tokensPerSecond", OrNull(sum.tokens)},
                       {"promotedTokensPerSecond", OrNull(sum.promoted)},
                       {"lateFetches", sum.late},
                       {"lateFetchesPerSecond", OrNull(sum.late_rate)}};
  document["nodes"] = tables[0].Items(sort_by);
  document["pools"] = tables[1].Items(sort_by);
  document["workers"] = tables[2].Items(sort_by);
  return document;
}

int TopTables::ExitCode() const {
  size_t failed = 0, unreachable = 0;
  for (const ProcessSample& sample : samples_) {
    if (sample.status.ok()) continue;
    ++failed;
    if (IsUnreachable(sample.status)) ++unreachable;
  }
  return ExitCodeOf(samples_.size(), failed, unreachable);
}

}  // namespace farkv
