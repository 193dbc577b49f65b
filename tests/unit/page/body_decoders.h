// Every body by name: its golden bytes and its decoder, for tests that hold
// for all of them. Test only.
#ifndef FARKV_TESTS_UNIT_PAGE_BODY_DECODERS_H_
#define FARKV_TESTS_UNIT_PAGE_BODY_DECODERS_H_

#include <span>
#include <string>

#include "common/page/bodies.h"
#include "tests/golden/golden_bodies.h"
#include "tests/golden/golden_file.h"

namespace farkv::testing {

struct BodyDecoder {
  const char* golden;   // name of the golden file
  const char* message;  // how errors begin
  absl::Status (*decode)(std::span<const std::byte> body);
};

inline constexpr BodyDecoder kBodyDecoders[] = {
    {"store_request", "StoreRequest",
     [](std::span<const std::byte> b) {
       return DecodeStoreRequest(b).status();
     }},
    {"store_reply", "StoreReply",
     [](std::span<const std::byte> b) { return DecodeStoreReply(b).status(); }},
    {"fetch_request", "FetchRequest",
     [](std::span<const std::byte> b) {
       return DecodeFetchRequest(b).status();
     }},
    {"fetch_reply", "FetchReply",
     [](std::span<const std::byte> b) { return DecodeFetchReply(b).status(); }},
    {"attend_request", "AttendRequest",
     [](std::span<const std::byte> b) {
       return DecodeAttendRequest(b).status();
     }},
    {"attend_reply", "AttendReply",
     [](std::span<const std::byte> b) {
       return DecodeAttendReply(b).status();
     }},
    {"scores_request", "ScoresRequest",
     [](std::span<const std::byte> b) {
       return DecodeScoresRequest(b).status();
     }},
    {"scores_reply", "ScoresReply",
     [](std::span<const std::byte> b) {
       return DecodeScoresReply(b).status();
     }},
};

}  // namespace farkv::testing

#endif  // FARKV_TESTS_UNIT_PAGE_BODY_DECODERS_H_
