// The heartbeats of a NodeLink, and how it loses its node. A thread of its own:
// a control call that hangs must not hide the loss.
#include "common/telemetry/log.h"
#include "gpu_worker/tiering/node_link.h"

namespace farkv {
namespace {

// Heartbeats that may go unanswered before a node counts as lost.
constexpr int kSilentHeartbeats = 4;

}  // namespace

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
  // The answer counts, not what it says; a refusal is a missing answer.
  Submit(header, {}, kSilentHeartbeats * options_.tiering.heartbeat,
         [](absl::StatusOr<Message>) {})
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
