#include "memory_node/data/eviction_log.h"

#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/crc32c.h"
#include "common/base/endian.h"

namespace farkv {
namespace {

class Digest {
 public:
  void Add(uint64_t number) {
    std::byte bytes[sizeof(number)];
    StoreLe(bytes, number);
    crc_ = ExtendCrc32c(crc_, bytes);
  }
  uint32_t value() const { return crc_; }

 private:
  uint32_t crc_ = 0;
};

void AddRow(const EvictionRow& row, Digest& digest) {
  digest.Add(static_cast<uint64_t>(row.position));
  digest.Add(std::bit_cast<uint32_t>(row.measure));
  digest.Add(std::bit_cast<uint64_t>(row.key));
  digest.Add(row.pinned ? 1 : 0);
}

size_t InputBytes(const EvictionCall& call) {
  size_t bytes = sizeof(call);
  for (const EvictionHead& head : call.heads) {
    bytes += sizeof(head) +
             head.positions.capacity() * sizeof(head.positions[0]) +
             head.mass.capacity() * sizeof(head.mass[0]) +
             head.cumulative.capacity() * sizeof(head.cumulative[0]) +
             head.always_kept.capacity() * sizeof(head.always_kept[0]);
  }
  return bytes;
}

LoggedDecision Describe(const EvictionCall& call, const EvictionReply& reply) {
  LoggedDecision decision;
  decision.session = call.session;
  decision.policy = DestructionPolicyName(call.policy);
  decision.event = call.event;
  decision.request = call.request;
  decision.seed = call.seed;
  decision.num_kept = call.num_kept;
  decision.num_tokens = call.num_tokens;
  decision.heads = call.heads.size();
  decision.candidates = call.NumCandidates();
  decision.final_list = call.final_list;
  for (const RankedHead& head : reply.heads) {
    decision.kept += static_cast<int64_t>(head.decision.kept.size());
    decision.non_finite += head.decision.num_non_finite;
  }
  decision.digest = ReplyDigest(reply);
  return decision;
}

}  // namespace

uint32_t ReplyDigest(const EvictionReply& reply) {
  Digest digest;
  for (const RankedHead& head : reply.heads) {
    digest.Add(static_cast<uint64_t>(head.layer));
    digest.Add(static_cast<uint64_t>(head.kv_head));
    digest.Add(head.rows.size());
    for (const EvictionRow& row : head.rows) AddRow(row, digest);
    digest.Add(head.decision.kept.size());
    for (const int64_t position : head.decision.kept) {
      digest.Add(static_cast<uint64_t>(position));
    }
    digest.Add(static_cast<uint64_t>(head.decision.num_non_finite));
  }
  return digest.value();
}

uint64_t EvictionLog::Add(EvictionCall call, const EvictionReply& reply,
                          absl::Time now) {
  LoggedDecision decision = Describe(call, reply);
  decision.time = now;
  const size_t bytes = InputBytes(call);
  decision.call = std::make_shared<const EvictionCall>(std::move(call));
  absl::MutexLock lock(&mutex_);
  decision.id = next_id_++;
  decisions_.push_back(std::move(decision));
  input_bytes_ += bytes;
  while (decisions_.size() > limits_.decisions) {
    DropInputs(decisions_.front());
    decisions_.pop_front();
  }
  for (LoggedDecision& oldest : decisions_) {
    if (input_bytes_ <= limits_.input_bytes) break;
    DropInputs(oldest);
  }
  return next_id_ - 1;
}

void EvictionLog::DropInputs(LoggedDecision& decision) {
  if (decision.call == nullptr) return;
  input_bytes_ -= InputBytes(*decision.call);
  decision.call = nullptr;
}

std::vector<LoggedDecision> EvictionLog::List(
    uint64_t before, size_t count,
    const std::optional<SessionPattern>& sessions) const {
  std::vector<LoggedDecision> found;
  absl::MutexLock lock(&mutex_);
  for (auto it = decisions_.rbegin();
       it != decisions_.rend() && found.size() < count; ++it) {
    if (it->id >= before) continue;
    if (sessions && !sessions->Matches(it->session)) continue;
    found.push_back(*it);
  }
  return found;
}

absl::StatusOr<LoggedDecision> EvictionLog::Find(uint64_t id) const {
  absl::MutexLock lock(&mutex_);
  for (const LoggedDecision& decision : decisions_) {
    if (decision.id == id) return decision;
  }
  if (decisions_.empty()) {
    return absl::NotFoundError(
        absl::StrCat("no decision ", id, ": nothing was decided here yet"));
  }
  return absl::NotFoundError(absl::StrCat("no decision ", id, ": the log has ",
                                          decisions_.front().id, " to ",
                                          decisions_.back().id));
}

}  // namespace farkv
