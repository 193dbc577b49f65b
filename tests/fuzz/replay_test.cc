// The driver of a fuzz target outside the fuzz preset: feeds it the seeds of
// $FARKV_FUZZ_CORPUS and, from each, the same mutations every time, and counts
// the memory that the target holds.
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <new>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

constexpr int kMutationsPerSeed = 3000;
// More than any input of a few kilobytes has use for: a count that is believed
// before its bytes are there shows as this.
constexpr int64_t kMaxHeldBytes = int64_t{32} << 20;

std::atomic<int64_t> held_bytes = 0;

void* Allocate(size_t bytes) {
  void* const memory = std::malloc(bytes == 0 ? 1 : bytes);
  held_bytes += static_cast<int64_t>(malloc_usable_size(memory));
  if (memory == nullptr || held_bytes > kMaxHeldBytes) {
    std::fprintf(stderr, "allocation bomb: %zu bytes, %lld are held\n", bytes,
                 static_cast<long long>(held_bytes));
    std::abort();
  }
  return memory;
}

void Free(void* memory) {
  if (memory == nullptr) return;
  held_bytes -= static_cast<int64_t>(malloc_usable_size(memory));
  std::free(memory);
}

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

}  // namespace

void* operator new(size_t bytes) { return Allocate(bytes); }
void* operator new[](size_t bytes) { return Allocate(bytes); }
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  return Allocate(bytes);
}
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept {
  return Allocate(bytes);
}
void operator delete(void* memory) noexcept { Free(memory); }
void operator delete[](void* memory) noexcept { Free(memory); }
void operator delete(void* memory, size_t) noexcept { Free(memory); }
void operator delete[](void* memory, size_t) noexcept { Free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept {
  Free(memory);
}
void operator delete[](void* memory, const std::nothrow_t&) noexcept {
  Free(memory);
}

namespace {

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
