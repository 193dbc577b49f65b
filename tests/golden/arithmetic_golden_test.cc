// The bits of the arithmetic under a kernel revision, for every Highway target
// that this CPU has. When a change makes this test fail, the revision must be
// raised (kernels/kernel_target.cc) and a file of the new one be made: else a
// worker and a node of two releases mix under --exactness=bitwise.
#include <array>
#include <bit>
#include <cstring>
#include <fstream>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "common/attention_tree/attention_exp.h"
#include "common/base/bf16.h"
#include "common/base/crc32c.h"
#include "gtest/gtest.h"
#include "hwy/highway.h"
#include "kernels/attention.h"
#include "kernels/attention_leaf.h"
#include "kernels/cpu_features.h"
#include "kernels/matmul_kernels.h"
#include "kernels/stream.h"
#include "tests/testing/highway_targets.h"

namespace farkv {
namespace {

constexpr float kEmpty = -std::numeric_limits<float>::infinity();
constexpr int kDim = 32;
constexpr int kHeads = 4;
constexpr int kProductRows = 5;
constexpr int kProductCols = 96;

int Number(int a, int b) {
  return (a * 37 + b * 131 + (b >> 3) * 17 + 59) % 253 - 126;
}

// A bf16 number; of many sizes, so that the order of a sum matters.
float Spread(int a, int b) {
  return static_cast<float>(Number(a, b)) /
         static_cast<float>(1 << (5 + (a + 5 * b) % 11));
}

template <class T>
uint32_t Checksum(const std::vector<T>& values) {
  return Crc32c(std::as_bytes(std::span(values)));
}

// Elements as a page or a weight of `dtype` holds them.
std::vector<std::byte> Stored(const std::vector<float>& values, DType dtype) {
  const size_t element = dtype == DType::kBf16 ? 2 : 4;
  std::vector<std::byte> bytes(values.size() * element);
  for (size_t i = 0; i < values.size(); ++i) {
    const uint16_t half = FloatToBf16(values[i]);
    std::byte* to = bytes.data() + i * element;
    if (dtype == DType::kBf16) {
      std::memcpy(to, &half, sizeof(half));
    } else {
      std::memcpy(to, &values[i], sizeof(float));
    }
  }
  return bytes;
}

uint32_t Exps() {
  std::vector<float> values;
  for (int i = 0; i < 65536; ++i) {
    values.push_back(AttentionExp(-static_cast<float>(i) / 752.0f));
  }
  values.push_back(AttentionExp(kEmpty));
  return Checksum(values);
}

// m, l and O of three heads of 16.
struct Partials {
  explicit Partials(int seed) {
    for (int h = 0; h < 3; ++h) {
      m()[h] = static_cast<float>(Number(seed, h)) / 12.0f;
      l()[h] = static_cast<float>(Number(seed, h) + 222) / 96.0f;
    }
    for (int i = 0; i < 48; ++i) {
      view().out[i] = static_cast<float>(Number(seed, 10 + i)) / 96.0f;
    }
  }

  float* m() { return values.data(); }
  float* l() { return values.data() + 3; }
  PartialView view() { return {m(), l(), values.data() + 6}; }

  std::vector<float> values = std::vector<float>(6 + 48);
};

Partials OneHeadEmpty() {
  Partials partials(1);
  partials.m()[1] = kEmpty;
  partials.l()[1] = 0.0f;
  std::fill_n(partials.view().out + 16, 16, 0.0f);
  return partials;
}

uint32_t Merged() {
  Partials left = OneHeadEmpty();
  Partials right(2);
  MergePartials(3, 16, left.view(), right.view());
  return Checksum(left.values);
}

uint32_t Scores() {
  Partials leaf = OneHeadEmpty();
  std::vector<float> m(3), l(3), weights(size_t{3} * kPageTokens);
  for (int h = 0; h < 3; ++h) {
    const auto i = static_cast<size_t>(h);
    m[i] = std::max(leaf.m()[h], 0.0f) + 0.75f;
    l[i] = leaf.l()[h] + 1.5f;
    for (int s = 0; s < kPageTokens; ++s) {
      weights[i * kPageTokens + static_cast<size_t>(s)] =
          static_cast<float>(Number(h, s) + 126) / 252.0f;
    }
  }
  AttentionArgs args;
  args.geometry = {2, 1, 16, DType::kF32};
  args.num_query_heads = 3;
  std::vector<int64_t> scores(kPageTokens);
  AddLeafScores(args, weights.data(), leaf.m(), m.data(), l.data(),
                scores.data());
  return Checksum(scores);
}

// One page of one KV head with a few dead rows, which hold NaN.
std::vector<std::byte> Rows(int first, uint64_t live, DType dtype) {
  std::vector<float> rows(size_t{kPageTokens} * kDim,
                          std::numeric_limits<float>::quiet_NaN());
  for (int s = 0; s < kPageTokens; ++s) {
    if ((live >> s & 1) == 0) continue;
    for (int c = 0; c < kDim; ++c) {
      rows[static_cast<size_t>(s * kDim + c)] = Spread(first + s, c);
    }
  }
  return Stored(rows, dtype);
}

uint32_t Leaf(DType dtype, const LeafKernel& kernel) {
  const uint64_t live = ~(1ull << 0 | 1ull << 7 | 1ull << 40);
  const std::vector<std::byte> keys = Rows(0, live, dtype);
  const std::vector<std::byte> values = Rows(64, live, dtype);
  std::vector<float> query;
  for (int i = 0; i < kHeads * kDim; ++i) {
    query.push_back(static_cast<float>(Number(200 + i / kDim, i % kDim)) /
                    96.0f);
  }
  const Run run{.keys = keys.data(),
                .values = values.data(),
                .head_stride = keys.size(),
                .length = kPageTokens};
  AttentionArgs args;
  args.geometry = {1, 1, kDim, dtype};
  args.num_query_heads = kHeads;
  args.scale = 0x1.6a09e6p-3f;
  constexpr size_t kOut = 2 * kHeads;
  constexpr size_t kWeights = kOut + kHeads * kDim;
  std::vector<float> result(kWeights + size_t{kHeads} * kPageTokens);
  RunLeaf(args, kernel, query.data(), 63, {0, &live, {&run, 1}},
          {result.data(), result.data() + kHeads, result.data() + kOut},
          result.data() + kWeights);
  return Checksum(result);
}

uint32_t MatMul(DType dtype, matmul::Kernel kernel) {
  const WeightType type =
      dtype == DType::kBf16 ? WeightType::kBf16 : WeightType::kF32;
  std::vector<float> row, weight, out(kProductRows);
  for (int k = 0; k < kProductCols; ++k) {
    row.push_back(static_cast<float>(Number(300, k)) / 96.0f);
  }
  for (int i = 0; i < kProductRows * kProductCols; ++i) {
    weight.push_back(Spread(i / kProductCols, i % kProductCols));
  }
  std::vector<std::byte> panel(matmul::PanelBytes(type, kProductCols));
  matmul::PackPanel(type, Stored(weight, dtype).data(), kProductRows,
                    kProductCols, 0, panel.data());
  const matmul::Product product{.kernel = kernel,
                                .type = type,
                                .panels = panel.data(),
                                .rows = kProductRows,
                                .cols = kProductCols,
                                .out = out.data()};
  ThreadPool pool(1);
  matmul::Multiply(pool, row.data(), 1, {&product, 1});
  return Checksum(out);
}

// The checksums of the revision that this build names, by "what target".
std::map<std::string, std::string> GoldenLines() {
  const std::string target = KernelTarget();
  const char* root = std::getenv("FARKV_TEST_SOURCE_DIR");
  const std::string path = std::string(root == nullptr ? "." : root) +
                           "/tests/golden/arithmetic_" +
                           target.substr(target.rfind('+') + 1) + ".txt";
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  std::map<std::string, std::string> lines;
  std::string what, of, checksum;
  while (file >> what) {
    if (what == "#") {
      std::getline(file, what);
    } else if (file >> of >> checksum) {
      lines[what + " " + of] = checksum;
    }
  }
  return lines;
}

// A target without lines is named in a skip, with what it gives.
class ArithmeticGoldenTest : public ::testing::Test {
 protected:
  void Expect(const std::string& what, const std::string& target,
              uint32_t checksum) {
    const std::string key = what + " " + target;
    char hex[9];
    std::snprintf(hex, sizeof(hex), "%08x", checksum);
    if (const auto line = golden_.find(key); line != golden_.end()) {
      EXPECT_EQ(hex, line->second) << key;
    } else {
      unknown_ += " \"" + key + " " + hex + "\"";
    }
  }
  void TearDown() override {
    if (unknown_.empty()) return;
    GTEST_SKIP() << "no golden line yet for:" << unknown_;
  }

  const std::map<std::string, std::string> golden_ = GoldenLines();
  std::string unknown_;
};

TEST_F(ArithmeticGoldenTest, EveryTargetKeepsTheBitsOfItsRevision) {
  ForEachHighwayTarget([this] {
    std::string target = KernelTarget();
    target.resize(target.find('+'));

    Expect("exp", "any", Exps());
    Expect("merge", "any", Merged());
    Expect("scores", "any", Scores());
    for (const auto& [name, dtype] :
         {std::pair{"f32", DType::kF32}, std::pair{"bf16", DType::kBf16}}) {
      Expect(std::string("leaf_") + name, target,
             Leaf(dtype, HighwayLeafKernel(dtype)));
      Expect(
          std::string("matmul_") + name, target,
          MatMul(dtype, dtype == DType::kF32 ? matmul::Kernel::kHighwayF32
                                             : matmul::Kernel::kHighwayBf16));
    }
  });
}

TEST_F(ArithmeticGoldenTest, Avx512Bf16KeepsTheBitsOfItsRevision) {
  if (!HasAvx512Bf16()) GTEST_SKIP() << "this CPU has no AVX512_BF16";

  Expect("leaf_bf16", "avx512bf16", Leaf(DType::kBf16, Avx512Bf16LeafKernel()));
  Expect("matmul_bf16", "avx512bf16",
         MatMul(DType::kBf16, matmul::Kernel::kAvx512Bf16));
}

}  // namespace
}  // namespace farkv
