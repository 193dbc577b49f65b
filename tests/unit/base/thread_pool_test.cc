#include "common/base/thread_pool.h"

#include <atomic>
#include <numeric>
#include <thread>
#include <vector>

#include "absl/synchronization/barrier.h"
#include "gtest/gtest.h"

namespace farkv {
namespace {

TEST(ThreadPoolTest, CallsTheBodyOnceForEachIndex) {
  ThreadPool pool(3);
  for (int64_t count : {0, 1, 2, 3, 1000}) {
    std::vector<std::atomic<int>> calls(static_cast<size_t>(count));

    pool.ParallelFor(count,
                     [&](int64_t i) { ++calls[static_cast<size_t>(i)]; });

    for (const auto& c : calls) EXPECT_EQ(c, 1);
  }
}

// A thread that wakes late must not run an index of a finished loop, nor one
// of the next loop twice.
TEST(ThreadPoolTest, ShortLoopsInQuickSuccessionDoNotMix) {
  ThreadPool pool(4);
  for (int64_t loop = 0; loop < 5000; ++loop) {
    std::vector<int64_t> results(5, -1);

    pool.ParallelFor(5, [&results, loop](int64_t i) {
      results[static_cast<size_t>(i)] = loop * 5 + i;
    });

    for (int64_t i = 0; i < 5; ++i) {
      ASSERT_EQ(results[static_cast<size_t>(i)], loop * 5 + i);
    }
  }
}

TEST(ThreadPoolTest, BodiesRunAtTheSameTime) {
  ThreadPool pool(2);
  // Each body waits for the other one: neither returns unless both run.
  auto* barrier = new absl::Barrier(2);

  pool.ParallelFor(2, [barrier](int64_t) {
    if (barrier->Block()) delete barrier;
  });
}

TEST(ThreadPoolTest, APoolOfOneRunsOnItsCaller) {
  ThreadPool pool(1);
  EXPECT_EQ(pool.num_threads(), 1);

  pool.ParallelFor(10, [caller = std::this_thread::get_id()](int64_t) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
  });
}

TEST(ThreadPoolTest, ALoopInsideALoopRunsOnItsCaller) {
  ThreadPool pool(3);
  std::atomic<int64_t> sum{0};

  pool.ParallelFor(10, [&](int64_t i) {
    const auto caller = std::this_thread::get_id();
    pool.ParallelFor(10, [&](int64_t j) {
      EXPECT_EQ(std::this_thread::get_id(), caller);
      sum += 10 * i + j;
    });
  });

  EXPECT_EQ(sum, 99 * 100 / 2);
}

TEST(ThreadPoolTest, SeveralThreadsMayCallAtOnce) {
  ThreadPool pool(3);
  std::vector<int64_t> sums(4);
  std::vector<std::thread> callers;
  for (int64_t& sum : sums) {
    callers.emplace_back([&pool, &sum] {
      for (int round = 0; round < 200; ++round) {
        std::vector<int64_t> parts(16);
        pool.ParallelFor(
            16, [&parts](int64_t i) { parts[static_cast<size_t>(i)] = i; });
        sum += std::accumulate(parts.begin(), parts.end(), int64_t{0});
      }
    });
  }
  for (std::thread& caller : callers) caller.join();

  for (int64_t sum : sums) EXPECT_EQ(sum, 200 * 120);
}

}  // namespace
}  // namespace farkv
