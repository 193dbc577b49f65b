#include "common/transport/ucx/ucx_worker.h"

#include <poll.h>
#include <ucs/config/global_opts.h>
#include <ucs/debug/debug.h>
#include <ucs/debug/log_def.h>

#include <algorithm>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/transport/ucx/ucx_status.h"

namespace farkv {
namespace {

// UCX prints to standard output, where our programs promise JSON.
ucs_log_func_rc_t LogToStderr(const char*, unsigned, const char*,
                              ucs_log_level_t level,
                              const ucs_log_component_config_t*,
                              const char* message, va_list args) {
  if (level > UCS_LOG_LEVEL_ERROR) return UCS_LOG_FUNC_RC_STOP;
  char line[512];
  std::vsnprintf(line, sizeof(line), message, args);
  std::fprintf(stderr, "ucx: %s\n", line);
  return UCS_LOG_FUNC_RC_STOP;
}

// What UCX set up for the whole process when it was loaded and a library must
// not decide: the log's place and the signal handlers.
void TameProcessWideSettings() {
  static std::once_flag once;
  std::call_once(once, [] {
    ucs_global_opts_set_value("LOG_LEVEL", "error");
    ucs_log_push_handler(&LogToStderr);
    for (int signal : {SIGILL, SIGSEGV, SIGBUS, SIGFPE}) {
      ucs_debug_disable_signal(signal);
    }
  });
}

// A node that comes back must get its port although old connections linger on
// it. UCX 1.13 reads the settings of connection managers from the environment
// only, so this one is set there, before main and before any thread.
const int kReuseAddress = setenv("UCX_TCP_CM_REUSEADDR", "y", 0);

using Setting = std::pair<std::string, std::string>;

std::vector<Setting> Settings(const UcxOptions& options, bool loopback_only) {
  std::vector<Setting> settings = {
      {"TLS", options.tls},
      {"TCP_TX_SEG_SIZE", absl::StrCat(options.tcp_send_segment_bytes)},
      {"TCP_RX_SEG_SIZE", absl::StrCat(options.tcp_receive_segment_bytes)},
      // A blocking connect that is refused trips an assertion in UCX 1.13.
      {"TCP_CONN_NB", "y"},
      {"RNDV_THRESH", absl::StrCat(options.rendezvous_bytes)},
  };
  std::string devices = options.net_devices;
  if (devices.empty()) devices = loopback_only ? "lo" : "all";
  settings.emplace_back("NET_DEVICES", devices);
  if (!options.port_range.empty()) {
    settings.emplace_back("TCP_PORT_RANGE", options.port_range);
  }
  return settings;
}

absl::StatusOr<ucp_context_h> CreateContext(const UcxOptions& options,
                                            bool loopback_only) {
  ucp_config_t* config = nullptr;
  FARKV_RETURN_IF_ERROR(
      FromUcx(ucp_config_read(nullptr, nullptr, &config), "ucp_config_read"));
  const absl::Cleanup release = [config] { ucp_config_release(config); };
  for (const auto& [name, value] : Settings(options, loopback_only)) {
    FARKV_RETURN_IF_ERROR(
        FromUcx(ucp_config_modify(config, name.c_str(), value.c_str()),
                absl::StrCat("UCX setting ", name, "=", value)));
  }
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_NAME;
  params.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  params.name = "farkv";
  ucp_context_h context = nullptr;
  FARKV_RETURN_IF_ERROR(
      FromUcx(ucp_init(&params, config, &context), "ucp_init"));
  return context;
}

}  // namespace

absl::StatusOr<std::unique_ptr<UcxWorker>> UcxWorker::Create(
    const UcxOptions& options, bool loopback_only) {
  TameProcessWideSettings();
  if (kReuseAddress != 0) return absl::InternalError("setenv failed");
  std::unique_ptr<UcxWorker> made(new UcxWorker);
  FARKV_ASSIGN_OR_RETURN(made->context_, CreateContext(options, loopback_only));
  ucp_worker_params_t params{};
  params.field_mask =
      UCP_WORKER_PARAM_FIELD_THREAD_MODE | UCP_WORKER_PARAM_FIELD_EVENTS;
  params.thread_mode = UCS_THREAD_MODE_SINGLE;
  params.events = UCP_WAKEUP_AMO | UCP_WAKEUP_RX | UCP_WAKEUP_TX;
  FARKV_RETURN_IF_ERROR(
      FromUcx(ucp_worker_create(made->context_, &params, &made->worker_),
              "ucp_worker_create"));
  FARKV_RETURN_IF_ERROR(
      FromUcx(ucp_worker_get_efd(made->worker_, &made->event_fd_),
              "ucp_worker_get_efd"));
  return made;
}

UcxWorker::~UcxWorker() {
  if (worker_ != nullptr) ucp_worker_destroy(worker_);
  if (context_ != nullptr) ucp_cleanup(context_);
}

bool UcxWorker::Progress() { return ucp_worker_progress(worker_) != 0; }

void UcxWorker::Sleep(absl::Duration timeout) {
  // BUSY: something arrived since the last progress, or a signal.
  if (ucp_worker_arm(worker_) != UCS_OK) return;
  pollfd event{event_fd_, POLLIN, 0};
  // A day is as good as for ever, and fits a timespec.
  const timespec limit = absl::ToTimespec(
      std::clamp(timeout, absl::ZeroDuration(), absl::Hours(24)));
  ppoll(&event, 1, &limit, nullptr);
}

void UcxWorker::Signal() { ucp_worker_signal(worker_); }

}  // namespace farkv
