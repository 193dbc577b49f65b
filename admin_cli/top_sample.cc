#include "admin_cli/top_sample.h"

#include <array>
#include <chrono>
#include <utility>

#include "absl/synchronization/blocking_counter.h"
#include "common/base/status_macros.h"
#include "common/rpc/status_codec.h"

namespace farkv {
namespace {

using namespace admin::v1;  // NOLINT: the messages of the admin service

constexpr int kReconnectMs = 1000;
constexpr int kCallsEach = 3;

}  // namespace

// The calls of one round to one process.
struct TopSampler::Calls {
  std::array<grpc::ClientContext, kCallsEach> contexts;
  std::array<grpc::Status, kCallsEach> statuses;
  GetProcessRequest process_request;
  GetProcessResponse process;
  ListPoolsRequest pools_request;
  ListPoolsResponse pools;
  ListPeersRequest peers_request;
  ListPeersResponse peers;

  void Begin(AdminStub& stub, std::chrono::system_clock::time_point deadline,
             absl::BlockingCounter& open) {
    for (grpc::ClientContext& context : contexts) {
      context.set_deadline(deadline);
    }
    const auto done = [this, &open](size_t call) {
      return [this, &open, call](grpc::Status status) {
        statuses[call] = std::move(status);
        open.DecrementCount();
      };
    };
    process_request.set_with_metrics(true);
    stub.async()->GetProcess(&contexts[0], &process_request, &process, done(0));
    stub.async()->ListPools(&contexts[1], &pools_request, &pools, done(1));
    stub.async()->ListPeers(&contexts[2], &peers_request, &peers, done(2));
  }

  void Cancel() {
    for (grpc::ClientContext& context : contexts) context.TryCancel();
  }

  void Take(ProcessSample& sample) {
    for (const grpc::Status& status : statuses) {
      if (sample.status.ok()) sample.status = FromGrpcStatus(status);
    }
    sample.process = std::move(process);
    sample.pools.assign(pools.pools().begin(), pools.pools().end());
    sample.peers.assign(peers.peers().begin(), peers.peers().end());
  }
};

TopSampler::TopSampler() = default;
TopSampler::~TopSampler() = default;

absl::Status TopSampler::AddTargets(const CliOptions& options,
                                    const std::vector<std::string>& addresses,
                                    bool workers) {
  for (const std::string& address : addresses) {
    FARKV_ASSIGN_OR_RETURN(auto channel, Dial(options, address, kReconnectMs));
    targets_.push_back({address, workers, AdminService::NewStub(channel)});
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<TopSampler>> TopSampler::Create(
    const CliOptions& options) {
  auto sampler = std::make_unique<TopSampler>();
  FARKV_RETURN_IF_ERROR(sampler->AddTargets(options, options.nodes, false));
  FARKV_RETURN_IF_ERROR(sampler->AddTargets(options, options.workers, true));
  return sampler;
}

std::vector<ProcessSample> TopSampler::Sample(absl::Duration deadline) {
  const auto until =
      std::chrono::system_clock::now() + absl::ToChronoMilliseconds(deadline);
  absl::BlockingCounter open(kCallsEach * static_cast<int>(targets_.size()));
  std::vector<Calls*> calls;
  {
    absl::MutexLock lock(&mutex_);
    for (size_t i = 0; i < targets_.size(); ++i) {
      calls.push_back(running_.emplace_back(std::make_unique<Calls>()).get());
      if (cancelled_) calls.back()->Cancel();
    }
  }
  for (size_t i = 0; i < targets_.size(); ++i) {
    calls[i]->Begin(*targets_[i].stub, until, open);
  }
  open.Wait();
  std::vector<ProcessSample> samples;
  for (size_t i = 0; i < targets_.size(); ++i) {
    ProcessSample& sample = samples.emplace_back();
    sample.address = targets_[i].address;
    sample.is_worker = targets_[i].is_worker;
    calls[i]->Take(sample);
  }
  absl::MutexLock lock(&mutex_);
  running_.clear();
  return samples;
}

// A context may be cancelled before, during and after its call.
void TopSampler::Cancel() {
  absl::MutexLock lock(&mutex_);
  cancelled_ = true;
  for (const auto& calls : running_) calls->Cancel();
}

}  // namespace farkv
