// docs/METRICS.md against what the programs export, and both against the
// naming rules.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "bench/node_cluster.h"
#include "tests/integration/worker_process.h"

namespace farkv::testing {
namespace {

// As both sides state it: "counter {reason}".
using Table = std::map<std::string, std::string>;

std::string Kind(const std::string& type, const std::set<std::string>& labels) {
  return absl::StrCat(type, " {", absl::StrJoin(labels, ","), "}");
}

// Rows "| `name` | type | labels in backticks | unit | meaning |".
Table Documented(std::map<std::string, std::string>* units) {
  const std::regex row(
      R"(\| `(farkv_\w+)` \| (\w+) \|([^|]*)\| ([^|]*) \| ([^|]+) \|)");
  const std::regex label("`(\\w+)`");
  Table table;
  std::ifstream file(SourceDir() + "/docs/METRICS.md");
  for (std::string line; std::getline(file, line);) {
    if (!absl::StartsWith(line, "| `")) continue;
    std::smatch match;
    EXPECT_TRUE(std::regex_match(line, match, row)) << "cannot read: " << line;
    if (match.empty()) continue;
    std::set<std::string> labels;
    const std::string cell = match.str(3);
    for (std::sregex_iterator it(cell.begin(), cell.end(), label), end;
         it != end; ++it) {
      labels.insert(it->str(1));
    }
    EXPECT_TRUE(table.emplace(match.str(1), Kind(match.str(2), labels)).second)
        << match.str(1) << " is there twice";
    (*units)[match.str(1)] = match.str(4);
  }
  return table;
}

std::set<std::string> LabelsOf(const std::string& series) {
  const std::regex label("(\\w+)=\"");
  std::set<std::string> labels;
  for (std::sregex_iterator it(series.begin(), series.end(), label), end;
       it != end; ++it) {
    if (it->str(1) != "le") labels.insert(it->str(1));
  }
  return labels;
}

// The families of a scrape. A family's series follow its TYPE line.
void AddExported(uint16_t port, Table* table) {
  std::istringstream scrape(HttpGet(port, "/metrics"));
  std::string family, type;
  for (std::string line; std::getline(scrape, line);) {
    if (absl::StartsWith(line, "# TYPE ")) {
      std::istringstream words(line.substr(7));
      words >> family >> type;
    } else if (absl::StartsWith(line, "farkv_")) {
      ASSERT_TRUE(absl::StartsWith(line, family)) << line;
      const std::string kind = Kind(type, LabelsOf(line));
      const auto added = table->emplace(family, kind);
      EXPECT_EQ(added.first->second, kind) << "of one family: " << line;
    }
  }
}

class MetricsTableTest : public ::testing::Test {
 protected:
  void SetUp() override {
    documented_ = Documented(&units_);
    ASSERT_FALSE(documented_.empty());
  }

  Table documented_;
  std::map<std::string, std::string> units_;
};

TEST_F(MetricsTableTest, ItNamesExactlyWhatNodeAndWorkerExport) {
  bench::NodeClusterOptions options;
  options.bin_dir = BinDir();
  options.t1_bytes = "64MiB";
  auto cluster = bench::NodeCluster::Start(options);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  auto worker = WorkerProcess::Start(
      {"--memory-nodes=" + absl::StrJoin(cluster->Addresses(), ",")});
  ASSERT_TRUE(worker.ok()) << worker.status();

  Table exported;
  AddExported(cluster->nodes().front().metrics_port, &exported);
  AddExported((*worker)->metrics_port(), &exported);

  EXPECT_THAT(exported, ::testing::ContainerEq(documented_));
  const auto values = ReadMetrics((*worker)->metrics_port());
  const auto info = values.find(absl::StrCat("farkv_worker_node_info{node=\"",
                                             cluster->Addresses().front(),
                                             "\",transport=\"tcp\"}"));
  ASSERT_NE(info, values.end());
  EXPECT_EQ(info->second, 1);
  ExpectCleanEnd(**worker, 1);
  ExpectCleanEnd(*cluster);
}

TEST_F(MetricsTableTest, EveryNameKeepsTheRules) {
  const std::regex name("farkv_(node|worker)(_[a-z0-9]+)+");
  for (const auto& [metric, kind] : documented_) {
    SCOPED_TRACE(metric + ": " + kind);
    const bool counter = absl::StartsWith(kind, "counter");
    EXPECT_TRUE(std::regex_match(metric, name));
    EXPECT_EQ(absl::EndsWith(metric, "_total"), counter);
    EXPECT_EQ(absl::StartsWith(kind, "histogram"),
              absl::EndsWith(metric, "_seconds"));
    EXPECT_EQ(units_[metric] == "bytes",
              absl::EndsWith(metric, counter ? "_bytes_total" : "_bytes"));
    if (absl::EndsWith(metric, "_failures_total") &&
        metric != "farkv_node_checksum_failures_total") {
      EXPECT_TRUE(absl::EndsWith(kind, "{reason}"));
    }
  }
}

}  // namespace
}  // namespace farkv::testing
