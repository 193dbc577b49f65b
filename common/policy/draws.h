// The random numbers of a policy at one event of one head (ALGORITHMS 0.3):
// each is a function of its coordinates, so that batch, threads and machine do
// not matter. Pure, thread-safe.
#ifndef FARKV_COMMON_POLICY_DRAWS_H_
#define FARKV_COMMON_POLICY_DRAWS_H_

#include <cstdint>
#include <vector>

namespace farkv {

struct PolicyDraws {
  // Stands for a layer or KV head where all of them share one draw.
  static constexpr uint64_t kAll = ~uint64_t{0};

  uint64_t seed = 0;
  uint64_t request = 0;
  uint64_t layer = 0;
  uint64_t kv_head = 0;
  uint64_t event = 0;

  // In (0, 1), for one token; lanes tell several draws of a token apart.
  double Unit(int64_t position, uint64_t lane = 0) const;

  PolicyDraws SharedByHeads() const;
  PolicyDraws SharedByLayersAndHeads() const;
};

// rank x dim normal numbers of mean 0 and variance 1 / rank, row-major: the
// projection of CurDKV. The same for all heads of a layer; the caller decides
// whether `draws.event` changes it from event to event.
std::vector<float> NormalProjection(const PolicyDraws& draws, int32_t rank,
                                    int32_t dim);

}  // namespace farkv

#endif  // FARKV_COMMON_POLICY_DRAWS_H_
