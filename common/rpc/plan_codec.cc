#include "common/base/status_macros.h"
#include "common/rpc/codec_parts.h"
#include "common/rpc/memory_codec.h"
#include "common/rpc/status_codec.h"

namespace farkv {
namespace {

using memory::v1::ApplyTierPlanRequest;
using memory::v1::ApplyTierPlanResponse;

memory::v1::ApplyTierPlanResponse::Placement PlacementToProto(
    const PagePlacement& placement) {
  ApplyTierPlanResponse::Placement proto;
  *proto.mutable_page() = ToProto(placement.page);
  proto.set_generation(placement.generation.value);
  proto.set_slab_id(placement.slab_id);
  proto.set_slab_offset(placement.slab_offset);
  proto.set_tier(ToProto(placement.tier));
  if (!placement.status.ok()) {
    *proto.mutable_error() = ToErrorDetail(placement.status);
  }
  return proto;
}

absl::StatusOr<PagePlacement> PlacementFromProto(
    const ApplyTierPlanResponse::Placement& proto) {
  PagePlacement placement;
  FARKV_ASSIGN_OR_RETURN(placement.page, FromProto(proto.page()));
  placement.generation = Generation{proto.generation()};
  placement.slab_id = proto.slab_id();
  placement.slab_offset = proto.slab_offset();
  FARKV_ASSIGN_OR_RETURN(placement.tier, FromProto(proto.tier()));
  placement.status = FromErrorDetail(proto.error());
  return placement;
}

absl::Status ReadTierChanges(const ApplyTierPlanRequest& request,
                             TierPlanCall& call) {
  for (const auto& item : request.tier_changes()) {
    TierChange change;
    FARKV_ASSIGN_OR_RETURN(change.page, FromProto(item.page()));
    FARKV_ASSIGN_OR_RETURN(change.tier, FromProto(item.tier()));
    change.t2_bits = item.t2_bits();
    change.exceptions = ToVector(item.exceptions());
    call.tier_changes.push_back(std::move(change));
  }
  return absl::OkStatus();
}

absl::Status ReadPages(
    const google::protobuf::RepeatedPtrField<memory::v1::PageName>& names,
    std::vector<PageName>& pages) {
  for (const auto& name : names) {
    FARKV_ASSIGN_OR_RETURN(PageName page, FromProto(name));
    pages.push_back(page);
  }
  return absl::OkStatus();
}

}  // namespace

ApplyTierPlanRequest ToProto(const TierPlanCall& call) {
  ApplyTierPlanRequest proto;
  proto.set_session_id(call.session.ToBytes());
  proto.set_epoch(call.epoch.value);
  proto.set_sequence_number(call.sequence_number);
  for (const PageName& page : call.reserve)
    *proto.add_reserve() = ToProto(page);
  for (const TierChange& change : call.tier_changes) {
    auto* item = proto.add_tier_changes();
    *item->mutable_page() = ToProto(change.page);
    item->set_tier(ToProto(change.tier));
    item->set_t2_bits(change.t2_bits);
    for (uint64_t bitmap : change.exceptions) item->add_exceptions(bitmap);
  }
  for (const PageEviction& eviction : call.evictions) {
    auto* item = proto.add_evictions();
    *item->mutable_page() = ToProto(eviction.page);
    for (uint64_t bitmap : eviction.live) item->add_live(bitmap);
  }
  for (const PageName& page : call.free) *proto.add_free() = ToProto(page);
  return proto;
}

absl::StatusOr<TierPlanCall> FromProto(const ApplyTierPlanRequest& request) {
  FARKV_RETURN_IF_ERROR(
      CheckCount("the plan",
                 int64_t{request.reserve_size()} + request.tier_changes_size() +
                     request.evictions_size() + request.free_size(),
                 kMaxPlanItems));
  TierPlanCall call;
  FARKV_ASSIGN_OR_RETURN(call.session,
                         SessionId::FromBytes(request.session_id()));
  call.epoch = Epoch{request.epoch()};
  call.sequence_number = request.sequence_number();
  FARKV_RETURN_IF_ERROR(ReadPages(request.reserve(), call.reserve));
  FARKV_RETURN_IF_ERROR(ReadTierChanges(request, call));
  for (const auto& item : request.evictions()) {
    PageEviction eviction;
    FARKV_ASSIGN_OR_RETURN(eviction.page, FromProto(item.page()));
    eviction.live = ToVector(item.live());
    call.evictions.push_back(std::move(eviction));
  }
  FARKV_RETURN_IF_ERROR(ReadPages(request.free(), call.free));
  return call;
}

ApplyTierPlanResponse ToProto(const TierPlanResult& result) {
  ApplyTierPlanResponse proto;
  for (const auto& placement : result.reserved) {
    *proto.add_reserved() = PlacementToProto(placement);
  }
  for (const auto& placement : result.moved) {
    *proto.add_moved() = PlacementToProto(placement);
  }
  for (const auto& status : result.evictions) {
    *proto.add_evictions() = ToErrorDetail(status);
  }
  proto.set_freed_pages(result.freed_pages);
  proto.set_pressure(result.pressure);
  proto.set_draining(result.draining);
  return proto;
}

absl::StatusOr<TierPlanResult> FromProto(
    const ApplyTierPlanResponse& response) {
  FARKV_RETURN_IF_ERROR(
      CheckCount("reserved", response.reserved_size(), kMaxPlanItems));
  TierPlanResult result;
  for (const auto& item : response.reserved()) {
    FARKV_ASSIGN_OR_RETURN(PagePlacement placement, PlacementFromProto(item));
    result.reserved.push_back(std::move(placement));
  }
  for (const auto& item : response.moved()) {
    FARKV_ASSIGN_OR_RETURN(PagePlacement placement, PlacementFromProto(item));
    result.moved.push_back(std::move(placement));
  }
  for (const auto& item : response.evictions()) {
    result.evictions.push_back(FromErrorDetail(item));
  }
  result.freed_pages = response.freed_pages();
  result.pressure = response.pressure();
  result.draining = response.draining();
  return result;
}

}  // namespace farkv
