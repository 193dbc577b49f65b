// A T1 page with random rows and correct checksums. Test only.
#ifndef FARKV_TESTS_UNIT_PAGE_PAGE_BUILDER_H_
#define FARKV_TESTS_UNIT_PAGE_PAGE_BUILDER_H_

#include <random>
#include <span>
#include <vector>

#include "common/page/page_format.h"

namespace farkv::testing {

// Aligned to 8, as PageHeader asks, by the vector's element type.
class BuiltPage {
 public:
  BuiltPage(const KvGeometry& shape, const PageIdentity& id, size_t stride)
      : geometry(shape), identity(id), words_(stride / 8) {}

  std::byte* data() { return reinterpret_cast<std::byte*>(words_.data()); }
  PageHeader header() { return PageHeader(data(), geometry); }
  absl::Status Check() { return CheckPageHeader(data(), geometry, identity); }

  KvGeometry geometry;
  PageIdentity identity;

 private:
  std::vector<uint64_t> words_;
};

inline PageIdentity SomeIdentity(Tier tier = Tier::kT1, int t2_bits = 0) {
  PageIdentity identity;
  identity.session.bytes[3] = 0xab;
  identity.layer = 5;
  identity.page_index = 17;
  identity.generation = Generation{3};
  identity.tier = tier;
  identity.t2_bits = t2_bits;
  return identity;
}

inline BuiltPage BuildT1(const KvGeometry& geometry, uint64_t seed) {
  const PageLayout layout = PageLayout::T1(geometry);
  BuiltPage page(geometry, SomeIdentity(), layout.stride);
  PageHeader header = page.header();
  header.set_generation(page.identity.generation);
  header.Format(page.identity, geometry);
  std::mt19937_64 random(seed);
  const std::span<std::byte> payload(page.data() + layout.header_bytes,
                                     layout.payload_bytes);
  for (std::byte& byte : payload) byte = static_cast<std::byte>(random());
  for (int head = 0; head < geometry.num_kv_heads; ++head) {
    header.set_live(head, ~uint64_t{0});
    for (int slot = 0; slot < kPageTokens; ++slot) {
      const auto h = static_cast<size_t>(head);
      const auto s = static_cast<size_t>(slot);
      const size_t bytes = geometry.VectorBytes();
      header.set_row_crc(
          head, slot,
          RowCrc(
              payload.subspan(geometry.KeyOffset(kPageTokens, h, s), bytes),
              payload.subspan(geometry.ValueOffset(kPageTokens, h, s), bytes)));
    }
  }
  header.Seal();
  return page;
}

}  // namespace farkv::testing

#endif  // FARKV_TESTS_UNIT_PAGE_PAGE_BUILDER_H_
