#include "admin_cli/command_line.h"

#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "admin_cli/bad_flag.h"
#include "admin_cli/commands.h"
#include "admin_cli/completion.h"
#include "admin_cli/evictions.h"
#include "admin_cli/holders.h"
#include "admin_cli/tables.h"
#include "common/base/session_handle.h"
#include "common/base/status_macros.h"
#include "common/base/text_checks.h"
#include "common/process/address.h"

namespace farkv {
namespace {

void AddOutput(CLI::App& app, Invocation& v) {
  OutputOptions& output = v.options.output;
  app.add_option("-o,--output", output.format, "Form of the answer")
      ->check(CLI::IsMember({"table", "wide", "json", "yaml", "name"}))
      ->capture_default_str();
  app.add_option("--sort-by", output.sort_by,
                 "Column to sort by, by title or JSON key; -COLUMN: the "
                 "largest first");
  app.add_flag("--no-headers", output.no_headers, "Tables without titles");
  app.add_flag("-w,--watch", v.options.watch.enabled,
               "Ask again and again, until it is stopped");
  app.add_option("--watch-interval", v.common_typed.watch_interval,
                 "Between two rounds of --watch")
      ->capture_default_str();
  app.add_option("--watch-count", v.options.watch.count,
                 "Rounds of --watch; 0: no end")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
}

void AddCommon(CLI::App& app, Invocation& v) {
  CommonArguments& typed = v.common_typed;
  app.add_option("--nodes", typed.nodes,
                 "Admin addresses of memory nodes, comma-separated, or none; "
                 "default: 127.0.0.1:7402")
      ->allow_extra_args(false)
      ->envname("FARKV_NODES");
  app.add_option("--workers", typed.workers,
                 "Admin addresses of workers, comma-separated, or none; "
                 "default: 127.0.0.1:7502")
      ->allow_extra_args(false)
      ->envname("FARKV_WORKERS");
  AddOutput(app, v);
  app.add_option("--timeout", typed.timeout,
                 "Longest time of a call, as 500ms or 10s")
      ->capture_default_str();
  // As the programs', so that farkvctl beside one of them needs no flags.
  app.add_option("--tls-ca", v.options.tls.ca_file, "PEM of whom to trust")
      ->envname("FARKV_TLS_CA");
  app.add_option("--tls-cert", v.options.tls.cert_file,
                 "PEM of the own certificate")
      ->envname("FARKV_TLS_CERT");
  app.add_option("--tls-key", v.options.tls.key_file, "PEM of the own key")
      ->envname("FARKV_TLS_KEY");
}

// `session`, when `given`, must be hex digits.
std::function<absl::Status()> SessionCheck(const Invocation& v,
                                           const CLI::Option* given) {
  return [&v, given]() -> absl::Status {
    if (given->empty()) return absl::OkStatus();
    return BadFlag("--session", SessionPattern::FromHex(v.session).status());
  };
}

void AddEvictions(CLI::App& verb, const char* help, Output (*table)(),
                  int (*run)(const CliOptions&, const std::string& session),
                  Invocation& v) {
  CLI::App* evictions = verb.add_subcommand("evictions", help);
  evictions->fallthrough();
  const CLI::Option* session =
      evictions->add_option("--session", v.session,
                            "Of one session, as get shows it; default: of all");
  evictions->callback([&v, session, table, run] {
    v.table = table;
    v.finish = SessionCheck(v, session);
    v.run = [&v, run] { return run(v.options, v.session); };
  });
}

void AddReplay(CLI::App& app, Invocation& v) {
  CLI::App* replay = app.add_subcommand("replay", "Computes things again");
  replay->require_subcommand(1)->fallthrough();
  AddEvictions(*replay, "Logged decisions of nodes, from the rows as they are",
               ReplayOutput, ReplayEvictions, v);
}

// A command without flags of its own that prints rows.
struct Noun {
  const char* noun;
  const char* help;
  Output (*table)();
  int (*run)(const CliOptions&);
};

void AddNoun(CLI::App& verb, const Noun& noun, Invocation& v) {
  verb.add_subcommand(noun.noun, noun.help)
      ->fallthrough()
      ->callback([&v, noun] {
        v.table = noun.table;
        v.run = [&v, noun] { return noun.run(v.options); };
      });
}

void AddPages(CLI::App& verb, Invocation& v) {
  CLI::App* pages = verb.add_subcommand(
      "pages", "Pages of memory nodes that are not free, and why");
  pages->fallthrough();
  const CLI::Option* session =
      pages->add_option("--session", v.session,
                        "Of one session, as get shows it; default: of all");
  pages->add_option("--tier", v.pages.tier, "Of one tier")
      ->check(CLI::IsMember({"T1", "T2"}));
  pages->add_option("--state", v.pages.state, "In one state")
      ->check(CLI::IsMember({"reserved", "stored", "quarantined"}));
  pages->add_option("--limit", v.pages.limit, "Of each node; 0: no end")
      ->check(CLI::Range(0, 1'000'000'000))
      ->capture_default_str();
  pages->callback([&v, session] {
    v.table = PageOutput;
    v.finish = SessionCheck(v, session);
    v.run = [&v] {
      v.pages.session = v.session;
      return GetPages(v.options, v.pages);
    };
  });
}

void AddGet(CLI::App& app, Invocation& v) {
  CLI::App* get = app.add_subcommand("get", "Lists things");
  get->require_subcommand(1)->fallthrough();
  const Noun nouns[] = {
      {"nodes", "Memory nodes", NodeOutput, GetNodes},
      {"workers", "Workers", WorkerOutput, GetWorkers},
      {"pools", "Pools of nodes and workers", PoolOutput, GetPools},
      {"sessions", "Sessions on memory nodes", SessionOutput, GetSessions},
      {"leases", "Leases of sessions, those that end first at the top",
       LeaseOutput, GetLeases},
      {"sequences", "Sequences of workers", SequenceOutput, GetSequences},
      {"peers", "Who is connected to whom, and how", PeerOutput, GetPeers}};
  for (const Noun& noun : nouns) AddNoun(*get, noun, v);
  AddEvictions(*get, "Decisions of nodes and workers, newest first",
               EvictionOutput, GetEvictions, v);
  AddPages(*get, v);
}

void AddDescribePool(CLI::App& verb, Invocation& v) {
  CLI::App* pool = verb.add_subcommand(
      "pool", "Pools of a memory node, and who holds their pages");
  pool->fallthrough();
  pool->add_option("node", v.pool, "Its name or admin address")->required();
  pool->callback([&v] {
    v.table = HolderOutput;
    v.finish = [&v] { return BadFlag("node", CheckPrintable(v.pool)); };
    v.run = [&v] { return DescribePool(v.options, v.pool); };
  });
}

void AddDescribe(CLI::App& app, Invocation& v) {
  CLI::App* describe = app.add_subcommand("describe", "Shows one thing whole");
  describe->require_subcommand(1)->fallthrough();
  AddDescribePool(*describe, v);
  CLI::App* sequence =
      describe->add_subcommand("sequence", "Tier map of a running sequence");
  sequence->fallthrough();
  sequence
      ->add_option("id", v.sequence, "Request id, or session as get shows it")
      ->required();
  sequence->callback([&v] {
    v.table = TierMapOutput;
    v.finish = [&v]() -> absl::Status {
      if (v.sequence.empty()) return absl::InvalidArgumentError("id: is empty");
      return BadFlag("id", CheckPrintable(v.sequence));
    };
    v.run = [&v] { return DescribeSequence(v.options, v.sequence); };
  });
}

void AddConfig(CLI::App& app, Invocation& v) {
  CLI::App* config = app.add_subcommand("config", "Settings of processes");
  config->require_subcommand(1)->fallthrough();
  AddNoun(*config,
          {"view", "The settings in effect, of nodes and workers", ConfigOutput,
           ViewConfig},
          v);
}

absl::Status CheckDrained(const std::vector<std::string>& addresses) {
  for (const std::string& address : addresses) {
    FARKV_RETURN_IF_ERROR(
        BadFlag("address", ParsePeerAddress(address).status()));
  }
  return absl::OkStatus();
}

void AddDrain(CLI::App& app, Invocation& v) {
  CLI::App* drain = app.add_subcommand(
      "drain", "Has processes take no new work, and waits for the old");
  drain->fallthrough();
  drain->add_option("addresses", v.drained, "Admin addresses, host:port")
      ->required();
  drain->add_flag("--yes", v.yes, "Needed: new work will be refused");
  drain->add_flag("--no-wait", v.no_wait, "Begin only");
  drain->callback([&v] {
    v.finish = [&v]() -> absl::Status {
      FARKV_RETURN_IF_ERROR(CheckDrained(v.drained));
      if (v.yes) return absl::OkStatus();
      return absl::InvalidArgumentError(absl::StrCat(
          "drain: ", absl::StrJoin(v.drained, ", "),
          " would refuse new work until undrain; say --yes to do it"));
    };
    v.run = [&v] { return Drain(v.options, v.drained, !v.no_wait); };
  });
  CLI::App* undrain =
      app.add_subcommand("undrain", "Has drained processes take work again");
  undrain->fallthrough();
  undrain->add_option("addresses", v.drained, "Admin addresses, host:port")
      ->required();
  undrain->callback([&v] {
    v.finish = [&v] { return CheckDrained(v.drained); };
    v.run = [&v] { return Undrain(v.options, v.drained); };
  });
}

void AddVerify(CLI::App& app, Invocation& v) {
  CLI::App* verify = app.add_subcommand(
      "verify", "Has memory nodes check the rows that they hold");
  verify->fallthrough();
  const CLI::Option* session =
      verify->add_option("--session", v.session,
                         "Of one session, as get shows it; default: of all");
  verify->callback([&v, session] {
    v.table = VerifyOutput;
    v.finish = SessionCheck(v, session);
    v.run = [&v] { return Verify(v.options, v.session); };
  });
}

void AddCompletion(CLI::App& app, Invocation& v) {
  CLI::App* completion = app.add_subcommand(
      "completion", "Prints a script that completes farkvctl's commands");
  completion->require_subcommand(1)->fallthrough();
  for (const char* shell : {"bash", "zsh", "fish"}) {
    completion->add_subcommand(shell, CompletionHint(shell))
        ->fallthrough()
        ->callback([&app, &v, shell] {
          v.run = [&app, shell] {
            std::cout << CompletionScript(app, shell);
            return kExitOk;
          };
        });
  }
}

absl::Status CheckRows(const Invocation& v) {
  if (v.table) return v.table().CheckSortBy(v.options.output.sort_by);
  if (!v.options.output.sort_by.empty()) {
    return absl::InvalidArgumentError(
        "--sort-by: this command has no rows to sort");
  }
  if (v.options.watch.enabled) {
    return absl::InvalidArgumentError(
        "--watch: this command is not to be repeated; it goes with get, "
        "describe and others that print rows");
  }
  return absl::OkStatus();
}

}  // namespace

void AddCommands(CLI::App& app, Invocation& v) {
  AddCommon(app, v);
  AddGet(app, v);
  AddDescribe(app, v);
  AddTop(app, v);
  AddGenerate(app, v);
  AddDrain(app, v);
  AddVerify(app, v);
  AddReplay(app, v);
  AddPreflight(app, v);
  AddPlan(app, v);
  AddConfig(app, v);
  AddCompletion(app, v);
  app.add_subcommand("version", "Version of this program")
      ->fallthrough()
      ->callback([&v] { v.run = [&v] { return PrintVersion(v.options); }; });
}

absl::Status FinishInvocation(Invocation& v) {
  FARKV_RETURN_IF_ERROR(Finish(v.common_typed, v.options));
  FARKV_RETURN_IF_ERROR(CheckRows(v));
  return v.finish ? v.finish() : absl::OkStatus();
}

}  // namespace farkv
