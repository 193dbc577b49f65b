#include "gpu_worker/tiering/tiering_options.h"

#include <bit>
#include <filesystem>
#include <limits>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/check_range.h"
#include "common/base/status_macros.h"
#include "common/layout/kv_geometry.h"

namespace farkv {
namespace {

// Of memory for fetched rows: more than any machine has, and sums fit.
constexpr uint64_t kMaxFetchedBytes = uint64_t{1} << 50;

absl::Status CheckStripe(int tokens) {
  FARKV_RETURN_IF_ERROR(
      CheckRange("--stripe", tokens, kPageTokens, kPageTokens << 20));
  if (std::has_single_bit(static_cast<unsigned>(tokens))) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--stripe is ", tokens, ", must be 64 times a power of two"));
}

absl::Status CheckTimes(const TieringOptions& options) {
  const absl::Duration day = absl::Hours(24);
  FARKV_RETURN_IF_ERROR(
      CheckRange("--lease", options.lease, absl::Seconds(1), day));
  FARKV_RETURN_IF_ERROR(
      CheckRange("--heartbeat", options.heartbeat, absl::Milliseconds(1), day));
  FARKV_RETURN_IF_ERROR(CheckRange("rpc_timeout", options.rpc_timeout,
                                   absl::Milliseconds(1), day));
  FARKV_RETURN_IF_ERROR(CheckRange("fetch_timeout", options.fetch_timeout,
                                   absl::Milliseconds(1), day));
  if (options.heartbeat > options.lease / 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("--heartbeat is ", absl::FormatDuration(options.heartbeat),
                     ", must be at most half of --lease, ",
                     absl::FormatDuration(options.lease)));
  }
  return absl::OkStatus();
}

}  // namespace

// A quarter is enough beside the rows of 16 or more dimensions that come four
// of a page at a time, and beside single ones of 64 or more.
uint64_t TieringOptions::MaxIncomingBytes() const {
  const uint64_t rows = max_layer_fetch_bytes + staging_bytes;
  return rows + rows / 4 + (uint64_t{64} << 20);
}

absl::Status TieringOptions::Validate() const {
  if (granularity != 64 && granularity != 16 && granularity != 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--granularity is ", granularity, ", must be 64, 16 or 1"));
  }
  FARKV_RETURN_IF_ERROR(
      CheckRange("--t2-ratio per 10,000", t2_ratio, 0, 10000));
  if (t2_bits != 8 && t2_bits != 4) {
    return absl::InvalidArgumentError(
        absl::StrCat("--t2-bits is ", t2_bits, ", must be 8 or 4"));
  }
  if (cold == ColdMode::kMap && map_dir.empty()) {
    return absl::InvalidArgumentError(
        "--cold=map needs --map-dir, which is empty");
  }
  std::error_code error;
  if (!map_dir.empty() && !std::filesystem::is_directory(map_dir, error)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--map-dir is \"", map_dir, "\", not a directory"));
  }
  if (tenant.empty()) {
    return absl::InvalidArgumentError("--tenant is empty");
  }
  FARKV_RETURN_IF_ERROR(CheckStripe(stripe_tokens));
  FARKV_RETURN_IF_ERROR(CheckTimes(*this));
  FARKV_RETURN_IF_ERROR(
      CheckRange("prefetch_layers", prefetch_layers, 1, 1024));
  FARKV_RETURN_IF_ERROR(CheckRange("staging_bytes", staging_bytes,
                                   uint64_t{1} << 20, kMaxFetchedBytes));
  FARKV_RETURN_IF_ERROR(CheckRange("max_layer_fetch_bytes",
                                   max_layer_fetch_bytes, uint64_t{1},
                                   kMaxFetchedBytes));
  FARKV_RETURN_IF_ERROR(CheckRange("max_attend_leaf_bytes",
                                   max_attend_leaf_bytes, uint64_t{1},
                                   kMaxAttendLeafBytes));
  return CheckRange("--t0-bytes", t0_bytes, uint64_t{1},
                    std::numeric_limits<uint64_t>::max());
}

}  // namespace farkv
