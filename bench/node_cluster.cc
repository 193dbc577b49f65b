#include "bench/node_cluster.h"

#include <signal.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "bench/settled.h"
#include "common/base/status_macros.h"

namespace farkv::bench {
namespace {

constexpr absl::Duration kStartTimeout = absl::Seconds(60);
constexpr absl::Duration kStopTimeout = absl::Seconds(30);

absl::StatusOr<NodeCluster::Node> StartNode(const NodeClusterOptions& options,
                                            const std::string& directory,
                                            size_t index, uint16_t port) {
  const std::string id = absl::StrCat("node-", index);
  const std::string port_file = absl::StrCat(directory, "/", id, ".json");
  std::error_code ignored;  // an earlier life may have left one
  std::filesystem::remove(port_file, ignored);
  const std::string log_file = absl::StrCat(directory, "/", id, ".log");
  std::vector<std::string> arguments = {
      absl::StrCat(options.bin_dir, "/farkv-memory-node",
                   options.faults ? "-faults" : ""),
      absl::StrCat("--node-id=", id),
      absl::StrCat("--listen=", options.host, ":", port),
      "--admin-listen=127.0.0.1:0",
      "--metrics-listen=127.0.0.1:0",
      "--data-listen=127.0.0.1:0",
      absl::StrCat("--map-dir=", directory),
      absl::StrCat("--t1-bytes=", options.t1_bytes),
      absl::StrCat("--port-file=", port_file)};
  arguments.insert(arguments.end(), options.extra_flags.begin(),
                   options.extra_flags.end());
  FARKV_ASSIGN_OR_RETURN(ChildProcess process,
                         ChildProcess::Start(arguments, log_file));
  FARKV_ASSIGN_OR_RETURN(
      auto ports, AwaitPortFile(port_file, process, log_file, kStartTimeout));
  return NodeCluster::Node{std::move(process), id,
                           static_cast<uint16_t>(ports["listen"]),
                           static_cast<uint16_t>(ports["admin"]),
                           static_cast<uint16_t>(ports["metrics"])};
}

// Temporary folders of this process's clusters.
class Folders {
 public:
  static Folders& Get() {
    static Folders& folders = *new Folders;
    return folders;
  }
  absl::StatusOr<std::string> Make() {
    std::string path =
        (std::filesystem::temp_directory_path() / "farkv-nodes-XXXXXX")
            .string();
    absl::MutexLock lock(&mutex_);
    if (mkdtemp(path.data()) == nullptr) {
      return absl::UnavailableError(
          absl::StrCat("cannot make a directory like \"", path, "\""));
    }
    paths_.insert(path);
    return path;
  }
  void Remove(const std::string& path) {
    absl::MutexLock lock(&mutex_);
    if (paths_.erase(path) > 0) RemoveFromDisk(path);
  }
  void RemoveAll() {
    absl::MutexLock lock(&mutex_);
    for (const std::string& path : paths_) RemoveFromDisk(path);
    paths_.clear();
  }

 private:
  static void RemoveFromDisk(const std::string& path) {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }

  absl::Mutex mutex_;
  std::set<std::string> paths_ ABSL_GUARDED_BY(mutex_);
};

// OK unless the node says that sessions, and their pages, were left behind.
absl::Status CheckGivenBack(const std::string& id,
                            const std::string& log_file) {
  std::ifstream log(log_file);
  for (std::string line; std::getline(log, line);) {
    if (line.find("sessions are left behind") != std::string::npos) {
      return absl::InternalError(absl::StrCat(id, " ended with: ", line));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<NodeCluster> NodeCluster::Start(
    const NodeClusterOptions& options) {
  NodeCluster cluster(options);
  FARKV_ASSIGN_OR_RETURN(cluster.directory_, Folders::Get().Make());
  for (int i = 0; i < options.num_nodes; ++i) {
    FARKV_ASSIGN_OR_RETURN(Node node,
                           StartNode(options, cluster.directory_,
                                     static_cast<size_t>(i), /*port=*/0));
    cluster.nodes_.push_back(std::move(node));
  }
  return cluster;
}

absl::Status NodeCluster::Restart(size_t index) {
  FARKV_ASSIGN_OR_RETURN(nodes_[index], StartNode(options_, directory_, index,
                                                  nodes_[index].port));
  return absl::OkStatus();
}

NodeCluster::~NodeCluster() { End().IgnoreError(); }

absl::Status NodeCluster::AwaitSettled(absl::Duration timeout) {
  for (Node& node : nodes_) {
    if (node.process.Wait(absl::ZeroDuration()).ok()) continue;  // has ended
    const absl::Status settled =
        bench::AwaitSettled([&node] { return DebtsOfNode(node.metrics_port); },
                            &node.process, timeout);
    if (!settled.ok()) {
      return absl::InternalError(
          absl::StrCat(node.id, ": ", settled.message()));
    }
  }
  return absl::OkStatus();
}

absl::Status NodeCluster::Stop(absl::Duration timeout) {
  absl::Status status = AwaitSettled(timeout);
  status.Update(End());
  return status;
}

absl::Status NodeCluster::End() {
  for (Node& node : nodes_) node.process.Signal(SIGTERM);
  absl::Status status;
  for (Node& node : nodes_) {
    const absl::StatusOr<int> code = node.process.Wait(kStopTimeout);
    if (!code.ok()) {
      status.Update(code.status());
    } else if (*code != 0) {
      status.Update(absl::InternalError(
          absl::StrCat(node.id, " ended with code ", *code)));
    } else {
      status.Update(CheckGivenBack(
          node.id, absl::StrCat(directory_, "/", node.id, ".log")));
    }
  }
  nodes_.clear();
  Folders::Get().Remove(directory_);
  return status;
}

void NodeCluster::KillAll() {
  ChildProcess::KillAll();
  Folders::Get().RemoveAll();
}

std::vector<std::string> NodeCluster::Addresses() const {
  std::vector<std::string> addresses;
  for (const Node& node : nodes_) {
    addresses.push_back(absl::StrCat(options_.host, ":", node.port));
  }
  return addresses;
}

std::vector<std::string> NodeCluster::AdminAddresses() const {
  std::vector<std::string> addresses;
  for (const Node& node : nodes_) {
    addresses.push_back(absl::StrCat("127.0.0.1:", node.admin_port));
  }
  return addresses;
}

}  // namespace farkv::bench
