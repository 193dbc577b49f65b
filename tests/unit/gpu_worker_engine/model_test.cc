// Models whose parts do not fit each other.
#include "gpu_worker/engine/model.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "common/base/thread_pool.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace farkv {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// The built-in reasoner with one field of its config.json changed.
class ModelTest : public ::testing::Test {
 protected:
  ~ModelTest() override { std::filesystem::remove_all(folder_); }

  absl::Status LoadWith(const char* field, int value) {
    const std::filesystem::path reasoner =
        std::filesystem::path(getenv("FARKV_TEST_SOURCE_DIR")) / "models" /
        "reasoner";
    std::filesystem::create_directories(folder_);
    for (const char* name : {"model.safetensors", "tokenizer.json"}) {
      std::filesystem::create_symlink(reasoner / name, folder_ / name);
    }
    std::ifstream file(reasoner / "config.json");
    nlohmann::json config = nlohmann::json::parse(file);
    config[field] = value;
    std::ofstream(folder_ / "config.json") << config;
    return Model::Load(folder_.string(), *device_).status();
  }

  const std::filesystem::path folder_ =
      std::filesystem::path(::testing::TempDir()) /
      ("farkv-model-test-" + std::to_string(getpid()));
  ThreadPool pool_{1};
  const std::unique_ptr<Device> device_ = OpenDevice("cpu", pool_).value();
};

TEST_F(ModelTest, ATokenizerWithIdsBeyondTheVocabularyIsRefusedWithBoth) {
  const absl::Status status = LoadWith("vocab_size", 72);

  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(
      std::string(status.message()),
      AllOf(HasSubstr(folder_.string()),
            HasSubstr("the tokenizer has ids up to 72, the model a vocab_size "
                      "of 72")));
}

TEST_F(ModelTest, AnEndTokenBeyondTheVocabularyIsRefusedWithBoth) {
  const absl::Status status = LoadWith("eos_token_id", 80);

  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("eos_token_id is 80, must be a whole number in "
                        "[0, 79]"));
}

}  // namespace
}  // namespace farkv
