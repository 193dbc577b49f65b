// The answers of processes as rows: one table for each noun. Pure.
#ifndef FARKV_ADMIN_CLI_TABLES_H_
#define FARKV_ADMIN_CLI_TABLES_H_

#include <string>

#include "admin_cli/output.h"
#include "admin_cli/preflight.h"
#include "farkv/admin/v1/admin.pb.h"

namespace farkv {

// "T0".
std::string TierName(farkv::types::v1::Tier tier);

Output NodeOutput();
Output WorkerOutput();
Output PoolOutput();
Output SessionOutput();
Output LeaseOutput();
Output SequenceOutput();
Output PeerOutput();
Output ConfigOutput();
Output TierMapOutput();
Output VerifyOutput();
Output FindingOutput();

// `address`: whom it was asked of.
void AddNode(const farkv::admin::v1::GetProcessResponse& process,
             const std::string& address, Output& output);
void AddWorker(const farkv::admin::v1::GetProcessResponse& process,
               const std::string& address, Output& output);
void AddPool(const farkv::admin::v1::Pool& pool, Output& output);
void AddSession(const farkv::admin::v1::Session& session,
                const std::string& address, Output& output);
void AddLease(const farkv::admin::v1::Session& session,
              const std::string& address, Output& output);
void AddSequence(const farkv::admin::v1::Sequence& sequence, Output& output);
void AddPeer(const farkv::admin::v1::Peer& peer, const std::string& address,
             Output& output);
// One row for each setting.
void AddConfig(const farkv::admin::v1::GetProcessResponse& process,
               const std::string& address, Output& output);
void AddPageTiers(const farkv::admin::v1::GetTierMapResponse::PageTiers& page,
                  Output& output);
void AddVerified(const farkv::admin::v1::VerifyResponse& result,
                 const std::string& address, Output& output);

void AddFinding(const Finding& finding, Output& output);

}  // namespace farkv

#endif  // FARKV_ADMIN_CLI_TABLES_H_
