#include "memory_node/data/data_plane.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/endian.h"
#include "common/base/status_macros.h"
#include "common/page/bodies.h"
#include "common/transport/transport.h"
#include "memory_node/data/fetch_handler.h"
#include "memory_node/data/store_handler.h"

namespace farkv {
namespace {

static_assert(kMaxMessageBytes == kMaxBodyBytes,
              "what bodies.h allows, a transport must carry");

// To measure a link no more are needed.
constexpr uint32_t kMaxPingReplyBytes = 256 << 10;

// Replies on their way: so many as they come, then by shares (transport.h).
// Thirty workers that stopped reading leave thirty to each other one.
constexpr int kFairReplies = 1024;
constexpr int kMaxReplies = 4 * kFairReplies;
// Longest that a worker may take to receive one. By then it has given up both
// tries of a fetch (5 s each by default), and the bytes are wanted elsewhere.
constexpr absl::Duration kReplyTimeout = absl::Seconds(10);

MessageHeader ReplyHeader(const MessageHeader& request, absl::StatusCode code,
                          Epoch epoch) {
  MessageHeader reply = request;
  reply.type =
      static_cast<MessageType>(static_cast<uint16_t>(request.type) + 1);
  reply.code = code;
  reply.epoch = epoch;
  reply.body_bytes = 0;
  return reply;
}

}  // namespace

DataPlane::DataPlane(const DataPlaneOptions& options, Directory& directory,
                     ThreadPool& pool, DataMetrics& metrics, const Clock& clock)
    : options_(options),
      directory_(directory),
      pool_(pool),
      metrics_(metrics),
      clock_(clock),
      waiting_attends_("attends that wait", options.max_waiting_attends),
      scores_(options.max_score_bytes),
      reply_bytes_(std::make_shared<PeerShares>("bytes of replies",
                                                options.max_reply_bytes)) {}

void DataPlane::BoundReplies(TransportOptions& options) {
  options.fair_operations = kFairReplies;
  options.max_operations = kMaxReplies;
  options.reply_timeout = kReplyTimeout;
}

void DataPlane::Handle(Incoming incoming) {
  const Message& message = incoming.message;
  PeerConnected(incoming.peer);  // not told of in this order
  peers_.Count(incoming.peer, 0, kMessageHeaderBytes + message.body.size());
  if (!CheckMessage(message.header_bytes, message.body.bytes()).ok()) {
    metrics_.dropped_messages.Increment();
    return;
  }
  if (message.header.type == MessageType::kAttendRequest &&
      attends_ != nullptr) {
    AttendInTurn(std::move(incoming));
    return;
  }
  Send(incoming, DispatchUnlessTooLate(incoming));
}

// Only who has shown a token may take a place.
void DataPlane::AttendInTurn(Incoming incoming) {
  absl::Status taken = peers_.Tenant(incoming.peer, clock_.Now()).status();
  if (taken.ok()) taken = waiting_attends_.TryTake(incoming.peer, 1);
  if (!taken.ok()) {
    metrics_.attend.CountFailure(taken.code());
    Send(incoming, {taken, {}});
    return;
  }
  attends_->Execute([this, waiting = std::move(incoming)] {
    waiting_attends_.Give(waiting.peer, 1);
    Send(waiting, DispatchUnlessTooLate(waiting));
  });
}

// Its caller's time has run since before it arrived: nobody waits for the
// answer, and those behind it do for theirs. Hellos and pings cost nothing.
DataPlane::Answer DataPlane::DispatchUnlessTooLate(const Incoming& incoming) {
  const MessageType type = incoming.message.header.type;
  const absl::Duration told = peers_.DataTimeout(incoming.peer);
  const absl::Duration limit =
      told > absl::ZeroDuration() ? told : options_.longest_wait;
  const absl::Duration waited = clock_.Now() - incoming.arrived;
  if (waited < limit || type < MessageType::kStoreRequest ||
      type > MessageType::kScoresRequest) {
    return Dispatch(incoming);
  }
  MetricsOf(type).CountFailure(absl::StatusCode::kDeadlineExceeded);
  return {absl::DeadlineExceededError(absl::StrCat(
              "waited ", absl::FormatDuration(waited),
              " for its turn, at most ", absl::FormatDuration(limit))),
          {}};
}

void DataPlane::PeerConnected(PeerId peer) {
  if (!peers_.Note(peer, clock_.Now())) return;
  if (const auto excess = peers_.TakeExcess(options_.peers)) {
    metrics_.closed_too_many.Increment();
    transport_->ClosePeer(*excess);
  }
  if (options_.on_new_peer) options_.on_new_peer();
}

absl::Time DataPlane::CloseSilentPeers() {
  const PeerTable::Silent silent =
      peers_.TakeSilent(options_.peers, clock_.Now());
  for (PeerId peer : silent.peers) transport_->ClosePeer(peer);
  for (PeerId peer : silent.unproven) transport_->ClosePeer(peer);
  metrics_.closed_silent.Increment(static_cast<double>(silent.peers.size()));
  metrics_.closed_without_hello.Increment(
      static_cast<double>(silent.unproven.size()));
  return silent.next;
}

void DataPlane::ShowGauges() {
  metrics_.unproven_peers.Set(static_cast<double>(peers_.num_unproven()));
  metrics_.waiting_attends.Set(static_cast<double>(waiting_attends_.total()));
}

DataPlane::Answer DataPlane::Dispatch(const Incoming& incoming) {
  const MessageHeader& header = incoming.message.header;
  if (header.type == MessageType::kPingRequest) return Ping(incoming);
  if (header.type == MessageType::kHelloRequest) return Hello(incoming);
  if (header.type > MessageType::kScoresRequest) {
    return {absl::UnimplementedError(
                absl::StrCat("message type ", static_cast<int>(header.type))),
            {}};
  }
  OperationMetrics& metrics = MetricsOf(header.type);
  const absl::Time start = clock_.Now();
  absl::StatusOr<std::string> tenant = peers_.Tenant(incoming.peer, start);
  Answer answer;
  if (tenant.ok()) {
    answer = Run({header.session, header.epoch, *tenant}, incoming);
  } else {
    answer.status = tenant.status();
  }
  if (!answer.status.ok()) metrics.CountFailure(answer.status.code());
  const bool store = header.type == MessageType::kStoreRequest;
  size_t bytes = store ? incoming.message.body.size() : 0;
  for (const BufferLease& piece : answer.body) {
    if (!store) bytes += piece.size();
  }
  metrics.Count(bytes, clock_.Now() - start);
  return answer;
}

OperationMetrics& DataPlane::MetricsOf(MessageType type) {
  switch (type) {
    case MessageType::kStoreRequest:
      return metrics_.store;
    case MessageType::kFetchRequest:
      return metrics_.fetch;
    default:
      return metrics_.attend;
  }
}

DataPlane::Answer DataPlane::Run(const DataCaller& caller,
                                 const Incoming& incoming) {
  const MessageType type = incoming.message.header.type;
  switch (type) {
    case MessageType::kStoreRequest:
      return Store(caller, incoming);
    case MessageType::kFetchRequest:
      return Fetch(caller, incoming);
    case MessageType::kAttendRequest:
      return Attend(caller, incoming);
    case MessageType::kScoresRequest:
      return Scores(caller, incoming);
    default:
      return {absl::UnimplementedError(
                  absl::StrCat("message type ", static_cast<int>(type))),
              {}};
  }
}

// Bytes go to those only who have shown a token, and not beyond their share of
// the replies on their way.
DataPlane::Answer DataPlane::Ping(const Incoming& incoming) {
  const std::span<const std::byte> body = incoming.message.body.bytes();
  Answer answer;
  if (body.size() != sizeof(uint32_t) ||
      !peers_.Tenant(incoming.peer, clock_.Now()).ok()) {
    return answer;
  }
  const uint32_t bytes =
      std::min(LoadLe<uint32_t>(body.data()), kMaxPingReplyBytes);
  absl::StatusOr<BufferLease> filler = ReplyMemory(incoming.peer, bytes);
  if (!filler.ok()) return answer;
  std::ranges::fill(filler->bytes(), std::byte{0});
  answer.body.push_back(*std::move(filler));
  return answer;
}

absl::StatusOr<BufferLease> DataPlane::ReplyMemory(PeerId peer, size_t bytes) {
  FARKV_RETURN_IF_ERROR(reply_bytes_->TryTake(peer, bytes));
  absl::StatusOr<BufferLease> memory = BufferLease::Allocate(bytes);
  if (!memory.ok()) {
    reply_bytes_->Give(peer, bytes);
    return memory.status();
  }
  const std::span<std::byte> all = memory->bytes();
  return BufferLease(all, [shares = reply_bytes_, peer, bytes,
                           owner = *std::move(memory)]() mutable {
    owner = BufferLease();
    shares->Give(peer, bytes);
  });
}

DataPlane::Answer DataPlane::Hello(const Incoming& incoming) {
  const MessageHeader& header = incoming.message.header;
  if (header.epoch.value != 0 && header.epoch != directory_.epoch()) {
    return {absl::FailedPreconditionError(absl::StrCat(
                "epoch of the hello is ", header.epoch.value,
                ", this node lives in ", directory_.epoch().value)),
            {}};
  }
  // A repeated hello on a proven connection is no second use of its token.
  if (peers_.Tenant(incoming.peer, clock_.Now()).ok()) return {};
  const std::span<const std::byte> body = incoming.message.body.bytes();
  std::string token(body.size(), '\0');
  if (!token.empty()) std::memcpy(token.data(), body.data(), body.size());
  const absl::StatusOr<TokenOwner> owner = directory_.RedeemToken(token);
  if (!owner.ok()) {
    metrics_.rejected_peers.Increment();
    return {owner.status(), {}};
  }
  peers_.Add(incoming.peer, *owner, clock_.Now());
  return {};
}

DataPlane::Answer DataPlane::Store(const DataCaller& caller,
                                   const Incoming& incoming) {
  absl::StatusOr<std::vector<absl::StatusCode>> codes =
      StorePages(directory_, caller, incoming.message.body.bytes(), metrics_);
  Answer answer;
  answer.status = codes.status();
  if (codes.ok()) {
    answer.body.push_back(BufferLease::Owning(EncodeStoreReply(*codes)));
  }
  return answer;
}

DataPlane::Answer DataPlane::Fetch(const DataCaller& caller,
                                   const Incoming& incoming) {
  absl::StatusOr<FetchedRows> fetched = FetchPages(
      directory_, caller, static_cast<int32_t>(incoming.message.header.layer),
      incoming.message.body.bytes(),
      [&](size_t bytes) { return ReplyMemory(incoming.peer, bytes); },
      metrics_);
  Answer answer;
  answer.status = fetched.status();
  if (!fetched.ok()) return answer;
  answer.body.push_back(BufferLease::Owning(std::move(fetched->head)));
  answer.body.push_back(std::move(fetched->rows));
  return answer;
}

DataPlane::Answer DataPlane::Attend(const DataCaller& caller,
                                    const Incoming& incoming) {
  const MessageHeader& header = incoming.message.header;
  absl::StatusOr<std::vector<std::byte>> body =
      AttendPages(Context(),
                  {caller.tenant, caller.epoch,
                   static_cast<int32_t>(header.layer), header.step},
                  incoming.message.body.bytes());
  Answer answer;
  answer.status = body.status();
  if (body.ok()) answer.body.push_back(BufferLease::Owning(*std::move(body)));
  return answer;
}

DataPlane::Answer DataPlane::Scores(const DataCaller& caller,
                                    const Incoming& incoming) {
  absl::StatusOr<std::vector<std::byte>> body =
      CollectScores(Context(), caller, incoming.message.body.bytes());
  Answer answer;
  answer.status = body.status();
  if (body.ok()) answer.body.push_back(BufferLease::Owning(*std::move(body)));
  return answer;
}

void DataPlane::ForgetClosedSessions() {
  scores_.ForgetClosed([this] { return directory_.Instances(); });
}

void DataPlane::Send(const Incoming& incoming, Answer answer) {
  MessageHeader header = ReplyHeader(incoming.message.header,
                                     answer.status.code(), directory_.epoch());
  size_t bytes = kMessageHeaderBytes;
  for (const BufferLease& piece : answer.body) bytes += piece.size();
  const absl::Status sent =
      transport_->Reply(incoming.peer, header, std::move(answer.body));
  if (sent.ok()) peers_.Count(incoming.peer, bytes, 0);
  // Of used-up slots and bytes the transport tells the requester itself.
  bool answered = sent.ok() || absl::IsResourceExhausted(sent);
  if (!answered) {
    header.code = sent.code();
    answered = transport_->Reply(incoming.peer, header, {}).ok();
  }
  // Closed meanwhile, by this node perhaps: nobody else tells, and a hello has
  // just made it known again.
  if (!answered) peers_.Remove(incoming.peer);
  (answered ? metrics_.answered_requests : metrics_.unanswered_requests)
      .Increment();
}

}  // namespace farkv
