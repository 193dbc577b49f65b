// Small parts that the files of ApplyTierPlan share. Pure.
#ifndef FARKV_MEMORY_NODE_DIRECTORY_PLAN_PARTS_H_
#define FARKV_MEMORY_NODE_DIRECTORY_PLAN_PARTS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/rpc/error_reason.h"
#include "memory_node/directory/session.h"

namespace farkv {

inline absl::Status InvalidPlan(const std::string& message) {
  return WithReason(absl::InvalidArgumentError(message),
                    ErrorReason::kInvalidField);
}

inline std::string PageText(const PageName& page) {
  return absl::StrCat("layer ", page.layer, ", page ", page.page_index);
}

inline absl::Status NotStored(const PageName& page) {
  return WithReason(
      absl::NotFoundError(absl::StrCat(PageText(page), " is not stored")),
      ErrorReason::kNotFound);
}

inline PagePlacement PlacementOf(const PageName& page, const PageEntry& entry) {
  PagePlacement placement;
  placement.page = page;
  placement.generation = entry.handle.generation;
  placement.slab_id = entry.handle.slab_id;
  placement.slab_offset = entry.handle.offset;
  placement.tier = entry.tier;
  return placement;
}

}  // namespace farkv

#endif  // FARKV_MEMORY_NODE_DIRECTORY_PLAN_PARTS_H_
