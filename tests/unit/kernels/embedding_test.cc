// Embedding tables in the stored group formats; the plain types are in
// elementwise_test.cc.
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/elementwise.h"
#include "kernels/quantized_groups.h"
#include "tests/unit/kernels/stored_weight.h"

namespace farkv {
namespace {

class QuantizedEmbeddingTest
    : public testing::TestWithParam<std::tuple<const char*, WeightType>> {};

TEST_P(QuantizedEmbeddingTest, ALookedUpRowIsDequantized) {
  const auto [device_name, type] = GetParam();
  ThreadPool pool(2);
  const std::unique_ptr<Device> device = OpenDevice(device_name, pool).value();
  const std::unique_ptr<Stream> stream = device->NewStream();
  const int32_t width = 3 * GroupElements(type);
  const StoredWeight stored = RandomStoredWeight(type, 5, width, 1);
  EmbeddingTable table{type, 5, width,
                       device->Allocate(stored.bytes.size()).value()};
  stream->Copy(table.data.data(), stored.bytes.data(), stored.bytes.size());
  const std::vector<int32_t> tokens = {4, 0, 4, 2};
  std::vector<float> out(tokens.size() * static_cast<size_t>(width));
  const DeviceBuffer buffer =
      device->Allocate(out.size() * sizeof(float)).value();

  Embed(*stream, table, tokens, reinterpret_cast<float*>(buffer.data()));
  stream->Copy(out.data(), buffer.data(), buffer.size());
  stream->Synchronize();

  std::vector<float> expected;
  for (const int32_t token : tokens) {
    std::vector<float> row(static_cast<size_t>(width));
    DequantizeRow(type,
                  stored.bytes.data() +
                      static_cast<size_t>(token) * StoredRowBytes(type, width),
                  width, row.data());
    expected.insert(expected.end(), row.begin(), row.end());
  }
  EXPECT_EQ(out, expected);
}

INSTANTIATE_TEST_SUITE_P(Devices, QuantizedEmbeddingTest,
                         testing::Combine(testing::Values("cpu", "fake"),
                                          testing::ValuesIn(kQuantizedTypes)));

}  // namespace
}  // namespace farkv
