#include "common/mapping/memfd_slab.h"

#include <fcntl.h>
#include <linux/memfd.h>
#include <numa.h>
#include <numaif.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace farkv {

const int kSlabSeals =
    F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;

namespace {

constexpr size_t kSmallPage = 4096;
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kPrefaultStep = size_t{16} << 20;

absl::Status ErrnoError(const MemfdSlabOptions& options, const char* call) {
  const int error = errno;
  const std::string what = absl::StrCat("slab \"", options.name, "\" of ",
                                        options.size_bytes, " bytes: ", call);
  const absl::Status status = absl::ErrnoToStatus(error, what);
  const bool out = error == ENOMEM || error == EMFILE || error == ENFILE;
  return out ? absl::ResourceExhaustedError(status.message()) : status;
}

// A slab while it is made: unmapped again when a later step fails.
struct Mapping {
  UniqueFd fd;
  std::byte* base = nullptr;
};

absl::StatusOr<Mapping> MapMemfd(const MemfdSlabOptions& options,
                                 unsigned extra_flags) {
  Mapping mapping;
  mapping.fd = UniqueFd(memfd_create(
      options.name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING | extra_flags));
  if (!mapping.fd.valid()) return ErrnoError(options, "memfd_create");
  if (ftruncate(mapping.fd.get(), static_cast<off_t>(options.size_bytes)) !=
      0) {
    return ErrnoError(options, "ftruncate");
  }
  void* base = mmap(nullptr, options.size_bytes, PROT_READ | PROT_WRITE,
                    MAP_SHARED, mapping.fd.get(), 0);
  if (base == MAP_FAILED) return ErrnoError(options, "mmap");
  mapping.base = static_cast<std::byte*>(base);
  return mapping;
}

absl::Status BindNuma(const MemfdSlabOptions& options, std::byte* base) {
  if (options.numa_node < 0) return absl::OkStatus();
  if (numa_available() < 0 || options.numa_node > numa_max_node()) {
    return absl::FailedPreconditionError(
        absl::StrCat("slab \"", options.name, "\": there is no NUMA node ",
                     options.numa_node));
  }
  bitmask* nodes = numa_allocate_nodemask();
  numa_bitmask_setbit(nodes, static_cast<unsigned>(options.numa_node));
  const long result = mbind(base, options.size_bytes, MPOL_BIND, nodes->maskp,
                            nodes->size + 1, 0);
  const int error = errno;
  numa_free_nodemask(nodes);
  if (result == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::ErrnoToStatus(
          error, absl::StrCat("slab \"", options.name,
                              "\": binding to NUMA node ", options.numa_node))
          .message());
}

// Backs the bytes with memory without changing them; false leaves errno.
bool Populate(std::byte* from, size_t bytes) {
  int result = 0;
  do {
    result = madvise(from, bytes, MADV_POPULATE_WRITE);
  } while (result != 0 && (errno == EINTR || errno == EAGAIN));
  if (result == 0 || errno != EINVAL) return result == 0;
  // Linux before 5.14 does not know the advice.
  for (size_t i = 0; i < bytes; i += kSmallPage) {
    volatile std::byte* byte = from + i;
    *byte = *byte;
  }
  return true;
}

absl::Status CheckSize(const MemfdSlabOptions& options) {
  if (options.size_bytes > 0 && options.size_bytes % kSmallPage == 0) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("slab \"", options.name, "\": size is ", options.size_bytes,
                   " bytes, must be a positive multiple of ", kSmallPage));
}

}  // namespace

absl::StatusOr<MemfdSlab> MemfdSlab::Create(const MemfdSlabOptions& options) {
  FARKV_RETURN_IF_ERROR(CheckSize(options));
  SlabPages pages = SlabPages::kHugeTlb;
  absl::StatusOr<Mapping> mapping = absl::UnavailableError("not tried");
  if (options.huge_pages && options.size_bytes % kHugePage == 0) {
    mapping = MapMemfd(options, MFD_HUGETLB | MFD_HUGE_2MB);
  }
  if (!mapping.ok()) {
    pages = SlabPages::kAdvised;
    mapping = MapMemfd(options, 0);
  }
  FARKV_RETURN_IF_ERROR(mapping.status());
  // From here on the destructor cleans up.
  MemfdSlab slab(std::move(mapping->fd), mapping->base, options.size_bytes,
                 pages);
  FARKV_RETURN_IF_ERROR(BindNuma(options, slab.base_));
  if (pages == SlabPages::kAdvised) {
    madvise(slab.base_, slab.size_bytes_, MADV_HUGEPAGE);  // only a wish
  }
  // Tenants' rows do not belong into a core dump.
  madvise(slab.base_, slab.size_bytes_, MADV_DONTDUMP);
  if (fcntl(slab.fd_.get(), F_ADD_SEALS, kSlabSeals) != 0) {
    return ErrnoError(options, "F_ADD_SEALS");
  }
  return slab;
}

MemfdSlab::MemfdSlab(UniqueFd fd, std::byte* base, size_t size_bytes,
                     SlabPages pages)
    : fd_(std::move(fd)), base_(base), size_bytes_(size_bytes), pages_(pages) {}

MemfdSlab::MemfdSlab(MemfdSlab&& other) noexcept
    : fd_(std::move(other.fd_)),
      base_(std::exchange(other.base_, nullptr)),
      size_bytes_(std::exchange(other.size_bytes_, 0)),
      pages_(other.pages_) {}

MemfdSlab& MemfdSlab::operator=(MemfdSlab&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(base_, other.base_);
  std::swap(size_bytes_, other.size_bytes_);
  std::swap(pages_, other.pages_);
  return *this;
}

MemfdSlab::~MemfdSlab() {
  if (base_ != nullptr) munmap(base_, size_bytes_);
}

absl::Status MemfdSlab::Prefault(
    absl::FunctionRef<bool(size_t done, size_t total)> progress) {
  for (size_t done = 0; done < size_bytes_;) {
    const size_t step = std::min(kPrefaultStep, size_bytes_ - done);
    if (!Populate(base_ + done, step)) {
      return absl::ResourceExhaustedError(
          absl::ErrnoToStatus(errno,
                              absl::StrCat("prefaulting a slab, ", done, " of ",
                                           size_bytes_, " bytes done"))
              .message());
    }
    done += step;
    if (!progress(done, size_bytes_)) {
      return absl::CancelledError(absl::StrCat(
          "prefaulting a slab ended at ", done, " of ", size_bytes_, " bytes"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<UniqueFd> MemfdSlab::DuplicateFd() const {
  UniqueFd copy(fcntl(fd_.get(), F_DUPFD_CLOEXEC, 0));
  if (copy.valid()) return copy;
  return absl::ErrnoToStatus(errno, "duplicating a slab's descriptor");
}

}  // namespace farkv
