// The messages behind the golden bodies, as values. Test only.
#ifndef FARKV_TESTS_GOLDEN_GOLDEN_BODIES_H_
#define FARKV_TESTS_GOLDEN_GOLDEN_BODIES_H_

#include <vector>

#include "common/page/bodies.h"

namespace farkv::testing {

inline constexpr size_t kGoldenRowBytes = 64;  // heads of 16 bf16

SessionId GoldenSession();          // a0 a1 ... af
StoreRequest GoldenStoreRequest();  // 5 rows follow
std::vector<absl::StatusCode> GoldenStoreReply();
std::vector<FetchItem> GoldenFetchRequest();
std::vector<FetchReplyItem> GoldenFetchReply();  // 3 rows follow
AttendRequest GoldenAttendRequest();
std::vector<AttendSequenceReply> GoldenAttendReply();  // 2 query heads of 16

}  // namespace farkv::testing

#endif  // FARKV_TESTS_GOLDEN_GOLDEN_BODIES_H_
