#include "common/async/credit.h"

#include "absl/strings/str_cat.h"

namespace farkv {

CreditWindow::CreditWindow(int max_operations, size_t max_bytes)
    : max_operations_(max_operations), max_bytes_(max_bytes) {}

absl::Status CreditWindow::TryAcquire(size_t bytes) {
  if (operations_ >= max_operations_) {
    return absl::ResourceExhaustedError(
        absl::StrCat("window full: ", operations_, " of ", max_operations_,
                     " operations in flight"));
  }
  const size_t left = bytes_ < max_bytes_ ? max_bytes_ - bytes_ : 0;
  if (operations_ > 0 && bytes > left) {
    return absl::ResourceExhaustedError(
        absl::StrCat("window full: ", bytes, " bytes asked, ", bytes_, " of ",
                     max_bytes_, " in flight"));
  }
  ++operations_;
  bytes_ += bytes;
  return absl::OkStatus();
}

void CreditWindow::Release(size_t bytes) {
  --operations_;
  bytes_ -= bytes;
}

}  // namespace farkv
