#include "common/process/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/base/status_macros.h"

extern char** environ;

namespace farkv {
namespace {

constexpr size_t kLogTailBytes = 2000;

std::string LogTail(const std::string& log_file) {
  std::ifstream file(log_file);
  std::stringstream text;
  text << file.rdbuf();
  std::string all = text.str();
  if (all.size() > kLogTailBytes) all.erase(0, all.size() - kLogTailBytes);
  return all;
}

int PollMilliseconds(absl::Time end) {
  const absl::Duration left = end - absl::Now();
  if (left <= absl::ZeroDuration()) return 0;
  return static_cast<int>(absl::ToInt64Milliseconds(
      std::min(left, absl::Hours(1)) + absl::Milliseconds(1)));
}

// A new program must not inherit what ShutdownSignals blocked here.
void ResetSignals(posix_spawnattr_t* attributes) {
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(attributes, &none);
  posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK);
}

// The programs that this process has not reaped yet: until then a pid means
// nobody else.
class Programs {
 public:
  static Programs& Get() {
    static Programs& programs = *new Programs;
    return programs;
  }
  // `spawn` returns an error or sets `pid`. ECANCELED after KillAll.
  int Start(absl::FunctionRef<int()> spawn, const pid_t& pid) {
    absl::MutexLock lock(&mutex_);
    if (closed_) return ECANCELED;
    const int error = spawn();
    if (error == 0) running_.insert(pid);
    return error;
  }
  // The status of a program that has ended, or has been killed.
  int Reap(pid_t pid) {
    absl::MutexLock lock(&mutex_);
    int status = 0;
    waitpid(pid, &status, 0);
    running_.erase(pid);
    return status;
  }
  void KillAll() {
    absl::MutexLock lock(&mutex_);
    closed_ = true;
    for (const pid_t pid : running_) kill(pid, SIGKILL);
    for (const pid_t pid : running_) {
      siginfo_t ended;
      waitid(P_PID, static_cast<id_t>(pid), &ended, WEXITED | WNOWAIT);
    }
  }

 private:
  absl::Mutex mutex_;
  std::set<pid_t> running_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

absl::StatusOr<ChildProcess> ChildProcess::Start(
    const std::vector<std::string>& arguments, const std::string& log_file) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) {
    argv.push_back(const_cast<char*>(argument.c_str()));
  }
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log_file.c_str(),
                                   O_WRONLY | O_CREAT | O_APPEND, 0644);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  ResetSignals(&attributes);
  ChildProcess child;
  child.program_ = arguments.front();
  const auto spawn = [&] {
    return posix_spawn(&child.pid_, argv[0], &actions, &attributes, argv.data(),
                       environ);
  };
  const int error = Programs::Get().Start(spawn, child.pid_);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    child.pid_ = -1;
    return absl::UnavailableError(
        absl::StrCat("cannot start \"", argv[0], "\": ", std::strerror(error)));
  }
  child.pidfd_ = static_cast<int>(syscall(SYS_pidfd_open, child.pid_, 0));
  return child;
}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  std::swap(program_, other.program_);
  std::swap(pid_, other.pid_);
  std::swap(pidfd_, other.pidfd_);
  std::swap(exit_code_, other.exit_code_);
  return *this;
}

ChildProcess::~ChildProcess() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    Programs::Get().Reap(pid_);
  }
  if (pidfd_ >= 0) close(pidfd_);
}

void ChildProcess::KillAll() { Programs::Get().KillAll(); }

void ChildProcess::Signal(int signal) const {
  if (pid_ > 0) kill(pid_, signal);
}

absl::StatusOr<int> ChildProcess::Wait(absl::Duration timeout) {
  if (pid_ < 0) return exit_code_;
  const absl::Time end = absl::Now() + timeout;
  pollfd wait{pidfd_, POLLIN, 0};
  while (poll(&wait, 1, PollMilliseconds(end)) <= 0) {
    if (absl::Now() < end) continue;
    return absl::DeadlineExceededError(
        absl::StrCat("\"", program_, "\" (pid ", pid_, ") still runs after ",
                     absl::FormatDuration(timeout)));
  }
  const int status = Programs::Get().Reap(pid_);
  pid_ = -1;
  exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return exit_code_;
}

absl::StatusOr<std::map<std::string, uint64_t>> AwaitPortFile(
    const std::string& path, ChildProcess& child, const std::string& log_file,
    absl::Duration timeout) {
  const int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  const absl::Cleanup close_watch = [watch] { close(watch); };
  const std::string folder = std::filesystem::path(path).parent_path();
  inotify_add_watch(watch, folder.c_str(), IN_MOVED_TO);
  const absl::Time end = absl::Now() + timeout;
  while (!std::filesystem::exists(path)) {
    pollfd waits[] = {{watch, POLLIN, 0}, {child.pidfd(), POLLIN, 0}};
    poll(waits, 2, PollMilliseconds(end));
    if (waits[1].revents != 0) {
      return absl::UnavailableError(absl::StrCat(
          "the program ended before it was ready:\n", LogTail(log_file)));
    }
    if (absl::Now() >= end) {
      return absl::DeadlineExceededError(absl::StrCat(
          "no port file \"", path, "\" after ", absl::FormatDuration(timeout),
          ":\n", LogTail(log_file)));
    }
    char events[4096];
    while (read(watch, events, sizeof(events)) > 0) {
    }
  }
  std::ifstream file(path);
  const auto json = nlohmann::json::parse(file, nullptr, false);
  std::map<std::string, uint64_t> numbers;
  if (!json.is_object()) {
    return absl::InternalError(absl::StrCat("\"", path, "\" is not JSON"));
  }
  for (const auto& [name, value] : json.items()) {
    if (value.is_number_unsigned()) numbers[name] = value.get<uint64_t>();
  }
  return numbers;
}

}  // namespace farkv
