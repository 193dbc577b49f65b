// farkvctl: shows memory nodes, pools, sessions and sequences, and generates.
#include <CLI/CLI.hpp>
#include <iostream>

#include "admin_cli/commands.h"
#include "common/base/parse.h"
#include "common/process/version.h"

namespace farkv {
namespace {

// What the command line asked for; `run` is set by the chosen subcommand.
struct Invocation {
  CliOptions options;
  GenerateOptions generate;
  std::string timeout = "60s";
  std::string sequence;
  std::function<int()> run;
};

void AddCommon(CLI::App& app, Invocation& v) {
  app.add_option("--nodes", v.options.nodes,
                 "Admin addresses of memory nodes, comma-separated")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->envname("FARKV_NODES");
  app.add_option("--workers", v.options.workers,
                 "Admin addresses of workers, comma-separated")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->envname("FARKV_WORKERS");
  app.add_option("-o,--output", v.options.output, "table or json")
      ->check(CLI::IsMember({"table", "json"}))
      ->capture_default_str();
  app.add_option("--timeout", v.timeout, "Longest time of a call")
      ->capture_default_str();
  app.add_option("--tls-ca", v.options.tls.ca_file, "PEM of whom to trust");
  app.add_option("--tls-cert", v.options.tls.cert_file, "PEM of the own cert");
  app.add_option("--tls-key", v.options.tls.key_file, "PEM of the own key");
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
}

void AddDescribe(CLI::App& app, Invocation& v) {
  CLI::App* describe = app.add_subcommand("describe", "Shows one thing whole");
  describe->require_subcommand(1)->fallthrough();
  CLI::App* sequence =
      describe->add_subcommand("sequence", "Tier map of a running sequence");
  sequence->fallthrough();
  sequence->add_option("id", v.sequence, "Request id or session id")
      ->required();
  sequence->callback([&v] {
    v.run = [&v] { return DescribeSequence(v.options, v.sequence); };
  });
}

void AddGenerate(CLI::App& app, Invocation& v) {
  GenerateOptions& g = v.generate;
  CLI::App* generate = app.add_subcommand("generate", "Generates text");
  generate->fallthrough();
  generate->add_option("--worker", g.worker, "Address of the Generate API")
      ->default_val("127.0.0.1:7501")
      ->envname("FARKV_WORKER");
  generate->add_option("--prompt", g.prompt, "Text");
  generate->add_option("--prompt-file", g.prompt_file, "File with the text");
  generate
      ->add_option("--prompt-ids", g.prompt_ids,
                   "Token ids, comma-separated, instead of a text")
      ->delimiter(',')
      ->allow_extra_args(false);
  generate->add_option("--request-id", g.request_id, "Chosen id");
  generate->add_option("--temperature", g.temperature, "0 is greedy");
  generate->add_option("--top-p", g.top_p, "In (0, 1]");
  generate->add_option("--top-k", g.top_k, "0 is all");
  generate->add_option("--seed", g.seed, "Seed of the draws");
  generate->add_option("--max-new-tokens", g.max_new_tokens,
                       "Tokens at most; the worker's default is 256");
  generate->add_option("--stop", g.stop_texts, "Stop text; may be repeated")
      ->take_all()
      ->allow_extra_args(false);
  generate->add_option("--stop-ids", g.stop_ids, "Stop tokens, comma-separated")
      ->delimiter(',');
  generate
      ->add_option("--forced-ids", g.forced_ids,
                   "Forced tokens, comma-separated")
      ->delimiter(',')
      ->allow_extra_args(false);
  generate->add_option("--hbm-ratio", g.hbm_ratio, "Share kept in T0");
  generate->add_flag("--ignore-eos", g.ignore_eos, "Go on after the end token");
  generate->add_flag("--usage", g.usage, "Tier block to stderr");
  generate->callback(
      [&v] { v.run = [&v] { return Generate(v.options, v.generate); }; });
}

int Main(int argc, char** argv) {
  Invocation v;
  CLI::App app("Shows and drives a FarKV installation.", "farkvctl");
  app.require_subcommand(1);
  app.set_version_flag("--version", SoftwareVersion());
  app.footer(
      "Exit codes: 0 ok, 1 error, 2 usage, 3 some peers did not answer, 4 "
      "none did.");
  AddCommon(app, v);
  AddGet(app, v);
  AddDescribe(app, v);
  AddGenerate(app, v);
  app.add_subcommand("version", "Version of this program")
      ->fallthrough()
      ->callback([&v] { v.run = [&v] { return PrintVersion(v.options); }; });
  if (v.options.nodes.empty()) v.options.nodes = {"127.0.0.1:7402"};
  if (v.options.workers.empty()) v.options.workers = {"127.0.0.1:7502"};
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  const auto timeout = ParseDuration(v.timeout);
  if (!timeout.ok()) {
    std::cerr << "error: --timeout: " << timeout.status().message() << "\n";
    return kExitUsage;
  }
  v.options.timeout = *timeout;
  return v.run();
}

}  // namespace
}  // namespace farkv

int main(int argc, char** argv) { return farkv::Main(argc, argv); }
