// The driver of a fuzz target outside the fuzz preset: feeds it the seeds of
// $FARKV_FUZZ_CORPUS and, from each, the same mutations every time.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

constexpr int kMutationsPerSeed = 3000;

using Input = std::vector<uint8_t>;

std::vector<Input> Corpus() {
  const char* root = std::getenv("FARKV_TEST_SOURCE_DIR");
  const char* corpus = std::getenv("FARKV_FUZZ_CORPUS");
  const std::filesystem::path folder =
      std::filesystem::path(root == nullptr ? "." : root) /
      "tests/fuzz/corpus" / (corpus == nullptr ? "" : corpus);
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    files.push_back(entry.path());
  }
  EXPECT_FALSE(files.empty())
      << folder
      << " has no seeds (set FARKV_TEST_SOURCE_DIR and FARKV_FUZZ_CORPUS)";
  std::sort(files.begin(), files.end());
  std::vector<Input> inputs;
  for (const std::filesystem::path& path : files) {
    std::ifstream file(path, std::ios::binary);
    inputs.emplace_back(std::istreambuf_iterator<char>(file),
                        std::istreambuf_iterator<char>());
  }
  return inputs;
}

// A vector of its own for each run, so that AddressSanitizer sees its ends.
void RunOnce(const Input& input) {
  const Input exact(input.begin(), input.end());
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
}

void Mutate(Input& input, std::mt19937_64& random) {
  if (input.empty()) input.push_back(0);
  const size_t at = random() % input.size();
  switch (random() % 6) {
    case 0:
      input[at] ^= static_cast<uint8_t>(1u << (random() % 8));
      break;
    case 1:
      input[at] = static_cast<uint8_t>(random());
      break;
    case 2:
      input[at] = random() % 2 == 0 ? 0xff : 0;
      break;
    case 3:
      input.resize(at);
      break;
    case 4:
      input.insert(input.end(), random() % 100, 0);
      break;
    case 5:
      input[at] = static_cast<uint8_t>(input[at] + 1);
      break;
  }
}

TEST(CorpusReplayTest, SeedsAndTheirMutationsKeepTheProperties) {
  RunOnce({});
  std::mt19937_64 random(1);
  for (const Input& seed : Corpus()) {
    RunOnce(seed);
    for (int i = 0; i < kMutationsPerSeed; ++i) {
      Input input = seed;
      for (size_t left = 1 + random() % 4; left > 0; --left) {
        Mutate(input, random);
      }
      RunOnce(input);
    }
  }
}

}  // namespace
