// The messages behind the golden bodies, as values. Test only.
#ifndef FARKV_TESTS_GOLDEN_GOLDEN_BODIES_H_
#define FARKV_TESTS_GOLDEN_GOLDEN_BODIES_H_

#include <vector>

#include "common/page/bodies.h"

namespace farkv::testing {

// Rows of T1 and head parts of T2 (8, then 4 bits) of heads of 16 bf16.
inline constexpr size_t kGoldenRowBytes = 64;
inline constexpr size_t kGoldenT2Bytes8 = 3008;
inline constexpr size_t kGoldenT2Bytes4 = 1984;

SessionId GoldenSession();  // a0 a1 ... af
// 5 rows, then a head part of 8 bits follow.
StoreRequest GoldenStoreRequest();
std::vector<absl::StatusCode> GoldenStoreReply();
std::vector<FetchItem> GoldenFetchRequest();
FetchReply GoldenFetchReply();  // 3 rows, then 1 + 2 head parts follow
AttendRequest GoldenAttendRequest();
std::vector<AttendSequenceReply> GoldenAttendReply();  // 2 query heads of 16
ScoresRequest GoldenScoresRequest();
std::vector<PageScores> GoldenScoresReply();

}  // namespace farkv::testing

#endif  // FARKV_TESTS_GOLDEN_GOLDEN_BODIES_H_
