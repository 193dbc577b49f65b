#include "admin_cli/holders.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "admin_cli/rates.h"
#include "admin_cli/tables.h"
#include "common/base/parse.h"
#include "common/rpc/duration_codec.h"

namespace farkv {
namespace {

using namespace admin::v1;  // NOLINT: the messages of the admin service

std::string ShownTime(absl::Duration time) {
  return absl::FormatDuration(absl::Trunc(time, absl::Milliseconds(100)));
}

std::string ShownTime(const google::protobuf::Duration& time) {
  return ShownTime(FromProto(time));
}

std::string StateText(PageState state) {
  switch (state) {
    case PAGE_STATE_RESERVED:
      return "reserved";
    case PAGE_STATE_STORED:
      return "stored";
    case PAGE_STATE_QUARANTINED:
      return "quarantined";
    default:
      return "unknown";
  }
}

// Null where there is none.
nlohmann::json OrNull(bool there, int32_t value) {
  return there ? nlohmann::json(value) : nlohmann::json();
}

std::string ShowOptional(const nlohmann::json& value) {
  return value.is_null() ? "-" : value.dump();
}

std::string LeaseText(const google::protobuf::Duration& left, bool mapped) {
  return absl::StrCat("lease runs for ", ShownTime(left), " unless renewed",
                      ", then quarantine",
                      mapped ? "; slabs are mapped in its name" : "");
}

}  // namespace

std::string WhyHeld(const Page& page) {
  std::string why;
  switch (page.state()) {
    case PAGE_STATE_RESERVED:
      why = absl::StrCat("waits for its store; ",
                         LeaseText(page.held_for(), page.mapped()));
      break;
    case PAGE_STATE_STORED:
      why = absl::StrCat(page.live_rows(), " live rows; ",
                         LeaseText(page.held_for(), page.mapped()));
      break;
    default:
      why = absl::StrCat("given up, a mapped reader may read it for ",
                         ShownTime(page.held_for()));
  }
  if (page.storing()) why += "; a store writes it";
  if (page.compressing()) why += "; it is being compressed";
  if (page.pins() > 0) {
    absl::StrAppend(&why, "; ", page.pins(), " copies run over it");
  }
  return why;
}

std::string WhyHeld(const Session& session) {
  const uint64_t reserved = session.pages() - session.stored_pages();
  return absl::StrCat(
      reserved > 0 ? absl::StrCat(reserved, " wait for their store; ") : "",
      LeaseText(session.lease_remaining(), session.mapped()));
}

Output PageOutput() {
  return Output("PageList",
                {{"SESSION", "session"},
                 {"NODE", "node"},
                 {"TENANT", "tenant", true},
                 {"WORKER", "worker", true},
                 {"TIER", "tier"},
                 {"LAYER", "layer", false, ShowOptional},
                 {"PAGE", "page", false, ShowOptional},
                 {"STATE", "state"},
                 {"LIVE-ROWS", "liveRows"},
                 {"BYTES", "bytes"},
                 {"AGE", "age"},
                 {"GENERATION", "generation", true},
                 {"WHY", "why"}},
                /*name_columns=*/2);
}

void AddPage(const Page& page, const std::string& address, Output& output) {
  output.AddRow({ShownSession(page.session_id()), address, page.tenant(),
                 page.worker_id(), TierName(page.tier()),
                 OrNull(page.has_layer(), page.layer()),
                 OrNull(page.has_page_index(), page.page_index()),
                 StateText(page.state()), page.live_rows(), page.bytes(),
                 page.has_age() ? ShownTime(page.age()) : "-",
                 page.generation(), WhyHeld(page)});
}

void QuarantineSums::Add(const Page& page) {
  Sum& sum = sums_[ShownSession(page.session_id())];
  sum.tenant = page.tenant();
  ++sum.pages;
  sum.bytes += page.bytes();
  sum.last_seconds = std::max(
      sum.last_seconds, absl::ToDoubleSeconds(FromProto(page.held_for())));
}

void QuarantineSums::AddTo(Output& output) const {
  for (const auto& [session, sum] : sums_) {
    output.AddRow({session, sum.tenant, "-", "quarantined", sum.pages, 0,
                   FormatBytes(sum.bytes), 0, "-",
                   absl::StrCat("given up, mapped readers may read them; the "
                                "last is free in ",
                                ShownTime(absl::Seconds(sum.last_seconds)))});
  }
}

Output HolderOutput() {
  return Output("HolderList", {{"SESSION", "session"},
                               {"TENANT", "tenant"},
                               {"WORKER", "worker"},
                               {"STATE", "state"},
                               {"PAGES", "pages"},
                               {"T2", "t2Pages"},
                               {"BYTES", "bytes"},
                               {"LIVE-ROWS", "liveRows"},
                               {"AGE", "age"},
                               {"WHY", "why"}});
}

void AddHolder(const Session& session, Output& output) {
  output.AddRow({ShownSession(session.session_id()), session.tenant(),
                 session.worker_id(), "open", session.pages(),
                 session.t2_pages(), FormatBytes(session.bytes()),
                 session.live_rows(), ShownTime(session.age()),
                 WhyHeld(session)});
}

std::string PoolText(const Pool& pool) {
  const uint64_t taken = pool.used_bytes() + pool.quarantined_bytes();
  const uint64_t free =
      pool.capacity_bytes() - std::min(pool.capacity_bytes(), taken);
  const auto bytes = [](uint64_t count) {
    return ShownBytes(static_cast<double>(count));
  };
  return absl::StrCat(
      "Pool:        ", TierName(pool.tier()), " of ", pool.owner_id(),
      pool.numa_node() < 0 ? ""
                           : absl::StrCat(", NUMA node ", pool.numa_node()),
      "\nCapacity:    ", bytes(pool.capacity_bytes()), ", ", pool.slabs(),
      " slabs exist\nUsed:        ", bytes(pool.used_bytes()), ", ",
      pool.used_pages(), " pages, of them ", pool.reserved_pages(),
      " reserved and not stored; ", pool.live_rows(),
      " live rows\nQuarantined: ", bytes(pool.quarantined_bytes()), ", ",
      pool.quarantined_pages(), " pages\nFree:        ", bytes(free), ", ",
      bytes(pool.stranded_bytes()),
      " of it stranded: for pages of a slab's tenant and size only\n",
      "Copies:      ", pool.pins(), " run over its pages\n", "New pages:   ",
      pool.pressure() ? "refused, it is above its high watermark" : "taken",
      "\n\n");
}

}  // namespace farkv
