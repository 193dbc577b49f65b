// Where the dot products of bytes go; the portable kernel for now.
#include "kernels/matmul_kernels.h"

namespace farkv::matmul {

void MultiplyAvx512Vnni(const Tile& tile) { MultiplyHighwayQuantized(tile); }

}  // namespace farkv::matmul
