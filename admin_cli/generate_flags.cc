#include "admin_cli/command_line.h"
#include "admin_cli/commands.h"

namespace farkv {
namespace {

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
  generate.add_option("--selection", g.selection,
                      "Which rows decode steps read: quest, where the worker "
                      "has it, or none; default: the worker's");
}

void AddSampling(CLI::App& generate, GenerateOptions& g,
                 GenerateArguments& typed) {
  generate.add_option("--temperature", g.temperature,
                      "0, the default, is greedy");
  generate.add_option("--top-p", g.top_p, "In (0, 1]");
  generate.add_option("--top-k", g.top_k, "0 is all");
  generate.add_option("--min-p", g.min_p,
                      "Drops tokens with less than this share of the likeliest "
                      "one's probability");
  generate.add_option("--repetition-penalty", g.repetition_penalty,
                      "Of tokens in prompt or output; 1 is none");
  generate.add_option("--frequency-penalty", g.frequency_penalty,
                      "For each time a token is in the output, in [-2, 2]");
  generate.add_option("--presence-penalty", g.presence_penalty,
                      "For tokens that are in the output, in [-2, 2]");
  generate
      .add_option("--logit-bias", typed.logit_bias,
                  "ID:BIAS, comma-separated: what is added to the logits of "
                  "tokens, in [-100, 100]")
      ->allow_extra_args(false);
  generate.add_option("--seed", typed.seed,
                      "Seed of the draws; default: the worker's");
  generate.add_option("--n", g.outputs,
                      "Outputs, each with the next seed; needs a temperature");
}

void AddStopping(CLI::App& generate, GenerateOptions& g,
                 GenerateArguments& typed) {
  generate.add_option("--max-new-tokens", g.max_new_tokens,
                      "Tokens at most; the worker's default is 256");
  generate.add_option("--min-new-tokens", g.min_new_tokens,
                      "Tokens before which nothing ends the output");
  generate.add_option("--stop", g.stop_texts, "Stop text; may be repeated")
      ->take_all()
      ->allow_extra_args(false);
  generate
      .add_option("--stop-ids", typed.stop_ids, "Stop tokens, comma-separated")
      ->allow_extra_args(false);
  generate.add_flag("--include-stop", g.include_stop,
                    "The output ends with what has stopped it");
  generate.add_flag("--ignore-eos", g.ignore_eos, "Go on after the end token");
}

void AddLogprobs(CLI::App& generate, GenerateOptions& g) {
  generate.add_flag("--logprobs", g.logprobs,
                    "Log probabilities of the output's tokens");
  generate.add_flag("--prompt-logprobs", g.prompt_logprobs,
                    "Log probabilities of the prompt's tokens");
  generate.add_option("--top-logprobs", g.top_logprobs,
                      "So many of the most likely tokens beside, at most 20");
}

}  // namespace

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
  generate->add_option("--messages-file", typed.messages_file,
                       "JSON file with the messages of a conversation, a list "
                       "of {role, content}, for the model's chat template");
  generate->add_flag("--chat", g.chat,
                     "The prompt is a message to the model's chat template");
  generate->add_option("--system", typed.system,
                       "System message, with --chat; default: the template's");
  generate->add_option("--request-id", g.request_id,
                       "Names the request; default: the worker chooses");
  AddSampling(*generate, g, typed);
  AddStopping(*generate, g, typed);
  AddLogprobs(*generate, g);
  generate
      ->add_option("--forced-ids", typed.forced_ids,
                   "Tokens, comma-separated, that are processed as if the "
                   "model had chosen them")
      ->allow_extra_args(false);
  generate->add_option("--hbm-ratio", g.hbm_ratio,
                       "Share kept in T0; default: the worker's");
  AddEviction(*generate, g);
  generate->add_flag("--usage", g.usage, "Tier block to stderr");
  generate->callback([&v] {
    v.finish = [&v] { return Finish(v.generate_typed, v.generate); };
    v.run = [&v] { return Generate(v.options, v.generate); };
  });
}

}  // namespace farkv
