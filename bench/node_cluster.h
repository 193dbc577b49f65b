// Memory nodes as real processes, for benches and tests that need some.
// Stopped by SIGTERM when the cluster goes away. Thread-compatible.
#ifndef FARKV_BENCH_NODE_CLUSTER_H_
#define FARKV_BENCH_NODE_CLUSTER_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/process/child_process.h"

namespace farkv::bench {

struct NodeClusterOptions {
  std::string bin_dir;  // where farkv-memory-node lies
  bool faults = false;  // use farkv-memory-node-faults
  int num_nodes = 1;
  std::string t1_bytes = "1GiB";
  std::vector<std::string> extra_flags;
  // Where the control planes listen; any address of 127.0.0.0/8.
  std::string host = "127.0.0.1";
};

class NodeCluster {
 public:
  static absl::StatusOr<NodeCluster> Start(const NodeClusterOptions& options);
  NodeCluster(NodeCluster&&) = default;
  NodeCluster& operator=(NodeCluster&&) = default;
  ~NodeCluster();

  // Control-plane addresses, for --memory-nodes.
  std::vector<std::string> Addresses() const;
  std::vector<std::string> AdminAddresses() const;
  // The nodes' map sockets lie here.
  const std::string& map_dir() const { return directory_; }
  // Until every node that still runs has got back all that workers had of it;
  // those must have ended, or be quiet. INTERNAL naming the first node that has
  // not within `timeout`, and what is left.
  absl::Status AwaitSettled(absl::Duration timeout = absl::Seconds(30));
  // The same, and then ends all nodes, whatever came out of it. The error names
  // the first that did not end cleanly, or with sessions that nobody had
  // closed.
  absl::Status Stop(absl::Duration timeout = absl::Seconds(30));
  // Kills the nodes of all clusters of this process and removes their folders,
  // for a process that a signal ends. Any thread.
  static void KillAll();
  // Starts a node that has ended again, without pages, at the same control
  // address. Its port is free for certain only where nobody else uses `host`.
  absl::Status Restart(size_t index);

  struct Node {
    ChildProcess process;
    std::string id;
    uint16_t port = 0, admin_port = 0, metrics_port = 0;
  };
  std::vector<Node>& nodes() { return nodes_; }

 private:
  explicit NodeCluster(NodeClusterOptions options)
      : options_(std::move(options)) {}
  absl::Status End();

  NodeClusterOptions options_;
  std::string directory_;  // temporary, removed at the end
  std::vector<Node> nodes_;
};

}  // namespace farkv::bench

#endif  // FARKV_BENCH_NODE_CLUSTER_H_
