#include "admin_cli/top.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <utility>

#include "absl/time/clock.h"
#include "admin_cli/commands.h"
#include "admin_cli/top_screen.h"

namespace farkv {
namespace {

int StreamTop(const CliOptions& options, TopSampler& sampler) {
  TopTables tables;
  for (int64_t round = 1;; ++round) {
    const absl::Time start = absl::Now();
    tables.Add(sampler.Sample(RoundDeadline(options)), start);
    PrintTop(tables, options.output, round == 1, std::cout);
    if (round == options.top.count || !std::cout) return tables.ExitCode();
    absl::SleepFor(start + options.top.interval - absl::Now());
  }
}

bool IsOnTerminal() {
  return isatty(STDIN_FILENO) != 0 && isatty(STDOUT_FILENO) != 0;
}

}  // namespace

absl::Duration RoundDeadline(const CliOptions& options) {
  return std::min(
      options.timeout,
      std::clamp(options.top.interval, absl::Seconds(1), absl::Seconds(2)));
}

void PrintTop(const TopTables& tables, const OutputOptions& options, bool first,
              std::ostream& out) {
  if (options.format == "json") {
    out << tables.Document(options.sort_by).dump() << "\n" << std::flush;
    return;
  }
  if (!first) out << "---\n";
  if (options.format == "yaml") {
    PrintDocument(tables.Document(options.sort_by), "yaml", out);
  } else {
    out << tables.Summary() << "\n";
    for (const Output& table : tables.Tables()) {
      out << "\n";
      table.Print(options, out);
    }
  }
  out << std::flush;
}

int RunTop(const CliOptions& options) {
  const auto sampler = TopSampler::Create(options);
  if (!sampler.ok()) {
    std::cerr << "error: " << sampler.status().message() << "\n";
    return kExitError;
  }
  if (options.output.IsDocument() || options.top.plain || !IsOnTerminal()) {
    return StreamTop(options, **sampler);
  }
  std::string why = WhyNoScreen();
  if (why.empty()) {
    if (const auto code = ShowTopScreen(options, **sampler)) return *code;
    why = "the terminal could not be opened";
  }
  std::cerr << "hint: " << why << "; the plain stream follows (--plain asks "
            << "for it)\n";
  return StreamTop(options, **sampler);
}

}  // namespace farkv
