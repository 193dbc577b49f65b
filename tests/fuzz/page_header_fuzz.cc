#include <cstring>
#include <vector>

#include "common/page/page_format.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

// The two pages of the seeds.
struct Expected {
  farkv::KvGeometry geometry;
  farkv::Tier tier;
  int t2_bits;
};

constexpr Expected kExpected[] = {
    {{1, 2, 16, farkv::DType::kBf16}, farkv::Tier::kT1, 0},
    {{1, 1, 32, farkv::DType::kF32}, farkv::Tier::kT2, 8},
};

farkv::PageIdentity Identity(const Expected& expected) {
  farkv::PageIdentity identity;
  for (size_t i = 0; i < 16; ++i) {
    identity.session.bytes[i] = static_cast<uint8_t>(0xa0 + i);
  }
  identity.layer = 7;
  identity.page_index = 41;
  identity.generation.value = 0x0102030405060708;
  identity.tier = expected.tier;
  identity.t2_bits = expected.t2_bits;
  return identity;
}

}  // namespace

// A header that passes is, but for the bitmaps and bytes that no checksum
// covers, the one that Format and Seal write.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  for (const Expected& expected : kExpected) {
    const size_t bytes = farkv::PageLayout::T1(expected.geometry).header_bytes;
    if (size < bytes) continue;
    std::vector<uint64_t> found(bytes / 8);
    std::memcpy(found.data(), data, bytes);
    auto* page = reinterpret_cast<std::byte*>(found.data());
    const farkv::PageIdentity identity = Identity(expected);
    if (!farkv::CheckPageHeader(page, expected.geometry, identity).ok()) {
      continue;
    }
    std::vector<uint64_t> written(bytes / 8);
    farkv::PageHeader header(reinterpret_cast<std::byte*>(written.data()),
                             expected.geometry);
    farkv::PageHeader source(page, expected.geometry);
    header.set_generation(identity.generation);
    header.Format(identity, expected.geometry);
    for (int head = 0; head < expected.geometry.num_kv_heads; ++head) {
      for (int slot = 0; slot < farkv::kPageTokens; ++slot) {
        header.set_row_crc(head, slot, source.row_crc(head, slot));
      }
    }
    header.Seal();
    farkv::testing::Expect(std::memcmp(written.data(), found.data(), 60) == 0);
  }
  return 0;
}
