// Strong identifiers shared by every room. Plain values; thread-compatible.
#ifndef FARKV_COMMON_BASE_IDS_H_
#define FARKV_COMMON_BASE_IDS_H_

#include <array>
#include <compare>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace farkv {

// A number that cannot be mixed up with another kind of number.
template <typename Tag, typename Rep = uint64_t>
struct StrongId {
  Rep value = 0;
  friend auto operator<=>(const StrongId&, const StrongId&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const StrongId& id) {
    return H::combine(std::move(h), id.value);
  }
};

// One life of a memory-node process; never 0 and rises with every start.
using Epoch = StrongId<struct EpochTag>;
// How often a page's memory has been reused; odd and even carry no meaning,
// 0 is never a live generation.
using Generation = StrongId<struct GenerationTag>;

// The existence of one sequence on its nodes. 16 random bytes, chosen by the
// worker; the same id names the sequence on every node that it uses.
struct SessionId {
  std::array<uint8_t, 16> bytes{};

  static SessionId Random();
  // 32 lower-case hex digits.
  static absl::StatusOr<SessionId> FromHex(absl::string_view hex);
  // Exactly 16 bytes, as in the protos.
  static absl::StatusOr<SessionId> FromBytes(absl::string_view raw);
  std::string ToHex() const;
  std::string ToBytes() const;

  friend auto operator<=>(const SessionId&, const SessionId&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const SessionId& id) {
    return H::combine(std::move(h), id.bytes);
  }
};

}  // namespace farkv

#endif  // FARKV_COMMON_BASE_IDS_H_
