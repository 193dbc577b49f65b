#include "common/policy/eviction_input.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace farkv {
namespace {

absl::Status CheckLength(const char* span, size_t length, size_t rows) {
  if (length == 0 || length == rows) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "eviction: ", length, " ", span, " but ", rows, " positions"));
}

absl::Status CheckVectors(const char* span, const HeadVectors& vectors,
                          size_t rows) {
  FARKV_RETURN_IF_ERROR(CheckLength(span, vectors.rows.size(), rows));
  if (vectors.rows.empty() || vectors.dim > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("eviction: ", span, " of ", vectors.dim, " elements"));
}

absl::Status CheckPositions(const EvictionInput& input) {
  int64_t next = 0;
  for (const int64_t position : input.positions) {
    if (position < next) {
      return absl::InvalidArgumentError(
          absl::StrCat("eviction: position ", position, " where at least ",
                       next, " must follow; positions ascend from 0"));
    }
    next = position + 1;
  }
  if (next <= input.num_tokens) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("eviction: position ", next - 1, " but only ",
                   input.num_tokens, " tokens were processed"));
}

absl::Status CheckWindow(const EvictionInput& input) {
  const WindowQueries& window = input.window;
  if (window.data.empty()) return absl::OkStatus();
  const auto expected = static_cast<int64_t>(window.num_heads) *
                        window.num_queries * input.keys.dim;
  if (window.num_heads > 0 && window.num_queries > 0 &&
      static_cast<int64_t>(window.data.size()) == expected) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("eviction: ", window.data.size(),
                   " query elements, expected ", window.num_heads, " heads x ",
                   window.num_queries, " queries x ", input.keys.dim));
}

}  // namespace

int64_t EvictionInput::NumOlder(int64_t recent) const {
  const auto end =
      std::lower_bound(positions.begin(), positions.end(), num_tokens - recent);
  return end - positions.begin();
}

absl::Status EvictionInput::Validate() const {
  FARKV_RETURN_IF_ERROR(CheckPositions(*this));
  const size_t rows = positions.size();
  FARKV_RETURN_IF_ERROR(CheckLength("pinned", pinned.size(), rows));
  FARKV_RETURN_IF_ERROR(CheckVectors("keys", keys, rows));
  FARKV_RETURN_IF_ERROR(CheckVectors("values", values, rows));
  FARKV_RETURN_IF_ERROR(CheckLength("cumulative", cumulative.size(), rows));
  if (mass.size() > rows) {
    return absl::InvalidArgumentError(absl::StrCat(
        "eviction: ", mass.size(), " masses but ", rows, " positions"));
  }
  if (num_kept < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "eviction: num_kept is ", num_kept, ", must not be negative"));
  }
  return CheckWindow(*this);
}

std::vector<uint8_t> PinRows(const PinnedTokens& pinned,
                             std::span<const int64_t> positions,
                             int64_t num_tokens) {
  std::vector<uint8_t> out;
  out.reserve(positions.size());
  const int64_t sinks_end = pinned.first_generated + pinned.sinks;
  for (const int64_t position : positions) {
    const bool is_pinned =
        position < pinned.prompt_tokens ||
        (position >= pinned.first_generated && position < sinks_end) ||
        position >= num_tokens - pinned.recent;
    out.push_back(is_pinned ? 1 : 0);
  }
  return out;
}

}  // namespace farkv
