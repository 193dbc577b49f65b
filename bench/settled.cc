#include "bench/settled.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <sstream>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"

namespace farkv::bench {
namespace {

constexpr int kAskAgainMilliseconds = 20;
// A process that is stopped takes connections and never answers.
constexpr timeval kHttpTimeout{.tv_sec = 10, .tv_usec = 0};

// The figures of one scrape; what must be there and is not is a debt, too.
class Scrape : public Debts {
 public:
  Scrape(uint16_t port, std::string prefix)
      : values_(ReadMetrics(port)), prefix_(std::move(prefix)) {}

  // Of all series of a metric. `required`: there must be one.
  double Sum(const std::string& name, bool required = true) {
    double sum = 0;
    bool found = false;
    for (const auto& [series, value] : values_) {
      const std::string wanted = prefix_ + name;
      if (series != wanted && series.rfind(wanted + "{", 0) != 0) continue;
      sum += value;
      found = true;
    }
    if (!found && required) Add("no " + prefix_ + name);
    return sum;
  }
  double Of(const std::string& series) {
    const auto found = values_.find(prefix_ + series);
    if (found != values_.end()) return found->second;
    Add("no " + prefix_ + series);
    return 0;
  }

 private:
  const std::map<std::string, double> values_;
  const std::string prefix_;
};

}  // namespace

void Debts::MustBeZero(const std::string& what, double value) {
  if (value != 0) Add(absl::StrCat(what, ": ", value));
}

void Debts::MustBeEqual(const std::string& what, double a, double b) {
  if (a != b) Add(absl::StrCat(what, ": ", a, " and ", b));
}

std::string Debts::Text() const { return absl::StrJoin(debts_, "; "); }

std::string HttpGet(uint16_t port, const std::string& path) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const absl::Cleanup close_fd = [fd] { close(fd); };
  for (const int direction : {SO_RCVTIMEO, SO_SNDTIMEO}) {
    setsockopt(fd, SOL_SOCKET, direction, &kHttpTimeout, sizeof(kHttpTimeout));
  }
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) !=
      0) {
    return "";
  }
  const std::string request =
      absl::StrCat("GET ", path, " HTTP/1.0\r\nHost: localhost\r\n\r\n");
  if (write(fd, request.data(), request.size()) < 0) return "";
  std::string response;
  char buffer[4096];
  for (ssize_t n = 0; (n = read(fd, buffer, sizeof(buffer))) > 0;) {
    response.append(buffer, static_cast<size_t>(n));
  }
  return response;
}

std::map<std::string, double> ReadMetrics(uint16_t port) {
  std::map<std::string, double> values;
  std::istringstream lines(HttpGet(port, "/metrics"));
  for (std::string line; std::getline(lines, line);) {
    const size_t space = line.rfind(' ');
    if (line.rfind("farkv_", 0) != 0 || space == std::string::npos) continue;
    values[line.substr(0, space)] = std::strtod(&line[space], nullptr);
  }
  return values;
}

std::string DebtsOfNode(uint16_t port) {
  Scrape node(port, "farkv_node_");
  for (const char* state : {"reserved", "stored", "quarantined"}) {
    node.MustBeZero(absl::StrCat("pages ", state),
                    node.Of(absl::StrCat("pages{state=\"", state, "\"}")));
  }
  for (const char* state : {"stored", "quarantined"}) {
    node.MustBeZero(absl::StrCat("T2 pages ", state),
                    node.Of(absl::StrCat("t2_pages{state=\"", state, "\"}")));
  }
  node.MustBeZero("bytes used", node.Sum("pool_used_bytes"));
  node.MustBeZero("T2 bytes used", node.Sum("t2_pool_used_bytes"));
  node.MustBeZero("pins", node.Sum("pool_pins"));
  node.MustBeZero("sessions", node.Sum("sessions"));
  node.MustBeZero("open operations", node.Sum("transport_open_operations"));
  node.MustBeZero("bytes of receive buffers",
                  node.Sum("transport_receive_buffer_bytes"));
  node.MustBeEqual("operations submitted and completed",
                   node.Sum("transport_operations_submitted_total"),
                   node.Sum("transport_operations_completed_total"));
  node.MustBeEqual("requests that arrived, and answered or given up",
                   node.Sum("transport_requests_total"),
                   node.Sum("answered_requests_total") +
                       node.Sum("unanswered_requests_total") +
                       node.Sum("dropped_messages_total"));
  return node.Text();
}

std::string DebtsOfWorker(uint16_t port) {
  Scrape worker(port, "farkv_worker_");
  worker.MustBeZero("sequences", worker.Sum("running_sequences"));
  worker.MustBeZero("waiting requests", worker.Sum("waiting_requests"));
  worker.MustBeZero("T0 bytes", worker.Sum("t0_used_bytes"));
  worker.MustBeZero("staging bytes", worker.Sum("staging_bytes"));
  // Without nodes there are no such series.
  worker.MustBeZero("open operations",
                    worker.Sum("transport_open_operations", false));
  worker.MustBeZero("bytes of receive buffers",
                    worker.Sum("transport_receive_buffer_bytes", false));
  worker.MustBeEqual("operations submitted and completed",
                     worker.Sum("transport_operations_submitted_total", false),
                     worker.Sum("transport_operations_completed_total", false));
  worker.MustBeEqual("requests and callbacks",
                     worker.Sum("node_requests_total", false),
                     worker.Sum("node_answers_total", false));
  return worker.Text();
}

absl::Status AwaitSettled(absl::FunctionRef<std::string()> debts,
                          ChildProcess* process, absl::Duration timeout) {
  const absl::Time end = absl::Now() + timeout;
  std::string left = debts();
  while (!left.empty() && absl::Now() < end) {
    // The process's end is the one thing that is worth not asking again for.
    pollfd ended{process == nullptr ? -1 : process->pidfd(), POLLIN, 0};
    if (poll(&ended, 1, kAskAgainMilliseconds) > 0) break;
    left = debts();
  }
  if (left.empty()) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(
      "not given back after ", absl::FormatDuration(timeout), ": ", left));
}

}  // namespace farkv::bench
