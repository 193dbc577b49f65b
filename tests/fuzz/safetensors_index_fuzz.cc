#include "gpu_worker/checkpoint/safetensors_shards.h"
#include "tests/fuzz/fuzz_target.h"

// What an index names stays in the index's own folder.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using farkv::testing::Expect;
  const auto index =
      farkv::ParseSafetensorsIndex(farkv::testing::InputBytes(data, size));
  if (!index.ok()) return 0;
  Expect(!index->empty());
  for (const auto& [tensor, file] : *index) {
    Expect(file.find('/') == std::string::npos);
    Expect(file.find('\0') == std::string::npos);
    Expect(file.ends_with(".safetensors"));
  }
  return 0;
}
