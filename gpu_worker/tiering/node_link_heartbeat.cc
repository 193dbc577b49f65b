// The heartbeats of a NodeLink, on a thread of their own, and the probes that
// go with them.
#include <algorithm>

#include "common/base/endian.h"
#include "common/telemetry/log.h"
#include "gpu_worker/tiering/node_link.h"

namespace farkv {
namespace {

// Heartbeats that may go unanswered before a node counts as lost.
constexpr int kSilentHeartbeats = 4;
// Beside more than these a probe would measure their share of the link.
constexpr uint64_t kFewRequests = 2;

}  // namespace

// A thread of its own: a control call that hangs must not hide the loss.
void NodeLink::HeartbeatMain() {
  for (;;) {
    bool disconnected = false;
    bool silent = false;
    {
      absl::MutexLock lock(&mutex_);
      auto woken = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return heartbeats_stop_ || (peer_lost_ && healthy_);
      };
      mutex_.AwaitWithTimeout(absl::Condition(&woken),
                              options_.tiering.heartbeat);
      if (heartbeats_stop_) return;
      if (!healthy_) continue;
      disconnected = peer_lost_;
      // Heartbeats and not time: a worker that was stalled has asked nobody.
      silent = open_heartbeats_ >= kSilentHeartbeats;
      if (!silent) ++open_heartbeats_;
    }
    if (disconnected) {
      LoseNode("connection lost");
    } else if (silent) {
      LoseNode("no heartbeat");
    } else {
      SendHeartbeat();
    }
  }
}

void NodeLink::SendHeartbeat() {
  MessageHeader header;
  header.type = MessageType::kPingRequest;
  const bool quiet = OpenRequests() == 0;
  // The answer counts, not what it says; a refusal is a missing answer.
  Submit(header, {}, kSilentHeartbeats * options_.tiering.heartbeat,
         [this, quiet,
          sent = rates_clock_.Now()](const absl::StatusOr<Message>& reply) {
           if (reply.ok()) Measure(quiet, sent);
         })
      .IgnoreError();
}

uint64_t NodeLink::OpenRequests() const {
  const uint64_t answered = answered_.load(std::memory_order_acquire);
  const uint64_t sent = sent_.load(std::memory_order_acquire);
  return sent > answered ? sent - answered : 0;
}

// On the answer to a ping, itself still open; `quiet`: nothing else was when it
// was sent. Whatever shares the link with a message delays it.
void NodeLink::Measure(bool quiet, absl::Time sent) {
  const uint64_t others = std::max<uint64_t>(OpenRequests(), 1) - 1;
  if (quiet && others == 0) {
    rates_.NoteRoundTrip(rates_clock_.Now() - sent);
  }
  if (Probes() && others <= kFewRequests && rates_.TakeProbe()) ProbeLink();
}

// Where nothing is weighed the mode is known from the start.
void NodeLink::ShowFixedMode() {
  if (options_.tiering.cold != ColdMode::kAuto) {
    rates_.NoteChoice({options_.tiering.cold, ColdReason::kAsked, {}});
  } else if (maps()) {
    rates_.NoteChoice({ColdMode::kMap, ColdReason::kMapped, {}});
  }
}

// As a fetch, but for bytes that mean nothing. A node of a release that does
// not know of them sends none.
void NodeLink::ProbeLink() {
  MessageHeader header;
  header.type = MessageType::kPingRequest;
  std::vector<std::byte> size(sizeof(uint32_t));
  StoreLe(size.data(), NodeRates::kProbeBytes);
  std::vector<BufferLease> body;
  body.push_back(BufferLease::Owning(std::move(size)));
  Submit(header, std::move(body), options_.tiering.fetch_timeout,
         [this, sent = rates_clock_.Now()](absl::StatusOr<Message> reply) {
           if (!reply.ok() || reply->body.size() != NodeRates::kProbeBytes ||
               !CheckMessage(reply->header_bytes, reply->body.bytes()).ok()) {
             return;
           }
           rates_.NoteProbe(NodeRates::kProbeBytes, rates_clock_.Now() - sent);
         })
      .IgnoreError();
}

void NodeLink::LoseNode(const std::string& why) {
  PeerId peer;
  {
    absl::MutexLock lock(&mutex_);
    if (!healthy_) return;
    healthy_ = false;
    just_lost_ = true;
    peer = peer_;
  }
  spdlog::warn("memory node {} ({}) is lost: {}", node_id_, options_.address,
               why);
  transport_->ClosePeer(peer);
}

}  // namespace farkv
