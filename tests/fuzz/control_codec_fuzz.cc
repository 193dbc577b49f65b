#include <string>

#include "common/rpc/eviction_codec.h"
#include "common/rpc/memory_codec.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

// What a message decodes to is what it encodes to, to the last bit.
template <typename Proto>
void RoundTrip(const std::string& bytes) {
  Proto proto;
  if (!proto.ParseFromString(bytes)) return;
  const auto value = farkv::FromProto(proto);
  if (!value.ok()) return;
  const Proto once = farkv::ToProto(*value);
  const auto again = farkv::FromProto(once);
  farkv::testing::Expect(again.ok());
  farkv::testing::Expect(once.SerializeAsString() ==
                         farkv::ToProto(*again).SerializeAsString());
}

}  // namespace

// The first byte says which message the others are.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace v1 = farkv::memory::v1;
  if (size == 0) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 7) {
    case 0:
      RoundTrip<v1::OpenSessionRequest>(bytes);
      break;
    case 1:
      RoundTrip<v1::OpenSessionResponse>(bytes);
      break;
    case 2:
      RoundTrip<v1::ApplyTierPlanRequest>(bytes);
      break;
    case 3:
      RoundTrip<v1::ApplyTierPlanResponse>(bytes);
      break;
    case 4:
      RoundTrip<v1::RenewLeasesResponse>(bytes);
      break;
    case 5:
      RoundTrip<v1::DecideEvictionsRequest>(bytes);
      break;
    case 6:
      RoundTrip<v1::DecideEvictionsResponse>(bytes);
      break;
  }
  return 0;
}
