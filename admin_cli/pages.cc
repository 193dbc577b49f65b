// Which pages a node holds and why: `get pages`, `describe pool`.
#include <functional>
#include <iostream>
#include <memory>
#include <optional>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "admin_cli/commands.h"
#include "admin_cli/holders.h"
#include "admin_cli/peers.h"
#include "admin_cli/tables.h"
#include "common/rpc/status_codec.h"

namespace farkv {
namespace {

using namespace admin::v1;  // NOLINT: the messages of the admin service

constexpr int32_t kMostPerCall = 1000;

ListPagesRequest RequestFor(const PageOptions& wanted) {
  ListPagesRequest request;
  request.set_session_id(absl::HexStringToBytes(wanted.session));
  if (wanted.tier == "T1") request.set_tier(types::v1::TIER_T1);
  if (wanted.tier == "T2") request.set_tier(types::v1::TIER_T2);
  if (wanted.state == "reserved") request.set_state(PAGE_STATE_RESERVED);
  if (wanted.state == "stored") request.set_state(PAGE_STATE_STORED);
  if (wanted.state == "quarantined") request.set_state(PAGE_STATE_QUARANTINED);
  return request;
}

// Calls `add` with each page, `limit` at most (0: all). True: there are more.
grpc::Status EachPage(AdminStub& stub, const grpc::ClientContext& first,
                      ListPagesRequest request, int64_t limit, bool& more,
                      const std::function<void(const Page&)>& add) {
  int64_t left = limit == 0 ? INT64_MAX : limit;
  do {
    request.set_page_size(
        static_cast<int32_t>(std::min<int64_t>(left, kMostPerCall)));
    grpc::ClientContext context;
    context.set_deadline(first.deadline());
    ListPagesResponse response;
    const auto status = stub.ListPages(&context, request, &response);
    if (!status.ok()) return status;
    for (const Page& page : response.pages()) add(page);
    left -= response.pages_size();
    request.set_page_token(response.next_page_token());
  } while (left > 0 && !request.page_token().empty());
  more = more || !request.page_token().empty();
  return grpc::Status::OK;
}

// The holders of a node's pages.
grpc::Status AddHolders(AdminStub& stub, const grpc::ClientContext& first,
                        Output& output) {
  ListSessionsRequest request;
  do {
    grpc::ClientContext context;
    context.set_deadline(first.deadline());
    ListSessionsResponse response;
    const auto status = stub.ListSessions(&context, request, &response);
    if (!status.ok()) return status;
    for (const Session& session : response.sessions()) {
      if (session.pages() > 0) AddHolder(session, output);
    }
    request.set_page_token(response.next_page_token());
  } while (!request.page_token().empty());
  PageOptions quarantined;
  quarantined.state = "quarantined";
  QuarantineSums sums;
  bool more = false;
  const auto status = EachPage(stub, first, RequestFor(quarantined), 0, more,
                               [&sums](const Page& page) { sums.Add(page); });
  sums.AddTo(output);
  return status;
}

// Prints the pools of the node; `is_it` says whether it is the one.
grpc::Status DescribeIfNamed(AdminStub& stub, grpc::ClientContext* context,
                             const std::string& address,
                             const std::string& name, const CliOptions& options,
                             bool& is_it) {
  GetProcessResponse process;
  auto status = stub.GetProcess(context, {}, &process);
  if (!status.ok()) return status;
  is_it = address == name || process.id() == name;
  if (!is_it) return status;
  grpc::ClientContext of_pools;
  of_pools.set_deadline(context->deadline());
  ListPoolsResponse pools;
  status = stub.ListPools(&of_pools, {}, &pools);
  if (!status.ok()) return status;
  Output output = HolderOutput();
  status = AddHolders(stub, *context, output);
  if (!status.ok()) return status;
  if (!options.output.IsDocument() && options.output.format != "name") {
    for (const Pool& pool : pools.pools()) std::cout << PoolText(pool);
  }
  output.Print(options.output, std::cout);
  return status;
}

}  // namespace

int GetPages(const CliOptions& options, const PageOptions& wanted) {
  Output output = PageOutput();
  bool more = false;
  const int code = ForEachPeer(
      options, options.nodes,
      [&](AdminStub& stub, grpc::ClientContext* context,
          const std::string& address) {
        return EachPage(
            stub, *context, RequestFor(wanted), wanted.limit, more,
            [&](const Page& page) { AddPage(page, address, output); });
      });
  output.Print(options.output, std::cout);
  if (more) {
    std::cerr << "hint: only the first " << wanted.limit
              << " pages of a node are shown; see --limit, --session, --tier "
                 "and --state\n";
  }
  return code;
}

int DescribePool(const CliOptions& options, const std::string& name) {
  bool found = false;
  int code = ForEachPeer(options, options.nodes,
                         [&](AdminStub& stub, grpc::ClientContext* context,
                             const std::string& address) {
                           if (found) return grpc::Status::OK;
                           return DescribeIfNamed(stub, context, address, name,
                                                  options, found);
                         });
  // What was found may have failed to answer in full; what was not may be among
  // those that did not answer at all.
  if (found || code != kExitOk) return code;
  std::cerr << "error: no memory node of --nodes is called " << name
            << " or has this admin address\n"
               "hint: farkvctl get nodes; a worker's T0 is held by its "
               "sequences: farkvctl get sequences -o wide\n";
  return kExitError;
}

}  // namespace farkv
