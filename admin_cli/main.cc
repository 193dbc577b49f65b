// farkvctl: shows memory nodes, pools, sessions, sequences and decisions, and
// generates.
#include <CLI/CLI.hpp>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "admin_cli/arguments.h"
#include "admin_cli/commands.h"
#include "common/base/session_handle.h"
#include "common/base/text_checks.h"
#include "common/process/version.h"
#include "common/rpc/grpc_log.h"

namespace farkv {
namespace {

// What the command line asked for; the chosen subcommand sets the functions.
struct Invocation {
  CliOptions options;
  GenerateOptions generate;
  CommonArguments common_typed;
  GenerateArguments generate_typed;
  std::string sequence;
  std::string session;
  std::function<absl::Status()> finish;  // of the subcommand; may be empty
  std::function<int()> run;
};

void AddCommon(CLI::App& app, Invocation& v) {
  CommonArguments& typed = v.common_typed;
  app.add_option("--nodes", typed.nodes,
                 "Admin addresses of memory nodes, comma-separated; default: "
                 "127.0.0.1:7402")
      ->allow_extra_args(false)
      ->envname("FARKV_NODES");
  app.add_option("--workers", typed.workers,
                 "Admin addresses of workers, comma-separated; default: "
                 "127.0.0.1:7502")
      ->allow_extra_args(false)
      ->envname("FARKV_WORKERS");
  app.add_option("-o,--output", v.options.output, "table or json")
      ->check(CLI::IsMember({"table", "json"}))
      ->capture_default_str();
  app.add_option("--timeout", typed.timeout,
                 "Longest time of a call, as 500ms or 10s")
      ->capture_default_str();
  app.add_option("--tls-ca", v.options.tls.ca_file, "PEM of whom to trust");
  app.add_option("--tls-cert", v.options.tls.cert_file,
                 "PEM of the own certificate");
  app.add_option("--tls-key", v.options.tls.key_file, "PEM of the own key");
}

void AddGetEvictions(CLI::App& get, Invocation& v) {
  CLI::App* evictions = get.add_subcommand(
      "evictions", "Decisions of memory nodes, newest first");
  evictions->fallthrough();
  evictions->add_option("--session", v.session,
                        "Of one session, as get shows it; default: of all");
  evictions->callback([&v, given = evictions->get_option("--session")] {
    v.finish = [&v, given]() -> absl::Status {
      if (given->empty()) return absl::OkStatus();
      const absl::Status status = SessionPattern::FromHex(v.session).status();
      if (status.ok()) return status;
      return absl::InvalidArgumentError(
          absl::StrCat("--session: ", status.message()));
    };
    v.run = [&v] { return GetEvictions(v.options, v.session); };
  });
}

void AddGet(CLI::App& app, Invocation& v) {
  CLI::App* get = app.add_subcommand("get", "Lists things");
  get->require_subcommand(1)->fallthrough();
  const struct {
    const char* noun;
    const char* help;
    int (*run)(const CliOptions&);
  } nouns[] = {{"nodes", "Memory nodes", GetNodes},
               {"pools", "Pools of nodes and workers", GetPools},
               {"sessions", "Sessions on memory nodes", GetSessions},
               {"sequences", "Sequences of workers", GetSequences}};
  for (const auto& noun : nouns) {
    get->add_subcommand(noun.noun, noun.help)
        ->fallthrough()
        ->callback([&v, run = noun.run] {
          v.run = [&v, run] { return run(v.options); };
        });
  }
  AddGetEvictions(*get, v);
}

void AddDescribe(CLI::App& app, Invocation& v) {
  CLI::App* describe = app.add_subcommand("describe", "Shows one thing whole");
  describe->require_subcommand(1)->fallthrough();
  CLI::App* sequence =
      describe->add_subcommand("sequence", "Tier map of a running sequence");
  sequence->fallthrough();
  sequence
      ->add_option("id", v.sequence, "Request id, or session as get shows it")
      ->required();
  sequence->callback([&v] {
    v.finish = [&v]() -> absl::Status {
      if (v.sequence.empty()) return absl::InvalidArgumentError("id: is empty");
      const absl::Status status = CheckPrintable(v.sequence);
      if (status.ok()) return status;
      return absl::InvalidArgumentError(absl::StrCat("id: ", status.message()));
    };
    v.run = [&v] { return DescribeSequence(v.options, v.sequence); };
  });
}

// Within what the worker's own flags allow.
void AddEviction(CLI::App& generate, GenerateOptions& g) {
  generate.add_option("--eviction", g.eviction,
                      "What destroys rows, or none; default: the worker's");
  generate.add_option("--per-event-ratio", g.per_event_ratio,
                      "At most the worker's");
  generate.add_option("--cumulative-cap", g.cumulative_cap,
                      "At most the worker's");
  generate.add_option("--budget-tokens", g.budget_tokens,
                      "No less than the worker's");
  generate.add_option("--budget-ratio", g.budget_ratio,
                      "No less than the worker's");
}

void AddGenerate(CLI::App& app, Invocation& v) {
  GenerateOptions& g = v.generate;
  GenerateArguments& typed = v.generate_typed;
  CLI::App* generate = app.add_subcommand("generate", "Generates text");
  generate->fallthrough();
  generate
      ->add_option("--worker", typed.worker,
                   "Address of the Generate API (--listen of the worker)")
      ->capture_default_str()
      ->envname("FARKV_WORKER");
  generate->add_option("--prompt", typed.prompt, "Text");
  generate->add_option("--prompt-file", typed.prompt_file,
                       "File with the text, instead of --prompt");
  generate->add_option("--prompt-ids", typed.prompt_ids,
                       "Token ids, comma-separated, instead of a text");
  generate->add_flag("--chat", g.chat,
                     "The prompt is a message to the model's chat template");
  generate->add_option("--system", typed.system,
                       "System message, with --chat; default: the template's");
  generate->add_option("--request-id", g.request_id,
                       "Names the request; default: the worker chooses");
  generate->add_option("--temperature", g.temperature,
                       "0, the default, is greedy");
  generate->add_option("--top-p", g.top_p, "In (0, 1]");
  generate->add_option("--top-k", g.top_k, "0 is all");
  generate->add_option("--seed", typed.seed,
                       "Seed of the draws; default: the worker's");
  generate->add_option("--max-new-tokens", g.max_new_tokens,
                       "Tokens at most; the worker's default is 256");
  generate->add_option("--stop", g.stop_texts, "Stop text; may be repeated")
      ->take_all()
      ->allow_extra_args(false);
  generate
      ->add_option("--stop-ids", typed.stop_ids, "Stop tokens, comma-separated")
      ->allow_extra_args(false);
  generate
      ->add_option("--forced-ids", typed.forced_ids,
                   "Tokens, comma-separated, that are processed as if the "
                   "model had chosen them")
      ->allow_extra_args(false);
  generate->add_option("--hbm-ratio", g.hbm_ratio,
                       "Share kept in T0; default: the worker's");
  AddEviction(*generate, g);
  generate->add_flag("--ignore-eos", g.ignore_eos, "Go on after the end token");
  generate->add_flag("--usage", g.usage, "Tier block to stderr");
  generate->callback([&v] {
    v.finish = [&v] { return Finish(v.generate_typed, v.generate); };
    v.run = [&v] { return Generate(v.options, v.generate); };
  });
}

// CLI11 would take the next argument as the value of "--name=". It wants them
// from the last to the first.
std::vector<std::string> Reversed(int argc, char** argv) {
  std::vector<std::string> all;
  for (int i = argc - 1; i > 0; --i) {
    std::string argument = argv[i];
    if (argument.starts_with("--") && argument.ends_with("=")) {
      all.emplace_back();
      argument.pop_back();
    }
    all.push_back(std::move(argument));
  }
  return all;
}

int Refuse(const std::string& why) {
  std::cerr << "error: " << why << "\nTry 'farkvctl --help'.\n";
  return kExitUsage;
}

int Refuse(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<std::string> rest = app.remaining(/*recurse=*/true);
  const bool unnamed =
      dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
  if (!unnamed || rest.empty()) return Refuse(error.what());
  return Refuse(absl::StrCat(error.what(), "; ", ShownText(rest.front()),
                             " is not known here"));
}

int Main(int argc, char** argv) {
  Invocation v;
  CLI::App app("Shows and drives a FarKV installation.", "farkvctl");
  app.require_subcommand(1);
  app.set_version_flag("--version", SoftwareVersion());
  app.footer(
      "Every address is host:port; FARKV_NODES, FARKV_WORKERS and FARKV_WORKER "
      "stand in for --nodes, --workers and --worker.\n"
      "Exit codes: 0 ok, 1 error, 2 usage, 3 some peers failed, 4 none "
      "could be reached.");
  AddCommon(app, v);
  AddGet(app, v);
  AddDescribe(app, v);
  AddGenerate(app, v);
  app.add_subcommand("version", "Version of this program")
      ->fallthrough()
      ->callback([&v] { v.run = [&v] { return PrintVersion(v.options); }; });
  try {
    app.parse(Reversed(argc, argv));
  } catch (const CLI::Success& asked) {  // --help, --version
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    return Refuse(app, error);
  }
  absl::Status status = Finish(v.common_typed, v.options);
  if (status.ok() && v.finish) status = v.finish();
  if (absl::IsInvalidArgument(status)) {
    return Refuse(std::string(status.message()));
  }
  if (!status.ok()) {
    std::cerr << "error: " << status.message() << "\n";
    return kExitError;
  }
  return v.run();
}

}  // namespace
}  // namespace farkv

int main(int argc, char** argv) {
  farkv::DropGrpcLog();
  return farkv::Main(argc, argv);
}
