// Server side of one stream of events: a bounded queue in front of gRPC's one
// write at a time. A client that reads too slowly is cut off with
// RESOURCE_EXHAUSTED and connects again; the first message of a stream states
// everything, so it loses nothing.
//
// Thread-safe. Shared by the reactor, which gRPC keeps until the stream is
// done, and by whoever pushes. No lock is held over a gRPC call.
#ifndef FARKV_COMMON_RPC_STREAM_WRITER_H_
#define FARKV_COMMON_RPC_STREAM_WRITER_H_

#include <grpcpp/grpcpp.h>

#include <deque>
#include <functional>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace farkv {

template <typename Response>
class StreamWriter {
 public:
  static constexpr size_t kMaxQueued = 1024;

  // Give `reactor` to gRPC.
  struct Opened {
    std::shared_ptr<StreamWriter> writer;
    grpc::ServerWriteReactor<Response>* reactor;
  };
  // `on_done` runs once, when gRPC is done with the stream.
  static Opened Open(std::function<void()> on_done) {
    auto writer = std::shared_ptr<StreamWriter>(new StreamWriter());
    writer->reactor_ = new Reactor(writer, std::move(on_done));
    return {writer, writer->reactor_};
  }

  // Queues a message; without effect once the stream has ended.
  void Push(Response response) {
    {
      absl::MutexLock lock(&mutex_);
      if (closed_) return;
      if (queue_.size() >= kMaxQueued) {
        CloseLocked(grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED,
                                 "the stream is read too slowly"));
      } else {
        queue_.push_back(std::move(response));
      }
      if (std::exchange(busy_, true)) return;
    }
    Next();
  }

  // Ends the stream behind what is queued.
  void Finish(grpc::Status status) {
    {
      absl::MutexLock lock(&mutex_);
      CloseLocked(std::move(status));
      if (std::exchange(busy_, true)) return;
    }
    Next();
  }

 private:
  class Reactor : public grpc::ServerWriteReactor<Response> {
   public:
    Reactor(std::shared_ptr<StreamWriter> writer, std::function<void()> on_done)
        : writer_(std::move(writer)), on_done_(std::move(on_done)) {}
    void OnWriteDone(bool ok) override {
      if (!ok) writer_->Abort();
      writer_->Next();
    }
    void OnCancel() override {
      writer_->Abort();
      writer_->Finish(grpc::Status::CANCELLED);
    }
    void OnDone() override {
      on_done_();
      delete this;
    }

   private:
    const std::shared_ptr<StreamWriter> writer_;
    const std::function<void()> on_done_;
  };

  StreamWriter() = default;

  void CloseLocked(grpc::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (std::exchange(closed_, true)) return;
    status_ = std::move(status);
  }

  // The client has gone.
  void Abort() {
    absl::MutexLock lock(&mutex_);
    CloseLocked(grpc::Status::CANCELLED);
    queue_.clear();
  }

  // Starts the next write, or the end. Whoever set `busy_` calls it, so gRPC
  // is never called twice at a time and never after the end.
  void Next() {
    bool finish = false;
    {
      absl::MutexLock lock(&mutex_);
      if (finished_) return;
      if (!queue_.empty()) {
        current_ = std::move(queue_.front());
        queue_.pop_front();
      } else if (closed_) {
        finish = finished_ = true;
      } else {
        busy_ = false;
        return;
      }
    }
    if (finish) {
      reactor_->Finish(status_);
    } else {
      reactor_->StartWrite(&current_);
    }
  }

  Reactor* reactor_ = nullptr;  // owned by gRPC until OnDone
  Response current_;            // of the write that runs
  grpc::Status status_;         // set once, before the end
  absl::Mutex mutex_;
  std::deque<Response> queue_ ABSL_GUARDED_BY(mutex_);
  bool busy_ ABSL_GUARDED_BY(mutex_) = false;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace farkv

#endif  // FARKV_COMMON_RPC_STREAM_WRITER_H_
