#include "common/policy/draws.h"

#include <cmath>

#include "common/base/random.h"
#include "common/policy/logarithm.h"

namespace farkv {

double PolicyDraws::Unit(int64_t position, uint64_t lane) const {
  return ToUnit(CounterDraw(seed, {request, layer, kv_head, event,
                                   static_cast<uint64_t>(position), lane}));
}

PolicyDraws PolicyDraws::SharedByHeads() const {
  PolicyDraws shared = *this;
  shared.kv_head = kAll;
  return shared;
}

PolicyDraws PolicyDraws::SharedByLayersAndHeads() const {
  PolicyDraws shared = SharedByHeads();
  shared.layer = kAll;
  return shared;
}

std::vector<float> NormalProjection(const PolicyDraws& draws, int32_t rank,
                                    int32_t dim) {
  const PolicyDraws shared = draws.SharedByHeads();
  const auto count = static_cast<size_t>(rank) * static_cast<size_t>(dim);
  const double deviation = 1.0 / std::sqrt(static_cast<double>(rank));
  std::vector<float> out;
  out.reserve(count + 1);
  // Marsaglia's polar method: needs a logarithm and a square root (which IEEE
  // rounds exactly) only, and gives two numbers per accepted point.
  for (int64_t pair = 0; out.size() < count; ++pair) {
    for (uint64_t lane = 0;; lane += 2) {
      const double x = 2 * shared.Unit(pair, lane) - 1;
      const double y = 2 * shared.Unit(pair, lane + 1) - 1;
      const double square = x * x + y * y;
      if (square >= 1 || square == 0) continue;
      const double factor =
          deviation * std::sqrt(-2 * NaturalLog(square) / square);
      out.push_back(static_cast<float>(x * factor));
      out.push_back(static_cast<float>(y * factor));
      break;
    }
  }
  out.resize(count);
  return out;
}

}  // namespace farkv
