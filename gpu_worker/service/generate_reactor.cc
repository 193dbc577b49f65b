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
  GenerationEvent event = stream_->Take();
  if (event.end) end_ = std::move(event.end);
  if (!event.text.empty() || !event.tokens.empty()) {
    WriteDelta(event);
  } else if (end_ && !finishing_) {
    WriteEnd(*end_);
  } else {
    return false;
  }
  return true;
}

void GenerateReactor::WriteDelta(const GenerationEvent& event) {
  response_.Clear();
  response_.set_request_id(stream_->request_id());
  *response_.mutable_delta() = ToDelta(event);
  wrote_delta_ = true;
  StartWrite(&response_);
}

void GenerateReactor::WriteEnd(const GenerationEnd& end) {
  finishing_ = true;
  const bool failed = end.reason == FinishReason::kError;
  if (failed && !wrote_delta_) {
    // Nothing was sent, so the refusal can still be the call's status.
    Finish(ToGrpcStatus(end.error));
    return;
  }
  response_.Clear();
  response_.set_request_id(stream_->request_id());
  if (failed) {
    auto* error = response_.mutable_error();
    error->set_code(static_cast<int32_t>(end.error.code()));
    error->set_message(std::string(end.error.message()));
    error->set_reason(ErrorReasonName(ReasonOf(end.error)));
  } else {
    *response_.mutable_finished() = ToFinished(end);
  }
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
