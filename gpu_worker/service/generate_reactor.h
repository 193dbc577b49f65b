// The server side of one Generate stream: writes what the engine has appended,
// one message at a time. Deletes itself when gRPC is done with it.
#ifndef FARKV_GPU_WORKER_SERVICE_GENERATE_REACTOR_H_
#define FARKV_GPU_WORKER_SERVICE_GENERATE_REACTOR_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <optional>

#include "absl/synchronization/mutex.h"
#include "farkv/worker/v1/generation.pb.h"
#include "gpu_worker/engine/generation_stream.h"

namespace farkv {

class GenerateReactor final
    : public grpc::ServerWriteReactor<farkv::worker::v1::GenerateResponse> {
 public:
  // The reactor owns itself from here on and follows `stream`.
  static GenerateReactor* Follow(std::shared_ptr<GenerationStream> stream);
  // Only reports a refusal.
  static GenerateReactor* Refuse(const absl::Status& status);

  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  explicit GenerateReactor(std::shared_ptr<GenerationStream> stream)
      : stream_(std::move(stream)) {}
  // Starts the next write or the end, unless one is under way.
  void Pump();
  // False when there is nothing to write.
  bool StartNext();
  void WriteDelta(const GenerationEvent& event);
  void WriteEnd(int32_t output, const GenerationEnd& end);
  // Terminal: outputs that have not ended are cancelled.
  void WriteError(const absl::Status& error);

  std::shared_ptr<GenerateReactor> self_;  // until OnDone
  std::shared_ptr<GenerationStream> stream_;
  absl::Mutex mutex_;
  bool busy_ ABSL_GUARDED_BY(mutex_) = false;  // a write or a look is under way
  bool again_ ABSL_GUARDED_BY(mutex_) = false;  // look once more after it
  // Only the thread that set busy_ touches these.
  std::optional<GenerationEnd> end_;  // of output_, yet to be written
  int32_t output_ = 0;
  int32_t ends_written_ = 0;
  bool wrote_ = false;
  bool finishing_ = false;
  farkv::worker::v1::GenerateResponse response_;
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_SERVICE_GENERATE_REACTOR_H_
