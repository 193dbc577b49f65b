#include "memory_node/data/store_handler.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/page/bodies.h"
#include "memory_node/data/row_copy.h"

namespace farkv {
namespace {

absl::Status CheckGeometry(KvGeometry session, const KvGeometry& message) {
  session.num_layers = message.num_layers;  // not on the wire
  if (session == message) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("rows of ", message.ToString(),
                                                 " for a session of ",
                                                 session.ToString()));
}

// Rows of a page that is stored already.
absl::Status Repeat(const StoreTicket& ticket, const StoreItem& item,
                    std::span<const std::byte> rows) {
  std::byte* page = ticket.pin.data();
  if (!HoldsRows(ticket.geometry, item.live, item.row_crcs, page)) {
    return absl::AlreadyExistsError("the page holds other rows");
  }
  if (CheckPageRows(page, ticket.geometry, item.live).ok()) {
    return absl::OkStatus();
  }
  // A repeat that is damaged itself must not make the stored page worse.
  FARKV_RETURN_IF_ERROR(
      CheckPackedRows(ticket.geometry, item.live, item.row_crcs, rows));
  return StoreRows(ticket.geometry, item.live, item.row_crcs, rows, page);
}

absl::Status StoreFirst(const StoreTicket& ticket, const StoreItem& item,
                        std::span<const std::byte> rows) {
  std::byte* page = ticket.pin.data();
  FARKV_RETURN_IF_ERROR(
      StoreRows(ticket.geometry, item.live, item.row_crcs, rows, page));
  PageHeader header(page, ticket.geometry);
  for (size_t head = 0; head < item.live.size(); ++head) {
    header.set_live(static_cast<int>(head), item.live[head]);
  }
  return absl::OkStatus();
}

absl::Status StorePage(Directory& directory, const DataCaller& caller,
                       const StoreItem& item, std::span<const std::byte> rows) {
  if (item.tier != Tier::kT1) {
    return absl::UnimplementedError(
        "pages are stored as T1; moving T2 pages is not available");
  }
  FARKV_ASSIGN_OR_RETURN(
      StoreTicket ticket,
      directory.BeginStore(caller, {item.layer, item.page_index},
                           item.generation));
  const absl::Status status = ticket.was_stored
                                  ? Repeat(ticket, item, rows)
                                  : StoreFirst(ticket, item, rows);
  std::span<const uint64_t> stored;
  if (status.ok()) stored = item.live;
  const absl::Status finished =
      directory.FinishStore(std::move(ticket), stored);
  return status.ok() ? finished : status;
}

}  // namespace

absl::StatusOr<std::vector<absl::StatusCode>> StorePages(
    Directory& directory, const DataCaller& caller,
    std::span<const std::byte> body, DataMetrics& metrics) {
  FARKV_ASSIGN_OR_RETURN(const CalledSession session,
                         directory.CheckCaller(caller));
  const KvGeometry& geometry = session.geometry;
  FARKV_ASSIGN_OR_RETURN(const WithRows<StoreRequest> request,
                         DecodeStoreRequest(body));
  FARKV_RETURN_IF_ERROR(CheckGeometry(geometry, request.message.geometry));
  std::vector<absl::StatusCode> codes;
  codes.reserve(request.message.items.size());
  std::span<const std::byte> rows = request.rows;
  for (const StoreItem& item : request.message.items) {
    const size_t bytes = item.RowsBytes(geometry);
    const absl::Status status =
        StorePage(directory, caller, item, rows.first(bytes));
    rows = rows.subspan(bytes);
    codes.push_back(status.code());
    if (status.ok()) continue;
    metrics.store.CountFailure(status.code());
    if (absl::IsDataLoss(status)) metrics.checksum_failures.Increment();
  }
  return codes;
}

}  // namespace farkv
