#include "memory_node/service/admin_codec.h"

#include <bit>

#include "common/base/session_handle.h"
#include "common/layout/kv_geometry.h"
#include "common/rpc/duration_codec.h"
#include "common/rpc/memory_codec.h"

namespace farkv {
namespace {

using admin::v1::GetTierMapResponse;

// Adds one page of one layer to what is known of its page index.
void Merge(const PageReport& page, GetTierMapResponse::PageTiers& tiers) {
  uint64_t live = 0;
  for (uint64_t bitmap : page.live) live |= bitmap;
  std::string& text = *tiers.mutable_tiers();
  for (size_t slot = 0; slot < static_cast<size_t>(kPageTokens); ++slot) {
    if (((live >> slot) & 1) == 0) continue;
    if (page.tier == Tier::kT2) text[slot] = '2';
    if (text[slot] == '3') text[slot] = '1';
  }
  tiers.set_stored(tiers.stored() && page.stored);
}

}  // namespace

admin::v1::Session ToProto(const SessionReport& report) {
  admin::v1::Session proto;
  proto.set_session_id(SessionHandleBytes(report.id));
  proto.set_tenant(report.tenant);
  proto.set_worker_id(report.worker_id);
  *proto.mutable_geometry() = ToProto(report.geometry);
  *proto.mutable_lease_remaining() = ToProto(report.lease_remaining);
  proto.set_pages(report.pages);
  proto.set_stored_pages(report.stored_pages);
  proto.set_bytes(report.bytes);
  *proto.mutable_age() = ToProto(report.age);
  proto.set_live_rows(report.live_rows);
  proto.set_t2_pages(report.t2_pages);
  proto.set_t2_bytes(report.t2_bytes);
  proto.set_mapped(report.mapped);
  return proto;
}

admin::v1::Pool PoolToProto(Tier tier, const PagePoolStats& pool,
                            const DirectoryStats& directory,
                            const std::string& node_id, int numa_node) {
  admin::v1::Pool proto;
  const bool t2 = tier == Tier::kT2;
  proto.set_tier(ToProto(tier));
  proto.set_owner_id(node_id);
  proto.set_numa_node(numa_node);
  proto.set_capacity_bytes(pool.capacity_bytes);
  proto.set_used_bytes(pool.used_bytes);
  proto.set_capacity_pages(pool.used_pages + pool.quarantined_pages +
                           pool.free_pages);
  proto.set_used_pages(pool.used_pages);
  proto.set_reserved_pages(t2 ? 0 : directory.reserved_pages);
  proto.set_quarantined_pages(pool.quarantined_pages);
  proto.set_live_rows(t2 ? directory.t2_live_rows
                         : directory.live_rows - directory.t2_live_rows);
  proto.set_huge_pages(pool.huge_pages);
  proto.set_slabs(static_cast<uint32_t>(pool.slabs));
  proto.set_quarantined_bytes(pool.quarantined_bytes);
  proto.set_stranded_bytes(pool.stranded_bytes);
  proto.set_pins(pool.pins);
  proto.set_pressure(pool.pressure);
  return proto;
}

GetTierMapResponse TierMapToProto(const SessionReport& session,
                                  const std::vector<PageReport>& pages,
                                  const std::string& node_id) {
  GetTierMapResponse proto;
  proto.mutable_sequence()->set_session_id(SessionHandleBytes(session.id));
  *proto.mutable_sequence()->mutable_age() = ToProto(session.age);
  GetTierMapResponse::PageTiers* tiers = nullptr;
  for (const PageReport& page : pages) {
    if (tiers == nullptr || tiers->page_index() != page.page.page_index) {
      tiers = proto.add_pages();
      tiers->set_page_index(page.page.page_index);
      tiers->set_tiers(std::string(kPageTokens, '3'));
      tiers->set_stored(true);
      tiers->set_node_id(node_id);
    }
    Merge(page, *tiers);
  }
  for (const auto& page : proto.pages()) {
    int64_t t1 = 0, t2 = 0;
    for (char tier : page.tiers()) {
      t1 += tier == '1';
      t2 += tier == '2';
    }
    admin::v1::Sequence& sequence = *proto.mutable_sequence();
    sequence.set_t1_tokens(sequence.t1_tokens() + t1);
    sequence.set_t2_tokens(sequence.t2_tokens() + t2);
    if (!page.stored()) continue;
    sequence.set_t3_tokens(sequence.t3_tokens() + kPageTokens - t1 - t2);
  }
  return proto;
}

}  // namespace farkv
