#include "gpu_worker/tiering/attend_reply_check.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace farkv {
namespace {

absl::Status CheckSubtrees(const AttendRequest& request,
                           const std::vector<AttendPage>& pages,
                           const std::vector<AttendSubtree>& subtrees) {
  const auto heads = static_cast<size_t>(request.num_query_heads);
  const size_t dim = static_cast<size_t>(request.geometry.head_dim);
  size_t next = 0;  // of `pages`
  for (const AttendSubtree& subtree : subtrees) {
    if (subtree.m.size() != heads || subtree.out.size() != heads * dim) {
      return absl::DataLossError("a subtree of the reply has another shape");
    }
    // The decoder has seen to it that the range fits.
    int64_t page = int64_t{subtree.index} << subtree.level;
    const int64_t end = page + (int64_t{1} << subtree.level);
    while (page < end && next < pages.size() &&
           pages[next].page_index == page) {
      ++page;
      ++next;
    }
    if (page == end) continue;
    return absl::DataLossError(absl::StrCat(
        "the subtree (level ", subtree.level, ", index ", subtree.index,
        ") holds page ", page, ", which was not asked for or came before"));
  }
  if (next == pages.size()) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("page ", pages[next].page_index,
                                          " is in no subtree of the reply"));
}

}  // namespace

absl::Status CheckAttendReply(const AttendRequest& request,
                              const std::vector<AttendSequenceReply>& replies) {
  if (replies.size() != request.sequences.size()) {
    return absl::DataLossError(
        absl::StrCat("the attend reply has ", replies.size(),
                     " sequences, the request had ", request.sequences.size()));
  }
  for (size_t i = 0; i < replies.size(); ++i) {
    const AttendSequenceReply& reply = replies[i];
    if (reply.code != absl::StatusCode::kOk) {
      return absl::Status(
          reply.code,
          reply.failed_page == kNoPage
              ? "the node refused to attend"
              : absl::StrCat("the node refused page ", reply.failed_page));
    }
    FARKV_RETURN_IF_ERROR(
        CheckSubtrees(request, request.sequences[i].pages, reply.subtrees));
  }
  return absl::OkStatus();
}

}  // namespace farkv
