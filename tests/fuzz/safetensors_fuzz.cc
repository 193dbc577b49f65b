#include "gpu_worker/checkpoint/safetensors.h"
#include "tests/fuzz/fuzz_target.h"

// What opens fills the file: its tensors have as many bytes as their shapes
// and as all that is behind the header.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using farkv::testing::Expect;
  const auto input = farkv::testing::InputBytes(data, size);
  const auto file = farkv::SafetensorsFile::Parse(input, "input");
  if (!file.ok()) return 0;
  size_t total = 0;
  for (const auto& [name, view] : (*file)->tensors()) {
    Expect(view.bytes.empty() ||
           (view.bytes.data() >= input.data() + 8 &&
            view.bytes.data() + view.bytes.size() <= input.data() + size));
    Expect(farkv::TensorBytes(view.type, view.shape) == view.bytes.size());
    Expect((*file)->Find(name, view.shape).ok());
    total += view.bytes.size();
  }
  uint64_t header_bytes = 0;
  std::copy_n(data, 8, reinterpret_cast<uint8_t*>(&header_bytes));
  Expect(8 + header_bytes + total == size);
  return 0;
}
