#include "common/rpc/grpc_log.h"

#include <grpc/support/log.h>

#include "common/telemetry/log.h"

namespace farkv {
namespace {

thread_local std::string* captured = nullptr;

bool Capture(const gpr_log_func_args& line) {
  if (captured == nullptr) return false;
  captured->append(line.message).append("\n");
  return true;
}

void ToOurLog(gpr_log_func_args* line) {
  if (Capture(*line)) return;
  if (line->severity == GPR_LOG_SEVERITY_ERROR) {
    spdlog::warn("gRPC: {}", line->message);
  } else {
    spdlog::debug("gRPC: {}", line->message);
  }
}

void Nowhere(gpr_log_func_args* line) { Capture(*line); }

}  // namespace

void RouteGrpcLog() { gpr_set_log_function(ToOurLog); }
void DropGrpcLog() { gpr_set_log_function(Nowhere); }

GrpcLogCapture::GrpcLogCapture() { captured = &text_; }
GrpcLogCapture::~GrpcLogCapture() { captured = nullptr; }

}  // namespace farkv
