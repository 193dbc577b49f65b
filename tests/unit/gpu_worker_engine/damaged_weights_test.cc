// A model whose weights load and give logits that are no numbers, as after a
// bad disk block.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <bit>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "gpu_worker/engine/engine.h"

namespace farkv {
namespace {

// Overwrites the first element of a tensor, bf16 or f32, with a NaN.
void Damage(const std::string& path, const std::string& tensor) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  uint64_t header_bytes = 0;  // little endian, as this machine
  file.read(reinterpret_cast<char*>(&header_bytes), sizeof(header_bytes));
  std::string text(header_bytes, ' ');
  file.read(text.data(), static_cast<std::streamsize>(header_bytes));
  const nlohmann::json header = nlohmann::json::parse(text);
  const nlohmann::json& entry = header.at(tensor);
  const std::string nan = entry.at("dtype") == "BF16"
                              ? std::string("\xc0\x7f", 2)
                              : std::string("\x00\x00\xc0\x7f", 4);
  const auto offset = entry.at("data_offsets").at(0).get<uint64_t>();
  file.seekp(static_cast<std::streamoff>(8 + header_bytes + offset));
  file.write(nan.data(), static_cast<std::streamsize>(nan.size()));
  ASSERT_TRUE(file.good());
}

TEST(DamagedWeightsTest, LogitsThatAreNoNumbersEndTheRequestWithAnError) {
  static_assert(std::endian::native == std::endian::little);
  const std::string source =
      absl::StrCat(std::getenv("FARKV_TEST_SOURCE_DIR"), "/models/reasoner");
  const std::string folder =
      absl::StrCat(::testing::TempDir(), "/damaged_weights_", getpid());
  std::filesystem::copy(source, folder);
  Damage(folder + "/model.safetensors", "model.norm.weight");
  EngineOptions options;
  options.model = folder;
  options.threads = 1;
  options.tiering.t0_bytes = uint64_t{1} << 20;
  auto engine = Engine::Create(options);
  ASSERT_TRUE(engine.ok()) << engine.status();
  for (const float temperature : {0.0f, 1.0f}) {
    GenerationRequest request;
    request.prompt = {1, 2, 3};
    request.max_new_tokens = 4;
    request.sampling.temperature = temperature;
    const auto stream = (*engine)->Submit(request);
    ASSERT_TRUE(stream.ok()) << stream.status();
    GenerationEvent event = (*stream)->WaitAndTake();
    while (!event.end.has_value()) event = (*stream)->WaitAndTake();

    EXPECT_TRUE(event.tokens.empty());
    EXPECT_EQ(event.end->error.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(std::string(event.end->error.message()),
                ::testing::HasSubstr("behind position 2 are not finite"));
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace farkv
