#include "gpu_worker/engine/request_queue.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/ids.h"

namespace farkv {
namespace {

constexpr size_t kMaxQuestions = 64;
constexpr size_t kMaxWatchers = 64;

}  // namespace

absl::StatusOr<std::shared_ptr<GenerationStream>> RequestQueue::Push(
    GenerationRequest request, absl::Time now) {
  absl::MutexLock lock(&mutex_);
  if (draining_ || stopped_) {
    return absl::UnavailableError("the worker is draining");
  }
  if (static_cast<int>(waiting_.size()) >= max_waiting_) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the queue is full: ", waiting_.size(),
                     " requests wait, --max-queue is ", max_waiting_));
  }
  if (request.request_id.empty()) {
    request.request_id = absl::StrCat("r-", SessionId::Random().ToHex());
  }
  auto stream = std::make_shared<GenerationStream>(request.request_id,
                                                   request.num_outputs);
  if (!names_.emplace(request.request_id, stream).second) {
    return absl::AlreadyExistsError(absl::StrCat(
        "request_id \"", request.request_id, "\" is running already"));
  }
  waiting_.push_back({std::move(request), stream, now});
  return stream;
}

bool RequestQueue::Abort(const std::string& request_id) {
  std::shared_ptr<GenerationStream> stream;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = names_.find(request_id);
    if (found == names_.end()) return false;
    stream = found->second;
  }
  stream->Cancel();
  return true;
}

void RequestQueue::SetDraining(bool draining) {
  {
    absl::MutexLock lock(&mutex_);
    draining_ = draining;
  }
  TellWatchers();
}

bool RequestQueue::draining() const {
  absl::MutexLock lock(&mutex_);
  return draining_;
}

void RequestQueue::Stop() {
  absl::MutexLock lock(&mutex_);
  stopped_ = true;
}

absl::Status RequestQueue::Ask(std::function<void()> question) {
  absl::MutexLock lock(&mutex_);
  if (stopped_) return absl::UnavailableError("the engine has stopped");
  if (questions_.size() >= kMaxQuestions) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the engine has ", questions_.size(), " questions to answer already"));
  }
  questions_.push_back(std::move(question));
  return absl::OkStatus();
}

void RequestQueue::AnswerQuestions() {
  std::deque<std::function<void()>> questions;
  {
    absl::MutexLock lock(&mutex_);
    questions.swap(questions_);
  }
  for (const auto& question : questions) question();
}

RequestQueue::Left RequestQueue::LeftNow() const {
  return {static_cast<int>(names_.size()), draining_};
}

absl::StatusOr<uint64_t> RequestQueue::Watch(Watcher watcher) {
  const auto shared = std::make_shared<const Watcher>(std::move(watcher));
  uint64_t id = 0;
  Left left;
  {
    absl::MutexLock lock(&mutex_);
    if (watchers_.size() >= kMaxWatchers) {
      return absl::ResourceExhaustedError(
          absl::StrCat(watchers_.size(), " callers watch the queue already"));
    }
    id = ++last_watcher_;
    watchers_[id] = shared;
    left = LeftNow();
  }
  (*shared)(left);
  return id;
}

void RequestQueue::Unwatch(uint64_t id) {
  absl::MutexLock lock(&mutex_);
  watchers_.erase(id);
}

void RequestQueue::TellWatchers() {
  std::vector<std::shared_ptr<const Watcher>> watchers;
  Left left;
  {
    absl::MutexLock lock(&mutex_);
    if (watchers_.empty()) return;
    for (const auto& [id, watcher] : watchers_) watchers.push_back(watcher);
    left = LeftNow();
  }
  for (const auto& watcher : watchers) (*watcher)(left);
}

bool RequestQueue::WaitIdle(absl::Duration timeout) {
  absl::MutexLock lock(&mutex_);
  auto idle = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return names_.empty();
  };
  return mutex_.AwaitWithTimeout(absl::Condition(&idle), timeout);
}

int RequestQueue::num_waiting() const {
  absl::MutexLock lock(&mutex_);
  return static_cast<int>(waiting_.size());
}

bool RequestQueue::stopped() const {
  absl::MutexLock lock(&mutex_);
  return stopped_;
}

bool RequestQueue::WaitForWork(bool has_running) {
  absl::MutexLock lock(&mutex_);
  auto work = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopped_ || has_running || !waiting_.empty() || !questions_.empty();
  };
  mutex_.Await(absl::Condition(&work));
  return !stopped_;
}

std::optional<WaitingRequest> RequestQueue::Pop() {
  absl::MutexLock lock(&mutex_);
  if (waiting_.empty()) return std::nullopt;
  WaitingRequest first = std::move(waiting_.front());
  waiting_.pop_front();
  return first;
}

void RequestQueue::PutBack(WaitingRequest waiting) {
  absl::MutexLock lock(&mutex_);
  waiting_.push_front(std::move(waiting));
}

std::vector<WaitingRequest> RequestQueue::PopExpired(absl::Time now) {
  std::vector<WaitingRequest> expired;
  absl::MutexLock lock(&mutex_);
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    if (it->stream->cancelled() || it->request.deadline <= now) {
      expired.push_back(std::move(*it));
      it = waiting_.erase(it);
    } else {
      ++it;
    }
  }
  return expired;
}

void RequestQueue::Forget(const std::string& request_id) {
  {
    absl::MutexLock lock(&mutex_);
    names_.erase(request_id);
  }
  TellWatchers();
}

std::vector<WaitingRequest> RequestQueue::StopAndPopAll() {
  std::vector<WaitingRequest> all;
  {
    absl::MutexLock lock(&mutex_);
    stopped_ = true;
    all.assign(std::make_move_iterator(waiting_.begin()),
               std::make_move_iterator(waiting_.end()));
    waiting_.clear();
    for (const WaitingRequest& waiting : all) {
      names_.erase(waiting.request.request_id);
    }
  }
  TellWatchers();
  return all;
}

void RequestQueue::ForEachWaiting(
    const std::function<void(const WaitingRequest&)>& visit) const {
  absl::MutexLock lock(&mutex_);
  for (const WaitingRequest& waiting : waiting_) visit(waiting);
}

}  // namespace farkv
