#include "common/rpc/codec_parts.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/error_reason.h"
#include "common/rpc/memory_codec.h"

namespace farkv {
namespace {

absl::Status InvalidField(std::string message) {
  return WithReason(absl::InvalidArgumentError(std::move(message)),
                    ErrorReason::kInvalidField);
}

}  // namespace

memory::v1::PageName ToProto(const PageName& name) {
  memory::v1::PageName proto;
  proto.set_layer(name.layer);
  proto.set_page_index(name.page_index);
  return proto;
}

absl::StatusOr<PageName> FromProto(const memory::v1::PageName& name) {
  if (name.layer() < 0 || name.page_index() < 0) {
    return InvalidField(absl::StrCat("page names layer ", name.layer(),
                                     ", page index ", name.page_index(),
                                     "; neither may be negative"));
  }
  return PageName{name.layer(), name.page_index()};
}

types::v1::Tier ToProto(Tier tier) {
  return static_cast<types::v1::Tier>(static_cast<int>(tier) + 1);
}

absl::StatusOr<Tier> FromProto(types::v1::Tier tier) {
  if (tier < types::v1::TIER_T0 || tier > types::v1::TIER_T3) {
    return InvalidField(
        absl::StrCat("tier is ", static_cast<int>(tier), ", unknown"));
  }
  return static_cast<Tier>(static_cast<int>(tier) - 1);
}

absl::Status CheckCount(const char* field, int64_t count, int64_t limit) {
  if (count <= limit) return absl::OkStatus();
  return InvalidField(absl::StrCat(field, " has ", count, " items, at most ",
                                   limit, " allowed"));
}

types::v1::KvGeometry ToProto(const KvGeometry& geometry) {
  types::v1::KvGeometry proto;
  proto.set_num_layers(geometry.num_layers);
  proto.set_num_kv_heads(geometry.num_kv_heads);
  proto.set_head_dim(geometry.head_dim);
  proto.set_dtype(static_cast<types::v1::DType>(geometry.dtype));
  return proto;
}

absl::StatusOr<KvGeometry> FromProto(const types::v1::KvGeometry& geometry) {
  KvGeometry result;
  result.num_layers = geometry.num_layers();
  result.num_kv_heads = geometry.num_kv_heads();
  result.head_dim = geometry.head_dim();
  absl::Status status;
  if (geometry.dtype() == types::v1::DTYPE_BF16 ||
      geometry.dtype() == types::v1::DTYPE_F32) {
    result.dtype = static_cast<DType>(geometry.dtype());
    status = result.Validate();
  } else {
    status = absl::InvalidArgumentError(absl::StrCat(
        "dtype is ", static_cast<int>(geometry.dtype()), ", unknown"));
  }
  if (!status.ok()) {
    return WithReason(std::move(status), ErrorReason::kInvalidField);
  }
  return result;
}

types::v1::Handshake ToProto(const Handshake& handshake) {
  types::v1::Handshake proto;
  proto.set_protocol_version(handshake.protocol_version);
  proto.set_page_format_version(handshake.page_format_version);
  proto.set_kernel_target(handshake.kernel_target);
  proto.set_software_version(handshake.software_version);
  return proto;
}

Handshake FromProto(const types::v1::Handshake& handshake) {
  return Handshake{handshake.protocol_version(),
                   handshake.page_format_version(), handshake.kernel_target(),
                   handshake.software_version()};
}

}  // namespace farkv
