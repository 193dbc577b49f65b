// `farkvctl get pages` and `describe pool` over real processes: whose the pages
// of a node are, and why they are not free.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "bench/node_cluster.h"
#include "tests/integration/worker_process.h"

namespace farkv::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

class FarkvctlPagesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    bench::NodeClusterOptions options;
    options.bin_dir = BinDir();
    options.t1_bytes = "64MiB";
    auto cluster = bench::NodeCluster::Start(options);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    cluster_.emplace(*std::move(cluster));
    node_ = cluster_->AdminAddresses().front();
  }

  ProgramResult Ctl(std::vector<std::string> words) const {
    words.insert(words.begin(), BinDir() + "/farkvctl");
    words.push_back("--nodes=" + node_);
    words.push_back("--workers=none");
    return RunProgram(words);
  }
  nlohmann::json Items(std::vector<std::string> words) const {
    words.insert(words.end(), {"-o", "json"});
    const ProgramResult result = Ctl(words);
    // Without what stands on stderr.
    const auto document = nlohmann::json::parse(
        result.output.substr(0, result.output.find("\nhint: ")), nullptr,
        false);
    EXPECT_TRUE(document.is_object()) << result.output;
    return document["items"];
  }

  std::optional<bench::NodeCluster> cluster_;
  std::string node_;
};

TEST_F(FarkvctlPagesTest, AnIdleNodeHoldsNothingAndTakesPages) {
  EXPECT_EQ(Items({"get", "pages"}).size(), 0u);
  const ProgramResult pool = Ctl({"describe", "pool", "node-0"});
  EXPECT_EQ(pool.exit_code, 0) << pool.output;
  EXPECT_THAT(pool.output,
              AllOf(HasSubstr("T1 of node-0"), HasSubstr("New pages:   taken"),
                    HasSubstr("SESSION")));
  const ProgramResult other = Ctl({"describe", "pool", "node-9"});
  EXPECT_EQ(other.exit_code, 1);
  EXPECT_THAT(other.output, HasSubstr("node-9"));
  ExpectCleanEnd(*cluster_);
}

// A worker that is killed leaves its session; then its pages are in quarantine.
TEST_F(FarkvctlPagesTest, PagesOfADeadWorkerAreHeldByItsLeaseAndThenGivenUp) {
  auto worker = WorkerProcess::Start(
      {"--memory-nodes=" + absl::StrJoin(cluster_->Addresses(), ","),
       "--lease=4s", "--tenant=blue"});
  ASSERT_TRUE(worker.ok()) << worker.status();
  grpc::ClientContext context;
  SetDeadline(context, absl::Minutes(3));
  const auto stream =
      (*worker)->generation().Generate(&context, ForcedRequest(1, 300, 4000));
  worker::v1::GenerateResponse delta;
  nlohmann::json stored;
  while (stored.empty()) {
    ASSERT_TRUE(stream->Read(&delta)) << "it ended with nothing stored";
    stored = Items({"get", "pages", "--state", "stored", "--limit", "3"});
  }
  (*worker)->process().Signal(SIGKILL);

  EXPECT_LE(stored.size(), 3u);
  EXPECT_EQ(stored[0]["tenant"], "blue");
  EXPECT_THAT(std::string(stored[0]["worker"]), HasSubstr("worker-"));
  EXPECT_EQ(stored[0]["tier"], "T1");
  EXPECT_GT(stored[0]["liveRows"], 0);
  EXPECT_THAT(std::string(stored[0]["why"]),
              ContainsRegex("live rows; lease runs for .*s unless renewed"));
  const std::string session = stored[0]["session"];
  EXPECT_THAT(Ctl({"describe", "pool", node_}).output,
              ContainsRegex(session + " +blue +worker-.* +open "));
  nlohmann::json given_up;
  const absl::Time until = absl::Now() + absl::Minutes(1);
  while (given_up.empty() && absl::Now() < until) {
    given_up = Items({"get", "pages", "--state", "quarantined", "--session",
                      session, "--limit", "0"});
  }
  ASSERT_FALSE(given_up.empty());
  EXPECT_EQ(given_up[0]["session"], session);
  EXPECT_THAT(std::string(given_up[0]["why"]), HasSubstr("given up"));
  EXPECT_THAT(Ctl({"describe", "pool", "node-0"}).output,
              ContainsRegex(session + " +blue +- +quarantined "));
  ExpectSurvivorsEndClean(nullptr, *cluster_, Recoveries::kAllowed);
}

// However many pages there are, an answer has a thousand at most.
TEST_F(FarkvctlPagesTest, ManyPagesComeInParts) {
  auto worker = WorkerProcess::Start(
      {"--memory-nodes=" + absl::StrJoin(cluster_->Addresses(), ",")});
  ASSERT_TRUE(worker.ok()) << worker.status();
  grpc::ClientContext context;
  SetDeadline(context, absl::Minutes(3));
  const auto stream =
      (*worker)->generation().Generate(&context, ForcedRequest(1, 300, 4000));
  worker::v1::GenerateResponse delta;
  nlohmann::json all;
  while (all.size() < 4) {
    ASSERT_TRUE(stream->Read(&delta)) << "it ended with nothing reserved";
    all = Items({"get", "pages"});
  }
  const auto admin = AdminAt(cluster_->nodes()[0].admin_port);

  admin::v1::ListPagesRequest request;
  request.set_page_size(3);
  grpc::ClientContext listing;
  SetDeadline(listing, absl::Seconds(30));
  admin::v1::ListPagesResponse part;
  ASSERT_TRUE(admin->ListPages(&listing, request, &part).ok());
  EXPECT_EQ(part.pages_size(), 3);
  EXPECT_NE(part.next_page_token(), "");
  const ProgramResult two = Ctl({"get", "pages", "--limit=2", "--no-headers"});
  EXPECT_THAT(two.output, HasSubstr("hint: only the first 2 pages"));
  request.set_page_size(1001);
  grpc::ClientContext refused;
  SetDeadline(refused, absl::Seconds(30));
  EXPECT_EQ(admin->ListPages(&refused, request, &part).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);

  context.TryCancel();
  stream->Finish();
  ExpectCleanEnd(**worker, 1);
  ExpectCleanEnd(*cluster_);
}

}  // namespace
}  // namespace farkv::testing
