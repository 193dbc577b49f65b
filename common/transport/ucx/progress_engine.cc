#include "common/transport/ucx/progress_engine.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "common/base/status_macros.h"

namespace farkv {
namespace {

// Rounds of UCX progress before the other duties get their turn.
constexpr int kProgressBudget = 64;
// How long closing endpoints may take at the end before UCX is destroyed
// under them.
constexpr absl::Duration kCloseLimit = absl::Seconds(5);
// How often closing endpoints are looked after by a loop that is idle.
constexpr absl::Duration kClosePoll = absl::Milliseconds(1);

}  // namespace

// One screen: every duty of the engine, in order.
void ProgressEngine::Loop() {
  absl::Time last_active = options_.clock->Now();
  absl::Time give_up = absl::InfiniteFuture();
  for (;;) {
    bool active = RunCalls();
    active |= endpoints_->AcceptPending();
    for (PeerId peer : table_->TakeClosing()) endpoints_->Close(peer);
    for (const auto& message : table_->TakeQueued()) {
      sender_->Post(message);
      active = true;
    }
    active |= ProgressUpToBudget();
    active |= sender_->DeliverFinished();
    active |= receiver_->DeliverArrived();
    active |= endpoints_->PollClosing();
    table_->Expire();

    const absl::Time now = options_.clock->Now();
    if (active) last_active = now;
    if (stop_.load(std::memory_order_acquire)) {
      if (give_up == absl::InfiniteFuture()) give_up = now + kCloseLimit;
      const bool drained = endpoints_->empty() && sender_->in_flight() == 0 &&
                           receiver_->in_flight() == 0 && !table_->HasWork();
      if (drained || now >= give_up) return;
    } else if (now - last_active >= options_.spin) {
      SleepUntilNextDeadline();
      last_active = options_.clock->Now() -
                    options_.spin;  // spin only after something came
    }
  }
}

bool ProgressEngine::ProgressUpToBudget() {
  int rounds = 0;
  while (rounds < kProgressBudget && worker_->Progress()) ++rounds;
  return rounds > 0;
}

// A submitter that comes after the check finds asleep_ set and signals; UCX
// remembers the signal, so arming or polling returns at once.
void ProgressEngine::SleepUntilNextDeadline() {
  asleep_.store(true, std::memory_order_seq_cst);
  if (!table_->HasWork() && !HasCalls() && !stop_.load()) {
    const absl::Duration limit =
        endpoints_->closing() ? kClosePoll : absl::InfiniteDuration();
    worker_->Sleep(
        std::min(limit, table_->NextDeadline() - options_.clock->Now()));
  }
  asleep_.store(false, std::memory_order_seq_cst);
}

void ProgressEngine::Wake() {
  if (!asleep_.exchange(false, std::memory_order_seq_cst)) return;
  absl::MutexLock lock(&signal_mutex_);
  if (signalled_ != nullptr) signalled_->Signal();
}

absl::StatusOr<std::unique_ptr<ProgressEngine>> ProgressEngine::Start(
    std::shared_ptr<OperationTable> table, const Options& options,
    std::shared_ptr<ReceiveBuffers> buffers, const UcxOptions& ucx,
    bool loopback_only) {
  std::unique_ptr<ProgressEngine> engine(
      new ProgressEngine(std::move(table), options, std::move(buffers)));
  engine->thread_ = std::thread([raw = engine.get(), ucx, loopback_only] {
    raw->ThreadMain(ucx, loopback_only);
  });
  absl::Status status;
  {
    absl::MutexLock lock(&engine->mutex_);
    engine->mutex_.Await(absl::Condition(&engine->started_));
    status = engine->start_status_;
  }
  if (!status.ok()) return status;
  return engine;
}

ProgressEngine::ProgressEngine(std::shared_ptr<OperationTable> table,
                               const Options& options,
                               std::shared_ptr<ReceiveBuffers> buffers)
    : table_(std::move(table)),
      options_(options),
      buffers_(std::move(buffers)) {}

ProgressEngine::~ProgressEngine() { Stop(); }

void ProgressEngine::Stop() {
  stop_.store(true, std::memory_order_seq_cst);
  Wake();
  if (thread_.joinable()) thread_.join();
}

void ProgressEngine::ThreadMain(const UcxOptions& ucx, bool loopback_only) {
  engine_thread.Enter();
  const absl::Status status = Create(ucx, loopback_only);
  {
    absl::MutexLock lock(&mutex_);
    start_status_ = status;
    started_ = true;
  }
  if (status.ok()) Loop();
  Destroy();
  engine_thread.Leave();
}

absl::Status ProgressEngine::Create(const UcxOptions& ucx, bool loopback_only) {
  FARKV_ASSIGN_OR_RETURN(worker_, UcxWorker::Create(ucx, loopback_only));
  endpoints_ = std::make_unique<Endpoints>(worker_->get(), table_.get(),
                                           *options_.clock);
  sender_ = std::make_unique<MessageSender>(table_.get(), endpoints_.get(),
                                            options_.max_operations);
  receiver_ = std::make_unique<MessageReceiver>(worker_->get(), table_.get(),
                                                endpoints_.get(), buffers_);
  FARKV_RETURN_IF_ERROR(receiver_->Start());
  absl::MutexLock lock(&signal_mutex_);
  signalled_ = worker_.get();
  return absl::OkStatus();
}

// Endpoints are closed by now or given up (Loop). Listeners go before the
// worker, the worker before the objects that its callbacks are given, lent
// bytes last.
void ProgressEngine::Destroy() {
  {
    absl::MutexLock lock(&mutex_);
    stopped_ = true;
  }
  RunCalls();  // they still find their parts, if there are any
  {
    absl::MutexLock lock(&signal_mutex_);
    signalled_ = nullptr;
  }
  if (endpoints_ != nullptr) endpoints_->DestroyListeners();
  worker_.reset();
  receiver_.reset();
  if (sender_ != nullptr) sender_->AbandonAll();
  sender_.reset();
  endpoints_.reset();
}

absl::StatusOr<uint16_t> ProgressEngine::Listen(const SocketAddress& address) {
  absl::StatusOr<uint16_t> port;
  FARKV_RETURN_IF_ERROR(Run([&] {
    engine_thread.AssertHeld();
    port = endpoints_->Listen(address);
  }));
  return port;
}

absl::StatusOr<PeerId> ProgressEngine::Connect(const SocketAddress& address,
                                               const std::string& name) {
  absl::StatusOr<PeerId> peer;
  FARKV_RETURN_IF_ERROR(Run([&] {
    engine_thread.AssertHeld();
    peer = endpoints_->Connect(address, name);
  }));
  return peer;
}

absl::Status ProgressEngine::Run(std::function<void()> call) {
  absl::Notification done;
  {
    absl::MutexLock lock(&mutex_);
    if (stopped_) return absl::UnavailableError("transport is closed");
    calls_.push_back([&] {
      call();
      done.Notify();
    });
  }
  Wake();
  done.WaitForNotification();
  return absl::OkStatus();
}

bool ProgressEngine::RunCalls() {
  std::vector<std::function<void()>> calls;
  {
    absl::MutexLock lock(&mutex_);
    calls.swap(calls_);
  }
  for (const auto& call : calls) call();
  return !calls.empty();
}

bool ProgressEngine::HasCalls() {
  absl::MutexLock lock(&mutex_);
  return !calls_.empty();
}

}  // namespace farkv
