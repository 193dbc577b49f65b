#include "absl/strings/str_cat.h"
#include "admin_cli/bad_flag.h"
#include "admin_cli/command_line.h"
#include "admin_cli/commands.h"
#include "admin_cli/top_tables.h"
#include "common/base/status_macros.h"

namespace farkv {
namespace {

// The columns of all tables, for --sort-by.
Output TopOutput() {
  std::vector<Output::Column> columns;
  for (const Output& table : TopTables::Empty()) {
    columns.insert(columns.end(), table.columns().begin(),
                   table.columns().end());
  }
  return Output("Top", std::move(columns));
}

absl::Status FinishTop(Invocation& v) {
  FARKV_RETURN_IF_ERROR(ReadTime("--interval", v.common_typed.top_interval,
                                 v.options.top.interval));
  if (v.options.watch.enabled) {
    return BadFlag("--watch", "top repeats by itself; see --interval, --count");
  }
  if (v.options.output.format == "name") {
    return BadFlag("--output", "top has no names to print");
  }
  if (v.options.nodes.empty() && v.options.workers.empty()) {
    return BadFlag("--nodes", "and --workers are none: nobody to ask");
  }
  return absl::OkStatus();
}

}  // namespace

void AddTop(CLI::App& app, Invocation& v) {
  CLI::App* top = app.add_subcommand(
      "top", "Shows nodes, pools, workers and their rates, again and again");
  top->fallthrough();
  top->add_option("--interval", v.common_typed.top_interval,
                  "Between two rounds")
      ->capture_default_str();
  top->add_option("--count", v.options.top.count, "Rounds; 0: no end")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
  top->add_flag("--plain", v.options.top.plain,
                "One block after the other, on a terminal too");
  top->callback([&v] {
    v.table = TopOutput;
    v.finish = [&v] { return FinishTop(v); };
    v.run = [&v] { return RunTop(v.options); };
  });
}

}  // namespace farkv
