#include "gpu_worker/tiering/stripes.h"

#include <algorithm>
#include <numeric>

#include "common/base/crc32c.h"
#include "common/base/endian.h"
#include "common/base/random.h"
#include "common/layout/kv_geometry.h"

namespace farkv {
namespace {

uint64_t Weight(const SessionId& session, const std::string& node_id) {
  const auto bytes = std::as_bytes(std::span(session.bytes));
  const uint32_t node = Crc32c(std::as_bytes(std::span(node_id)));
  return CounterDraw(node, {LoadLe<uint64_t>(bytes.data()),
                            LoadLe<uint64_t>(bytes.data() + 8)});
}

}  // namespace

std::vector<int> NodeOrder(const SessionId& session,
                           std::span<const std::string> node_ids) {
  std::vector<uint64_t> weights;
  for (const std::string& id : node_ids) {
    weights.push_back(Weight(session, id));
  }
  std::vector<int> order(node_ids.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return weights[static_cast<size_t>(a)] > weights[static_cast<size_t>(b)];
  });
  return order;
}

int NodeOfPage(std::span<const int> order, int32_t page_index,
               int stripe_tokens, bool spread, int first_choice) {
  const auto stripe =
      static_cast<size_t>(page_index / (stripe_tokens / kPageTokens));
  const size_t turn = static_cast<size_t>(first_choice) + (spread ? stripe : 0);
  return order[turn % order.size()];
}

}  // namespace farkv
