#include <memory>
#include <utility>

#include "common/base/thread_pool.h"
#include "kernels/stream.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/model_input.h"

namespace {

// Counts what it is asked for.
class CountingDevice final : public farkv::Device {
 public:
  explicit CountingDevice(farkv::ThreadPool& pool)
      : device_(farkv::OpenDevice("cpu", pool).value()) {}

  farkv::DeviceKind kind() const override { return device_->kind(); }
  absl::StatusOr<farkv::DeviceBuffer> Allocate(size_t bytes) override {
    asked_bytes += bytes;
    return device_->Allocate(bytes);
  }
  std::unique_ptr<farkv::Stream> NewStream() override {
    return device_->NewStream();
  }

  size_t asked_bytes = 0;

 private:
  std::unique_ptr<farkv::Device> device_;
};

// Weights take at most twice their bytes in the file (F16 becomes F32), a
// matrix of one row the room of 16, and a tied embedding table is held twice.
constexpr size_t kMostPerByte = 80;

}  // namespace

// A model that does not fit its own config is an error before its sizes are
// believed; one that loads has what its config says.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using farkv::testing::Expect;
  static farkv::ThreadPool pool(1);
  const auto input =
      farkv::testing::OpenModelInput(farkv::testing::InputBytes(data, size));
  if (!input.ok()) return 0;
  CountingDevice device(pool);
  const auto weights =
      farkv::ModelWeights::Load(*input->tensors, input->config, device);
  Expect(device.asked_bytes <= kMostPerByte * size);
  if (!weights.ok()) {
    Expect(!weights.status().message().empty());
    return 0;
  }
  Expect(static_cast<int>(weights->layers.size()) == input->config.num_layers);
  Expect(weights->num_parameters > 0);
  Expect(weights->embedding.vocab == input->config.vocab_size);
  Expect(weights->logits.rows == input->config.vocab_size);
  return 0;
}
