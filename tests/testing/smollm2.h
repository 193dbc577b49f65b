// Where SmolLM2-135M-Instruct lies: $FARKV_SMOLLM2, or else the folder that
// scripts/fetch_model.sh fills. Test only.
#ifndef FARKV_TESTS_TESTING_SMOLLM2_H_
#define FARKV_TESTS_TESTING_SMOLLM2_H_

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace farkv::testing {

inline std::string SmolLm2Folder() {
  const char* folder = std::getenv("FARKV_SMOLLM2");
  if (folder != nullptr) return folder;
  const char* source = std::getenv("FARKV_TEST_SOURCE_DIR");
  return std::string(source == nullptr ? "." : source) + "/models/smollm2";
}

// Skips its tests where the model is not there, so that ctest lists them as not
// run; where $FARKV_SMOLLM2 names it, they fail instead.
class SmolLm2Test : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::getenv("FARKV_SMOLLM2") != nullptr) {
      ASSERT_TRUE(std::filesystem::exists(SmolLm2Folder()))
          << SmolLm2Folder() << " is not there";
      return;
    }
    // The file: a folder may be left over from a fetch that failed.
    const std::string file =
        SmolLm2Folder() + "/SmolLM2-135M-Instruct.Q4_1.gguf";
    if (std::filesystem::exists(file)) return;
    GTEST_SKIP() << file << " is not there; scripts/fetch_model.sh smollm2 "
                 << "fetches it";
  }
};

}  // namespace farkv::testing

#endif  // FARKV_TESTS_TESTING_SMOLLM2_H_
