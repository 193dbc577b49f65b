#include "admin_cli/tables.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/parse.h"
#include "common/rpc/duration_codec.h"

namespace farkv {
namespace {

using namespace admin::v1;  // NOLINT: the messages of the admin service

std::string Seconds(const google::protobuf::Duration& duration) {
  return absl::FormatDuration(
      absl::Trunc(FromProto(duration), absl::Milliseconds(100)));
}

// Empty where there is none.
std::string Microseconds(const google::protobuf::Duration& duration) {
  const absl::Duration time = FromProto(duration);
  if (time == absl::ZeroDuration()) return "";
  return absl::FormatDuration(absl::Trunc(time, absl::Microseconds(1)));
}

std::string StateOf(const GetProcessResponse& process) {
  if (process.draining()) return "draining";
  return process.pressure() ? "pressure" : "ready";
}

}  // namespace

std::string TierName(types::v1::Tier tier) {
  return absl::StrCat("T", static_cast<int>(tier) - 1);
}

Output NodeOutput() {
  return Output("NodeList", {{"NODE", "id"},
                             {"ADDRESS", "address"},
                             {"STATE", "state"},
                             {"EPOCH", "epoch"},
                             {"SESSIONS", "sessions"},
                             {"UPTIME", "uptime"},
                             {"KERNELS", "kernelTarget"},
                             {"VERSION", "version"},
                             {"PROTOCOL", "protocolVersion", true},
                             {"PAGE-FORMAT", "pageFormatVersion", true}});
}

void AddNode(const GetProcessResponse& process, const std::string& address,
             Output& output) {
  const auto& handshake = process.handshake();
  output.AddRow({process.id(), address, StateOf(process), process.epoch(),
                 process.sessions(), Seconds(process.uptime()),
                 handshake.kernel_target(), handshake.software_version(),
                 handshake.protocol_version(),
                 handshake.page_format_version()});
}

Output WorkerOutput() {
  return Output("WorkerList", {{"WORKER", "id"},
                               {"ADDRESS", "address"},
                               {"STATE", "state"},
                               {"SEQUENCES", "sequences"},
                               {"UPTIME", "uptime"},
                               {"KERNELS", "kernelTarget"},
                               {"VERSION", "version"},
                               {"MODEL", "model", true},
                               {"MEMORY-NODES", "memoryNodes", true}});
}

void AddWorker(const GetProcessResponse& process, const std::string& address,
               Output& output) {
  const auto setting = [&process](const char* name) {
    const auto found = process.config().find(name);
    return found == process.config().end() ? std::string() : found->second;
  };
  output.AddRow({process.id(), address, StateOf(process), process.sessions(),
                 Seconds(process.uptime()), process.handshake().kernel_target(),
                 process.handshake().software_version(), setting("model"),
                 setting("memory-nodes")});
}

Output PoolOutput() {
  return Output("PoolList",
                {{"OWNER", "owner"},
                 {"TIER", "tier"},
                 {"CAPACITY", "capacity"},
                 {"USED-BYTES", "usedBytes"},
                 {"PAGES", "usedPages"},
                 {"OF", "capacityPages"},
                 {"RESERVED", "reservedPages"},
                 {"QUARANTINED", "quarantinedPages"},
                 {"LIVE-ROWS", "liveRows"},
                 {"SLABS", "slabs"},
                 {"HUGE", "hugePages"},
                 {"NUMA", "numaNode", true}},
                /*name_columns=*/2);
}

void AddPool(const Pool& pool, Output& output) {
  output.AddRow(
      {pool.owner_id(), TierName(pool.tier()),
       FormatBytes(pool.capacity_bytes()), pool.used_bytes(), pool.used_pages(),
       pool.capacity_pages(), pool.reserved_pages(), pool.quarantined_pages(),
       pool.live_rows(), pool.slabs(), pool.huge_pages(), pool.numa_node()});
}

Output SessionOutput() {
  return Output("SessionList", {{"SESSION", "id"},
                                {"NODE", "node"},
                                {"TENANT", "tenant"},
                                {"WORKER", "worker"},
                                {"GEOMETRY", "geometry"},
                                {"PAGES", "pages"},
                                {"STORED", "storedPages"},
                                {"BYTES", "bytes"},
                                {"LEASE", "leaseRemaining"},
                                {"AGE", "age"}});
}

void AddSession(const Session& session, const std::string& address,
                Output& output) {
  const auto& g = session.geometry();
  output.AddRow(
      {ShownSession(session.session_id()), address, session.tenant(),
       session.worker_id(),
       absl::StrCat(g.num_layers(), "x", g.num_kv_heads(), "x", g.head_dim()),
       session.pages(), session.stored_pages(), FormatBytes(session.bytes()),
       Seconds(session.lease_remaining()), Seconds(session.age())});
}

Output LeaseOutput() {
  return Output("LeaseList", {{"SESSION", "id"},
                              {"NODE", "node"},
                              {"WORKER", "worker"},
                              {"REMAINING", "remaining"},
                              {"PAGES", "pages"},
                              {"BYTES", "bytes"},
                              {"TENANT", "tenant", true}});
}

void AddLease(const Session& session, const std::string& address,
              Output& output) {
  output.AddRow({ShownSession(session.session_id()), address,
                 session.worker_id(), Seconds(session.lease_remaining()),
                 session.pages(), FormatBytes(session.bytes()),
                 session.tenant()});
}

Output SequenceOutput() {
  return Output("SequenceList", {{"REQUEST", "requestId"},
                                 {"SESSION", "sessionId"},
                                 {"STATE", "state"},
                                 {"PROMPT", "promptTokens"},
                                 {"GENERATED", "generatedTokens"},
                                 {"T0", "t0Tokens"},
                                 {"T1", "t1Tokens"},
                                 {"T2", "t2Tokens", true},
                                 {"EVICTED", "t3Tokens", true},
                                 {"LOSSY", "lossyTokens", true},
                                 {"UNDONE", "undonePromotions", true},
                                 {"T0-BYTES", "t0Bytes", true},
                                 {"COLD-ROWS", "coldRowsRead"},
                                 {"COLD-MODE", "coldMode"},
                                 {"AGE", "age"}});
}

void AddSequence(const Sequence& s, Output& output) {
  output.AddRow({s.request_id(), ShownSession(s.session_id()), s.state(),
                 s.prompt_tokens(), s.generated_tokens(), s.t0_tokens(),
                 s.t1_tokens(), s.t2_tokens(), s.t3_tokens(), s.lossy_tokens(),
                 s.undone_promotions(), s.t0_bytes(), s.cold_rows_read(),
                 s.cold_mode(), Seconds(s.age())});
}

Output PeerOutput() {
  return Output("PeerList",
                {{"OF", "of"},
                 {"PEER", "id"},
                 {"ADDRESS", "address"},
                 {"TRANSPORT", "transport"},
                 {"HEALTHY", "healthy"},
                 {"SENT-BYTES", "bytesSent"},
                 {"RECEIVED-BYTES", "bytesReceived"},
                 {"LAST-HEARD", "lastHeartbeat"},
                 {"EPOCH", "epoch", true},
                 {"COLD-MODE", "coldMode", true},
                 {"REASON", "coldReason", true},
                 {"LINK-BYTES/S", "linkBytesPerSecond", true},
                 {"ROUND-TRIP", "roundTrip", true},
                 {"ATTEND-ROWS/S", "attendRowsPerSecond", true}},
                /*name_columns=*/2);
}

void AddPeer(const Peer& peer, const std::string& address, Output& output) {
  output.AddRow({address, peer.id(), peer.address(), peer.transport(),
                 peer.healthy(), peer.bytes_sent(), peer.bytes_received(),
                 Seconds(peer.last_heartbeat()), peer.epoch(), peer.cold_mode(),
                 peer.cold_reason(), peer.link_bytes_per_second(),
                 Microseconds(peer.round_trip()),
                 peer.attend_rows_per_second()});
}

Output ConfigOutput() {
  return Output("ConfigList",
                {{"PROCESS", "process"},
                 {"FLAG", "flag"},
                 {"VALUE", "value"},
                 {"ADDRESS", "address", true}},
                /*name_columns=*/2);
}

void AddConfig(const GetProcessResponse& process, const std::string& address,
               Output& output) {
  // In order of their names.
  const std::map<std::string, std::string> config(process.config().begin(),
                                                  process.config().end());
  for (const auto& [name, value] : config) {
    output.AddRow({process.id(), name, value, address});
  }
}

Output TierMapOutput() {
  return Output("TierMap", {{"PAGE", "page"},
                            {"STORED", "stored"},
                            {"NODE", "node"},
                            {"TIER OF EACH TOKEN", "tiers"}});
}

void AddPageTiers(const GetTierMapResponse::PageTiers& page, Output& output) {
  output.AddRow(
      {page.page_index(), page.stored(), page.node_id(), page.tiers()});
}

Output VerifyOutput() {
  return Output("VerifyList", {{"NODE", "node"},
                               {"PAGES", "pagesChecked"},
                               {"ROWS", "rowsChecked"},
                               {"MISMATCHES", "mismatches"}});
}

void AddVerified(const VerifyResponse& result, const std::string& address,
                 Output& output) {
  output.AddRow({address, result.pages_checked(), result.rows_checked(),
                 result.mismatches()});
}

Output FindingOutput() {
  return Output("FindingList", {{"CHECK", "check"},
                                {"STATUS", "status"},
                                {"FOUND", "found"},
                                {"FIX", "fix"}});
}

void AddFinding(const Finding& finding, Output& output) {
  const char* const kLevels[] = {"ok", "warn", "fail"};
  output.AddRow({finding.check, kLevels[static_cast<int>(finding.level)],
                 finding.found, finding.fix});
}

}  // namespace farkv
