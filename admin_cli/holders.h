// What holds the pages of a pool, in words: page by page, and summed up by
// session. Pure.
#ifndef FARKV_ADMIN_CLI_HOLDERS_H_
#define FARKV_ADMIN_CLI_HOLDERS_H_

#include <map>
#include <string>

#include "admin_cli/output.h"
#include "farkv/admin/v1/admin.pb.h"

namespace farkv {

// Why the page is not free, and when it may be.
std::string WhyHeld(const farkv::admin::v1::Page& page);
// The same of all pages of a session.
std::string WhyHeld(const farkv::admin::v1::Session& session);

Output PageOutput();
// `address`: whom it was asked of.
void AddPage(const farkv::admin::v1::Page& page, const std::string& address,
             Output& output);

// Pages in quarantine by the sessions that they belonged to.
class QuarantineSums {
 public:
  void Add(const farkv::admin::v1::Page& page);
  // One row for each session.
  void AddTo(Output& output) const;

 private:
  struct Sum {
    std::string tenant;
    uint64_t pages = 0, bytes = 0;
    double last_seconds = 0;  // when the last one is free
  };
  std::map<std::string, Sum> sums_;  // by session
};

Output HolderOutput();
void AddHolder(const farkv::admin::v1::Session& session, Output& output);

// A pool in words, for people.
std::string PoolText(const farkv::admin::v1::Pool& pool);

}  // namespace farkv

#endif  // FARKV_ADMIN_CLI_HOLDERS_H_
