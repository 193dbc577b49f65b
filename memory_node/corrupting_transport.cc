#include "memory_node/corrupting_transport.h"

#include <atomic>
#include <bit>
#include <utility>

#include "common/base/session_handle.h"
#include "common/page/page_format.h"
#include "common/telemetry/log.h"

namespace farkv {
namespace {

class CorruptingTransport final : public Transport {
 public:
  CorruptingTransport(std::unique_ptr<Transport> inner, Directory& directory)
      : inner_(std::move(inner)), directory_(directory) {}

  absl::StatusOr<uint16_t> Listen(const std::string& host,
                                  uint16_t port) override {
    return inner_->Listen(host, port);
  }
  absl::StatusOr<PeerId> Connect(const std::string& host,
                                 uint16_t port) override {
    return inner_->Connect(host, port);
  }
  absl::StatusOr<OperationId> Submit(PeerId peer, Request request,
                                     ReplyCallback callback) override {
    return inner_->Submit(peer, std::move(request), std::move(callback));
  }
  absl::Status Reply(PeerId peer, MessageHeader header,
                     std::vector<BufferLease> body) override {
    if (header.type == MessageType::kStoreReply && !done_.exchange(true)) {
      done_ = CorruptOne(header.session);
    }
    return inner_->Reply(peer, header, std::move(body));
  }
  void Cancel(OperationId operation) override { inner_->Cancel(operation); }
  void ClosePeer(PeerId peer) override { inner_->ClosePeer(peer); }
  void Shutdown(absl::Duration grace) override { inner_->Shutdown(grace); }
  TransportCapabilities capabilities() const override {
    return inner_->capabilities();
  }
  TransportCounters counters() const override { return inner_->counters(); }

 private:
  // False when the session has no stored row yet.
  bool CorruptOne(const SessionId& session) {
    const auto pages = directory_.DescribePages(session);
    if (!pages.ok()) return false;
    for (const PageReport& report : *pages) {
      if (!report.stored) continue;
      auto page = directory_.PinStored(session, report.page);
      if (page.ok() && FlipBit(*page)) return true;
    }
    return false;
  }

  static bool FlipBit(const StoredPage& page) {
    for (size_t head = 0; head < page.rows.size(); ++head) {
      if (page.rows[head] == 0) continue;
      const auto slot = static_cast<size_t>(std::countr_zero(page.rows[head]));
      std::byte* key = page.pin.data() +
                       PageLayout::T1(page.geometry).header_bytes +
                       page.geometry.KeyOffset(kPageTokens, head, slot);
      key[1] ^= std::byte{0x40};  // a high bit: it changes any sum
      spdlog::warn(
          "FAULT: one bit of session {}, layer {}, page {}, head {}, slot {} "
          "was flipped (--corrupt-one-row)",
          SessionHandle(page.identity.session), page.identity.layer,
          page.identity.page_index, head, slot);
      return true;
    }
    return false;
  }

  const std::unique_ptr<Transport> inner_;
  Directory& directory_;
  std::atomic<bool> done_{false};
};

}  // namespace

std::unique_ptr<Transport> MakeCorruptingTransport(
    std::unique_ptr<Transport> inner, Directory& directory) {
  return std::make_unique<CorruptingTransport>(std::move(inner), directory);
}

}  // namespace farkv
