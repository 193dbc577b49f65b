#include "common/transport/ucx/name_resolver.h"

#include <memory>
#include <string>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace farkv {
namespace {

using ::testing::HasSubstr;

// A name server that says nothing until it is released, which it is at the
// latest when the test ends. Its lookups may outlive the test.
class SilentServer {
 public:
  ~SilentServer() { Release(); }
  NameResolver::Lookup lookup() const {
    return [released = released_](const std::string&, uint16_t port) {
      released->WaitForNotification();
      return *ParseNumericAddress("127.0.0.1", port);
    };
  }
  void Release() const {
    if (!released_->HasBeenNotified()) released_->Notify();
  }

 private:
  const std::shared_ptr<absl::Notification> released_ =
      std::make_shared<absl::Notification>();
};

TEST(NameResolverTest, ASilentNameServerEndsByTheDeadlineAndNamesTheHost) {
  const SilentServer server;
  const NameResolver resolver(absl::Milliseconds(30), server.lookup());

  const absl::Status status = resolver.Resolve("node-7.example", 4000).status();

  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()), HasSubstr("\"node-7.example\""));
  EXPECT_THAT(std::string(status.message()), HasSubstr("30ms"));
}

TEST(NameResolverTest, LookupsThatNeverEndAreBounded) {
  const SilentServer server;
  const NameResolver resolver(absl::Milliseconds(1), server.lookup());
  for (int i = 0; i < NameResolver::kMaxLookups; ++i) {
    EXPECT_EQ(resolver.Resolve("name", 1).status().code(),
              absl::StatusCode::kDeadlineExceeded);
  }

  EXPECT_EQ(resolver.Resolve("name", 1).status().code(),
            absl::StatusCode::kUnavailable);

  server.Release();
  const absl::Time end = absl::Now() + absl::Seconds(20);
  absl::Status status = absl::UnknownError("");
  while (!status.ok() && absl::Now() < end) {
    status = resolver.Resolve("name", 1).status();
  }
  EXPECT_TRUE(status.ok()) << status;
}

TEST(NameResolverTest, ANumericAddressNeedsNoLookup) {
  const NameResolver resolver(absl::Seconds(20),
                              [](const std::string&, uint16_t) {
                                return absl::InternalError("looked up");
                              });

  for (const char* host : {"127.0.0.1", "::1"}) {
    const auto address = resolver.Resolve(host, 4000);
    ASSERT_TRUE(address.ok()) << address.status();
    EXPECT_EQ(address->port(), 4000);
    EXPECT_TRUE(address->is_loopback());
  }
  EXPECT_EQ(resolver.Resolve("localhost", 1).status().code(),
            absl::StatusCode::kInternal);
}

TEST(NameResolverTest, TheNameOfThisHostIsKnown) {
  const NameResolver resolver(absl::Seconds(20));

  const auto address = resolver.Resolve("localhost", 4000);

  ASSERT_TRUE(address.ok()) << address.status();
  EXPECT_TRUE(address->is_loopback());
}

}  // namespace
}  // namespace farkv
