#include "gpu_worker/service/generate_reactor.h"

#include <utility>

#include "common/rpc/error_reason.h"
#include "common/rpc/status_codec.h"
#include "gpu_worker/service/generation_codec.h"

namespace farkv {

GenerateReactor* GenerateReactor::Follow(
    std::shared_ptr<GenerationStream> stream) {
  std::shared_ptr<GenerateReactor> reactor(
      new GenerateReactor(std::move(stream)));
  reactor->self_ = reactor;
  reactor->stream_->SetNotify([reactor] { reactor->Pump(); });
  return reactor.get();
}

GenerateReactor* GenerateReactor::Refuse(const absl::Status& status) {
  std::shared_ptr<GenerateReactor> reactor(new GenerateReactor(nullptr));
  reactor->self_ = reactor;
  reactor->Finish(ToGrpcStatus(status));
  return reactor.get();
}

void GenerateReactor::Pump() {
  {
    absl::MutexLock lock(&mutex_);
    again_ = busy_;
    if (busy_) return;
    busy_ = true;
  }
  while (!StartNext()) {
    absl::MutexLock lock(&mutex_);
    // What arrived while this thread looked would otherwise wait for ever.
    if (!again_) {
      busy_ = false;
      return;
    }
    again_ = false;
  }
}

bool GenerateReactor::StartNext() {
  if (finishing_) return false;
  if (end_) {
    WriteEnd(output_, *std::exchange(end_, std::nullopt));
    return true;
  }
  GenerationEvent event = stream_->Take();
  if (event.empty()) return false;
  output_ = event.output;
  end_ = std::exchange(event.end, std::nullopt);
  if (event.empty()) return StartNext();
  WriteDelta(event);
  return true;
}

void GenerateReactor::WriteDelta(const GenerationEvent& event) {
  response_.Clear();
  response_.set_request_id(stream_->request_id());
  *response_.mutable_delta() = ToDelta(event);
  wrote_ = true;
  StartWrite(&response_);
}

void GenerateReactor::WriteEnd(int32_t output, const GenerationEnd& end) {
  if (end.reason == FinishReason::kError) return WriteError(end.error);
  response_.Clear();
  response_.set_request_id(stream_->request_id());
  *response_.mutable_finished() = ToFinished(end);
  response_.mutable_finished()->set_output_index(output);
  wrote_ = true;
  finishing_ = ++ends_written_ == stream_->num_outputs();
  if (finishing_) {
    StartWriteAndFinish(&response_, grpc::WriteOptions(), grpc::Status::OK);
  } else {
    StartWrite(&response_);
  }
}

void GenerateReactor::WriteError(const absl::Status& error) {
  finishing_ = true;
  stream_->Cancel();
  if (!wrote_) {
    // Nothing was sent, so the refusal can still be the call's status.
    Finish(ToGrpcStatus(error));
    return;
  }
  response_.Clear();
  response_.set_request_id(stream_->request_id());
  auto* message = response_.mutable_error();
  message->set_code(static_cast<int32_t>(error.code()));
  message->set_message(std::string(error.message()));
  message->set_reason(ErrorReasonName(ReasonOf(error)));
  StartWriteAndFinish(&response_, grpc::WriteOptions(), grpc::Status::OK);
}

void GenerateReactor::OnWriteDone(bool ok) {
  if (finishing_) return;
  if (!ok) stream_->Cancel();
  {
    absl::MutexLock lock(&mutex_);
    busy_ = false;
  }
  Pump();
}

void GenerateReactor::OnCancel() {
  if (stream_ != nullptr) stream_->Cancel();
}

void GenerateReactor::OnDone() {
  if (stream_ != nullptr) stream_->SetNotify(nullptr);
  const std::shared_ptr<GenerateReactor> last = std::move(self_);
}

}  // namespace farkv
