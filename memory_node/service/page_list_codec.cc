#include "memory_node/service/page_list_codec.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/check_range.h"
#include "common/base/session_handle.h"
#include "common/base/status_macros.h"
#include "common/base/text_checks.h"
#include "common/rpc/codec_parts.h"
#include "common/rpc/duration_codec.h"
#include "common/rpc/memory_codec.h"

namespace farkv {
namespace {

using namespace admin::v1;  // NOLINT: the messages of the admin service

// Where the next part begins, as "INSTANCE.GENERATION" of the last page shown.
std::string TokenBehind(const HeldPage& page) {
  return absl::StrCat(page.instance, ".", page.generation.value);
}

absl::Status ReadToken(const std::string& token, PageQuery& query) {
  if (token.empty()) return absl::OkStatus();
  const std::pair<std::string, std::string> parts =
      absl::StrSplit(token, absl::MaxSplits('.', 1));
  if (absl::SimpleAtoi(parts.first, &query.after_instance) &&
      absl::SimpleAtoi(parts.second, &query.after_generation)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "page_token is ", ShownText(token), ", not one of this server's"));
}

absl::Status ReadState(PageState state, PageQuery& query) {
  switch (state) {
    case PAGE_STATE_UNSPECIFIED:
      return absl::OkStatus();
    case PAGE_STATE_RESERVED:
      query.state = HeldState::kReserved;
      return absl::OkStatus();
    case PAGE_STATE_STORED:
      query.state = HeldState::kStored;
      return absl::OkStatus();
    case PAGE_STATE_QUARANTINED:
      query.state = HeldState::kQuarantined;
      return absl::OkStatus();
    default:
      return absl::InvalidArgumentError(absl::StrCat(
          "state is ", static_cast<int>(state), ", no state of a page"));
  }
}

PageState ToProto(HeldState state) {
  if (state == HeldState::kReserved) return PAGE_STATE_RESERVED;
  return state == HeldState::kStored ? PAGE_STATE_STORED
                                     : PAGE_STATE_QUARANTINED;
}

void Fill(const HeldPage& page, Page& proto) {
  proto.set_state(ToProto(page.state));
  proto.set_session_id(SessionHandleBytes(page.session));
  proto.set_tenant(page.tenant);
  proto.set_tier(farkv::ToProto(page.tier));
  proto.set_t2_bits(page.t2_bits);
  proto.set_generation(page.generation.value);
  proto.set_bytes(page.bytes);
  proto.set_live_rows(page.live_rows);
  *proto.mutable_held_for() = farkv::ToProto(page.held_for);
  proto.set_pins(page.pins);
  proto.set_storing(page.storing);
  proto.set_compressing(page.compressing);
  proto.set_mapped(page.mapped);
  if (page.state == HeldState::kQuarantined) return;
  proto.set_worker_id(page.worker_id);
  proto.set_layer(page.page.layer);
  proto.set_page_index(page.page.page_index);
  *proto.mutable_age() = farkv::ToProto(page.age);
}

}  // namespace

absl::StatusOr<PageQuery> ReadQuery(const ListPagesRequest& request) {
  FARKV_RETURN_IF_ERROR(
      CheckRange("page_size", request.page_size(), 0, kMaxListedPages));
  PageQuery query;
  query.count = static_cast<size_t>(
      request.page_size() == 0 ? kMaxListedPages : request.page_size());
  FARKV_RETURN_IF_ERROR(ReadToken(request.page_token(), query));
  FARKV_RETURN_IF_ERROR(ReadState(request.state(), query));
  if (!request.session_id().empty()) {
    FARKV_ASSIGN_OR_RETURN(query.sessions,
                           SessionPattern::FromBytes(request.session_id()));
  }
  if (request.tier() != types::v1::TIER_UNSPECIFIED) {
    FARKV_ASSIGN_OR_RETURN(query.tier, FromProto(request.tier()));
  }
  return query;
}

ListPagesResponse ToProto(const std::vector<HeldPage>& found, size_t count) {
  ListPagesResponse response;
  const size_t shown = std::min(count, found.size());
  for (size_t i = 0; i < shown; ++i) Fill(found[i], *response.add_pages());
  if (found.size() > count && count > 0) {
    response.set_next_page_token(TokenBehind(found[count - 1]));
  }
  return response;
}

}  // namespace farkv
