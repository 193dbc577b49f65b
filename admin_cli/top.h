// Parts of `top` that both of its forms share.
#ifndef FARKV_ADMIN_CLI_TOP_H_
#define FARKV_ADMIN_CLI_TOP_H_

#include <functional>
#include <ostream>

#include "absl/time/time.h"
#include "admin_cli/options.h"
#include "admin_cli/top_sample.h"
#include "admin_cli/top_tables.h"

namespace farkv {

// How long a round waits for those that do not answer: an interval, at least
// one second and at most two, and never more than --timeout.
absl::Duration RoundDeadline(const CliOptions& options);

// A round in the form of `options.output`: a block of tables, a line of JSON or
// a YAML document. A block or document behind another begins with "---".
void PrintTop(const TopTables& tables, const OutputOptions& options, bool first,
              std::ostream& out);

}  // namespace farkv

#endif  // FARKV_ADMIN_CLI_TOP_H_
