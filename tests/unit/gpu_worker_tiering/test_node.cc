#include "test_node.h"

#include <bit>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/numbers.h"
#include "common/base/status_macros.h"
#include "common/page/bodies.h"
#include "common/page/page_format.h"
#include "common/rpc/error_reason.h"
#include "kernels/stream.h"

namespace farkv {
namespace {

MemfdSlab MakeMemory(size_t bytes) {
  MemfdSlabOptions options;
  options.size_bytes = (bytes + 4095) / 4096 * 4096;
  options.huge_pages = false;
  absl::StatusOr<MemfdSlab> slab = MemfdSlab::Create(options);
  if (!slab.ok()) std::abort();
  return *std::move(slab);
}

}  // namespace

TestNode::TestNode(LoopbackNetwork& network, const KvGeometry& geometry,
                   std::string id, int num_pages, std::string map_dir)
    : geometry_(geometry),
      id_(std::move(id)),
      stride_(PageLayout::T1(geometry).stride),
      memory_(MakeMemory(static_cast<size_t>(num_pages) * stride_)),
      generations_(static_cast<size_t>(num_pages), 0) {
  for (int page = num_pages; page-- > 0;) free_.push_back(page);
  TransportOptions options;
  options.executor = &executor_;
  options.on_request = [this](Incoming in) { OnRequest(std::move(in)); };
  transport_ = network.CreateTransport(std::move(options));
  port_ = transport_->Listen("localhost", 0).value();
  if (map_dir.empty()) return;
  MapServerOptions map;
  map.map_dir = std::move(map_dir);
  map.node_id = id_;
  map_server_ = MapServer::Start(
                    map,
                    [this](const MapRequest&,
                           const PeerCredentials&) -> absl::StatusOr<MapGrant> {
                      absl::StatusOr<UniqueFd> fd = memory_.DuplicateFd();
                      if (!fd.ok()) return fd.status();
                      return MapGrant{*std::move(fd), memory_.size_bytes()};
                    })
                    .value();
}

TestNode::~TestNode() {
  map_server_ = nullptr;
  transport_->Shutdown(absl::Seconds(5));
  transport_ = nullptr;
}

ControlCalls TestNode::Control() {
  ControlCalls calls;
  calls.open_session = [this](const OpenSessionCall& call, absl::Duration) {
    return Open(call);
  };
  calls.renew_leases = [this](Epoch, std::span<const SessionId> ids,
                              absl::Duration lease,
                              absl::Duration) -> absl::StatusOr<RenewResult> {
    RenewResult result;
    absl::MutexLock lock(&mutex_);
    FARKV_RETURN_IF_ERROR(CheckUp());
    result.draining = draining_;
    for (const SessionId& id : ids) {
      const bool known = sessions_.count(id) > 0;
      result.renewals.push_back(
          {id, lease,
           known ? absl::OkStatus() : absl::NotFoundError("no session")});
    }
    return result;
  };
  calls.apply_tier_plan = [this](const TierPlanCall& call, absl::Duration) {
    return Apply(call);
  };
  calls.close_session = [this](SessionId session, Epoch, uint64_t,
                               absl::Duration) { return Close(session); };
  return calls;
}

absl::StatusOr<SessionGrant> TestNode::Open(const OpenSessionCall& call) {
  absl::MutexLock lock(&mutex_);
  FARKV_RETURN_IF_ERROR(CheckUp());
  if (draining_ && !call.continues_request && !sessions_.count(call.session)) {
    return WithReason(absl::UnavailableError("node " + id_ + " is draining"),
                      ErrorReason::kDraining);
  }
  sessions_[call.session];
  SessionGrant grant;
  grant.handshake.page_format_version = kPageFormatVersion;
  grant.handshake.kernel_target = KernelTarget();
  grant.node_id = id_;
  grant.epoch = epoch_;
  grant.lease = call.lease;
  grant.data_host = "localhost";
  grant.data_port = port_;
  if (map_server_ != nullptr) grant.map_socket = id_ + ".sock";
  grant.page_stride = stride_;
  return grant;
}

absl::StatusOr<TierPlanResult> TestNode::Apply(const TierPlanCall& call) {
  absl::MutexLock lock(&mutex_);
  FARKV_RETURN_IF_ERROR(CheckUp());
  const auto found = sessions_.find(call.session);
  if (found == sessions_.end()) return absl::NotFoundError("no session");
  if (refuse_reservations_ > 0 || free_.size() < call.reserve.size()) {
    --refuse_reservations_;
    return absl::ResourceExhaustedError("the pool is full");
  }
  TierPlanResult result;
  result.draining = draining_;
  for (const PageName& name : call.reserve) {
    Entry& entry = found->second.pages[name];
    if (entry.page < 0) {
      entry.page = free_.back();
      free_.pop_back();
      PageIdentity identity;
      identity.session = call.session;
      identity.layer = name.layer;
      identity.page_index = name.page_index;
      identity.generation =
          Generation{++generations_[static_cast<size_t>(entry.page)]};
      PageHeader header(PageData(entry.page), geometry_);
      header.set_generation(identity.generation);
      header.Format(identity, geometry_);
    }
    PagePlacement placement;
    placement.page = name;
    placement.generation =
        Generation{generations_[static_cast<size_t>(entry.page)]};
    placement.slab_offset = static_cast<size_t>(entry.page) * stride_;
    result.reserved.push_back(placement);
  }
  for (const PageEviction& eviction : call.evictions) {
    const bool known = found->second.pages.contains(eviction.page);
    result.evictions.push_back(known ? absl::OkStatus()
                                     : absl::NotFoundError("no such page"));
  }
  for (const PageName& name : call.free) {
    const auto page = found->second.pages.find(name);
    if (page == found->second.pages.end()) continue;
    free_.push_back(page->second.page);
    found->second.pages.erase(page);
    ++result.freed_pages;
  }
  return result;
}

void TestNode::Free(Session& session) {
  for (auto& [name, entry] : session.pages) free_.push_back(entry.page);
  session.pages.clear();
}

absl::StatusOr<uint64_t> TestNode::Close(SessionId session) {
  absl::MutexLock lock(&mutex_);
  FARKV_RETURN_IF_ERROR(CheckUp());
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return 0;
  const uint64_t freed = found->second.pages.size();
  Free(found->second);
  sessions_.erase(found);
  return freed;
}

void TestNode::OnRequest(Incoming incoming) {
  {
    absl::MutexLock lock(&mutex_);
    peers_.insert(incoming.peer);
  }
  const Message& message = incoming.message;
  MessageHeader header = message.header;
  header.type =
      static_cast<MessageType>(static_cast<uint16_t>(message.header.type) + 1);
  header.code = absl::StatusCode::kOk;
  std::vector<std::byte> body;
  if (message.header.type == MessageType::kStoreRequest) {
    body = Store(message);
  } else if (message.header.type == MessageType::kFetchRequest) {
    if (refuse_fetches_) {
      header.code = absl::StatusCode::kResourceExhausted;
    } else {
      body = Fetch(message);
    }
  }
  std::vector<BufferLease> pieces;
  pieces.push_back(BufferLease::Owning(std::move(body)));
  transport_->Reply(incoming.peer, header, std::move(pieces)).IgnoreError();
}

absl::StatusCode TestNode::StoreOne(SessionId session,
                                    const KvGeometry& geometry, int32_t layer,
                                    int32_t page_index, Generation generation,
                                    const std::byte* rows,
                                    const std::vector<uint32_t>& crcs) {
  if (refuse_stores_ > 0) {
    --refuse_stores_;
    return absl::StatusCode::kAborted;
  }
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return absl::StatusCode::kNotFound;
  const auto entry = found->second.pages.find({layer, page_index});
  if (entry == found->second.pages.end()) return absl::StatusCode::kNotFound;
  std::byte* data = PageData(entry->second.page);
  if (LoadPageGeneration(data) != generation) {
    return absl::StatusCode::kFailedPrecondition;
  }
  std::memcpy(data + PageLayout::T1(geometry_).header_bytes, rows,
              geometry.BlockBytes(kPageTokens));
  PageHeader header(data, geometry_);
  for (int head = 0; head < geometry_.num_kv_heads; ++head) {
    header.set_live(head, ~uint64_t{0});
    for (int slot = 0; slot < kPageTokens; ++slot) {
      header.set_row_crc(head, slot,
                         crcs[static_cast<size_t>(head) * kPageTokens +
                              static_cast<size_t>(slot)]);
    }
  }
  header.Seal();
  const std::vector<uint64_t> all(static_cast<size_t>(geometry_.num_kv_heads),
                                  ~uint64_t{0});
  if (!CheckPageRows(data, geometry_, all).ok()) {
    return absl::StatusCode::kDataLoss;
  }
  entry->second.stored = true;
  return absl::StatusCode::kOk;
}

std::vector<std::byte> TestNode::Store(const Message& message) {
  const auto decoded = DecodeStoreRequest(message.body.bytes());
  std::vector<absl::StatusCode> codes;
  if (!decoded.ok()) return {};
  const KvGeometry& geometry = decoded->message.geometry;
  const std::byte* rows = decoded->rows.data();
  absl::MutexLock lock(&mutex_);
  for (const StoreItem& item : decoded->message.items) {
    codes.push_back(StoreOne(message.header.session, geometry, item.layer,
                             item.page_index, item.generation, rows,
                             item.row_crcs));
    rows += geometry.BlockBytes(kPageTokens);
  }
  return EncodeStoreReply(codes);
}

std::vector<std::byte> TestNode::Fetch(const Message& message) {
  const auto items = DecodeFetchRequest(message.body.bytes());
  if (!items.ok()) return {};
  FetchReply answer;
  answer.geometry = geometry_;
  std::vector<FetchReplyItem>& replies = answer.items;
  std::vector<std::byte> rows;
  absl::MutexLock lock(&mutex_);
  const auto found = sessions_.find(message.header.session);
  const Session none;
  const Session& session = found == sessions_.end() ? none : found->second;
  const size_t header_bytes = PageLayout::T1(geometry_).header_bytes;
  const size_t bytes = geometry_.VectorBytes();
  const auto heads = static_cast<size_t>(geometry_.num_kv_heads);
  for (const FetchItem& item : *items) {
    FetchReplyItem reply;
    reply.page_index = item.page_index;
    reply.generation = item.generation;
    reply.rows.assign(heads, 0);
    const auto entry = session.pages.find(
        {static_cast<int32_t>(message.header.layer), item.page_index});
    if (entry == session.pages.end() || !entry->second.stored) {
      reply.code = absl::StatusCode::kNotFound;
      replies.push_back(reply);
      continue;
    }
    std::byte* data = PageData(entry->second.page);
    if (LoadPageGeneration(data) != item.generation) {
      reply.code = absl::StatusCode::kFailedPrecondition;
      replies.push_back(reply);
      continue;
    }
    reply.rows = item.rows;
    PageHeader header(data, geometry_);
    for (size_t head = 0; head < heads; ++head) {
      for (const bool value : {false, true}) {
        for (size_t slot = 0; slot < kPageTokens; ++slot) {
          if ((item.rows[head] >> slot & 1) == 0) continue;
          const std::byte* from =
              data + header_bytes +
              (value ? geometry_.ValueOffset(kPageTokens, head, slot)
                     : geometry_.KeyOffset(kPageTokens, head, slot));
          rows.insert(rows.end(), from, from + bytes);
          if (value) continue;
          reply.row_crcs.push_back(
              header.row_crc(static_cast<int>(head), static_cast<int>(slot)));
        }
      }
    }
    ++fetched_pages_;
    replies.push_back(reply);
  }
  if (damage_fetches_ > 0 && !rows.empty()) {
    --damage_fetches_;
    rows[rows.size() / 2] ^= std::byte{1};
  }
  if (edit_fetches_) edit_fetches_(answer, rows);
  std::vector<std::byte> body = EncodeFetchReply(answer).value();
  body.insert(body.end(), rows.begin(), rows.end());
  return body;
}

void TestNode::RefuseStores(int count) {
  absl::MutexLock lock(&mutex_);
  refuse_stores_ = count;
}

void TestNode::RefuseReservations(int count) {
  absl::MutexLock lock(&mutex_);
  refuse_reservations_ = count;
}

void TestNode::SetDraining(bool draining) {
  absl::MutexLock lock(&mutex_);
  draining_ = draining;
}

void TestNode::DamageFetches(int count) {
  absl::MutexLock lock(&mutex_);
  damage_fetches_ = count;
}

void TestNode::EditFetches(FetchEdit edit) {
  absl::MutexLock lock(&mutex_);
  edit_fetches_ = std::move(edit);
}

absl::Status TestNode::CheckUp() const {
  if (!down_) return absl::OkStatus();
  return absl::UnavailableError("node " + id_ + " is down");
}

void TestNode::CloseConnections() {
  std::set<PeerId> peers;
  {
    absl::MutexLock lock(&mutex_);
    peers.swap(peers_);
  }
  for (const PeerId peer : peers) transport_->ClosePeer(peer);
}

void TestNode::SetDown(bool down) {
  {
    absl::MutexLock lock(&mutex_);
    down_ = down;
  }
  if (down) CloseConnections();
}

void TestNode::Restart() {
  {
    absl::MutexLock lock(&mutex_);
    for (auto& [id, session] : sessions_) Free(session);
    sessions_.clear();
    ++epoch_.value;
  }
  CloseConnections();
}

void TestNode::GiveAway(int32_t layer, int32_t page_index) {
  absl::MutexLock lock(&mutex_);
  for (auto& [id, session] : sessions_) {
    const auto entry = session.pages.find({layer, page_index});
    if (entry == session.pages.end()) continue;
    const int page = entry->second.page;
    PageHeader(PageData(page), geometry_)
        .set_generation(Generation{++generations_[static_cast<size_t>(page)]});
  }
}

void TestNode::DamageRow(int32_t layer, int32_t page_index, int head,
                         int slot) {
  absl::MutexLock lock(&mutex_);
  for (auto& [id, session] : sessions_) {
    const auto entry = session.pages.find({layer, page_index});
    if (entry == session.pages.end()) continue;
    PageData(entry->second.page)[PageLayout::T1(geometry_).header_bytes +
                                 geometry_.KeyOffset(
                                     kPageTokens, static_cast<size_t>(head),
                                     static_cast<size_t>(slot))] ^=
        std::byte{1};
  }
}

// One session is the link's own.
bool TestNode::has_sessions() const {
  absl::MutexLock lock(&mutex_);
  return !sessions_.empty();
}

int TestNode::sessions() const {
  absl::MutexLock lock(&mutex_);
  return static_cast<int>(sessions_.size()) - 1;
}

int TestNode::used_pages() const {
  absl::MutexLock lock(&mutex_);
  return static_cast<int>(generations_.size() - free_.size());
}

int TestNode::stored_pages() const {
  absl::MutexLock lock(&mutex_);
  int count = 0;
  for (const auto& [id, session] : sessions_) {
    for (const auto& [name, entry] : session.pages) count += entry.stored;
  }
  return count;
}

int TestNode::fetched_pages() const {
  absl::MutexLock lock(&mutex_);
  return fetched_pages_;
}

NodeAccess AccessTo(LoopbackNetwork& network, std::vector<TestNode*> nodes) {
  NodeAccess access;
  access.control =
      [nodes](const std::string& address) -> absl::StatusOr<ControlCalls> {
    size_t index = 0;
    if (!absl::SimpleAtoi(address, &index) || index >= nodes.size()) {
      return absl::UnavailableError("no node at " + address);
    }
    return nodes[index]->Control();
  };
  access.transport = [&network](TransportOptions options)
      -> absl::StatusOr<std::unique_ptr<Transport>> {
    return network.CreateTransport(std::move(options));
  };
  return access;
}

}  // namespace farkv
