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
    const std::string folder = SmolLm2Folder();
    if (std::filesystem::exists(folder)) return;
    ASSERT_EQ(std::getenv("FARKV_SMOLLM2"), nullptr)
        << folder << " is not there";
    GTEST_SKIP() << folder << " is not there; scripts/fetch_model.sh smollm2 "
                 << "fetches it";
  }
};

}  // namespace farkv::testing

#endif  // FARKV_TESTS_TESTING_SMOLLM2_H_
