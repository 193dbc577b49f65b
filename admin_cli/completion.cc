#include "admin_cli/completion.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace farkv {
namespace {

struct Flag {
  std::vector<std::string> names;  // "--output", "-o"
  std::string help;
  bool takes_value = false;
  std::vector<std::string> values;  // empty: any
};

// One place of the command line: the commands typed so far.
struct Place {
  std::string path;  // " get nodes"; empty at the top
  std::vector<std::pair<std::string, std::string>> commands;  // name, help
  std::vector<Flag> flags;  // of this place alone
};

// The set of a CLI::IsMember check, "{a,b}"; empty for other values.
std::vector<std::string> ValuesOf(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const size_t open = type.find('{');
  const size_t close = type.find('}');
  if (open == std::string::npos || close == std::string::npos) return {};
  return absl::StrSplit(type.substr(open + 1, close - open - 1), ',');
}

std::vector<Flag> FlagsOf(const CLI::App& app) {
  std::vector<Flag> flags;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) continue;
    Flag flag;
    for (const auto& name : option->get_lnames()) {
      flag.names.push_back("--" + name);
    }
    for (const auto& name : option->get_snames()) {
      flag.names.push_back("-" + name);
    }
    flag.help = option->get_description();
    flag.takes_value = option->get_expected_max() > 0;
    flag.values = ValuesOf(*option);
    flags.push_back(std::move(flag));
  }
  return flags;
}

void AddPlaces(const CLI::App& app, const std::string& path,
               std::vector<Place>& places) {
  Place place{path, {}, FlagsOf(app)};
  const auto all = app.get_subcommands([](const CLI::App*) { return true; });
  for (const CLI::App* command : all) {
    place.commands.emplace_back(command->get_name(),
                                command->get_description());
  }
  places.push_back(std::move(place));
  for (const CLI::App* command : all) {
    AddPlaces(*command, absl::StrCat(path, " ", command->get_name()), places);
  }
}

std::string JoinCommands(const Place& place) {
  return absl::StrJoin(place.commands, " ",
                       [](std::string* out, const auto& command) {
                         out->append(command.first);
                       });
}

std::string JoinFlags(const Place& place) {
  std::vector<std::string> names;
  for (const Flag& flag : place.flags) {
    names.insert(names.end(), flag.names.begin(), flag.names.end());
  }
  return absl::StrJoin(names, " ");
}

// Text inside '...' of a POSIX shell and of fish.
std::string Quoted(const std::string& text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "’"}, {"\\", ""}}),
                      "'");
}

// Every place but the top, as the patterns of a shell's case.
std::string PathPatterns(const std::vector<Place>& places) {
  std::vector<std::string> patterns;
  for (const Place& place : places) {
    if (!place.path.empty()) patterns.push_back(Quoted(place.path));
  }
  return absl::StrJoin(patterns, "|");
}

// Branches "-o|--output) values=...": what follows a flag that takes a value.
std::string ValueBranches(const std::vector<Place>& places) {
  std::string branches;
  for (const Place& place : places) {
    for (const Flag& flag : place.flags) {
      if (!flag.takes_value) continue;
      absl::StrAppend(&branches, "    ", absl::StrJoin(flag.names, "|"),
                      ") list=", Quoted(absl::StrJoin(flag.values, " ")),
                      "; kind=value ;;\n");
    }
  }
  return branches;
}

// Branches "' get') list=...": commands, or flags after a "-".
std::string PlaceBranches(const std::vector<Place>& places) {
  std::string branches;
  for (const Place& place : places) {
    absl::StrAppend(&branches, "      ", Quoted(place.path),
                    ") commands=", Quoted(JoinCommands(place)),
                    " flags=", Quoted(JoinFlags(place)), " ;;\n");
  }
  return branches;
}

// Sets `list` to the words that may stand at the cursor. Takes `before` (the
// word before it), `word` (what is typed of it) and, from $@, all words before
// it but the program's name. The same in bash and zsh.
std::string PosixWords(const std::vector<Place>& places) {
  return absl::StrCat(
      "_farkvctl_words() {\n"
      "  local at='' w='' kind='' commands='' flags=''\n"
      "  list=''\n"
      "  for w in \"$@\"; do\n"
      "    case \"$at $w\" in\n      ",
      PathPatterns(places),
      ") at=\"$at $w\" ;;\n"
      "    esac\n"
      "  done\n"
      "  case \"$before\" in\n",
      ValueBranches(places),
      "  esac\n"
      "  if [ -n \"$kind\" ]; then return; fi\n"
      "  case \"$at\" in\n",
      PlaceBranches(places),
      "  esac\n"
      "  case \"$word\" in\n"
      "    -*) list=\"$flags \"",
      Quoted(JoinFlags(places.front())),
      " ;;\n"
      "    *) list=\"$commands\" ;;\n"
      "  esac\n"
      "}\n");
}

std::string Bash(const std::vector<Place>& places) {
  return absl::StrCat(
      "# Completes farkvctl in bash. ", CompletionHint("bash"), "\n",
      PosixWords(places),
      "_farkvctl() {\n"
      "  local list='' before=${COMP_WORDS[COMP_CWORD-1]}\n"
      "  local word=${COMP_WORDS[COMP_CWORD]}\n"
      "  # bash makes three words of --flag=value.\n"
      "  if [ \"$word\" = = ]; then word=''\n"
      "  elif [ \"$before\" = = ]; then before=${COMP_WORDS[COMP_CWORD-2]}\n"
      "  fi\n"
      "  _farkvctl_words \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"\n"
      "  COMPREPLY=($(compgen -W \"$list\" -- \"$word\"))\n"
      "}\n"
      "complete -o default -F _farkvctl farkvctl\n");
}

std::string Zsh(const std::vector<Place>& places) {
  return absl::StrCat(
      "#compdef farkvctl\n# Completes farkvctl in zsh. ", CompletionHint("zsh"),
      "\n", PosixWords(places),
      "_farkvctl() {\n"
      "  local list='' before=${words[CURRENT-1]} word=${words[CURRENT]}\n"
      "  local -a typed=(\"${(@)words[2,CURRENT-1]}\")\n"
      "  case $word in\n"
      "    --*=*) before=${word%%=*}; word=${word#*=}; compset -P '*=' ;;\n"
      "  esac\n"
      "  _farkvctl_words \"$typed[@]\"\n"
      "  if [ -n \"$list\" ]; then compadd -- ${=list}; else _files; fi\n"
      "}\n"
      "if [ -n \"$(whence compdef)\" ]; then compdef _farkvctl farkvctl; fi\n");
}

std::string FishFlag(const Flag& flag, const std::string& condition) {
  std::string line = "complete -c farkvctl" + condition;
  for (const std::string& name : flag.names) {
    const bool is_long = name.rfind("--", 0) == 0;
    absl::StrAppend(&line, is_long ? " -l " : " -s ",
                    name.substr(is_long ? 2 : 1));
  }
  if (flag.takes_value) {
    absl::StrAppend(&line, flag.values.empty() ? " -r" : " -x");
  }
  if (!flag.values.empty()) {
    absl::StrAppend(&line, " -a ", Quoted(absl::StrJoin(flag.values, " ")));
  }
  return absl::StrCat(line, " -d ", Quoted(flag.help), "\n");
}

std::string Fish(const std::vector<Place>& places) {
  std::string script =
      absl::StrCat("# Completes farkvctl in fish. ", CompletionHint("fish"),
                   "\n"
                   "function __farkvctl_at\n"
                   "  set -l at ''\n"
                   "  for w in (commandline -opc)[2..-1]\n"
                   "    switch \"$at $w\"\n"
                   "      case ",
                   absl::StrReplaceAll(PathPatterns(places), {{"|", " "}}),
                   "\n        set at \"$at $w\"\n"
                   "    end\n"
                   "  end\n"
                   "  test \"$at\" = \"$argv[1]\"\n"
                   "end\n"
                   "complete -c farkvctl -f\n");
  for (const Place& place : places) {
    const std::string here =
        absl::StrCat(" -n \"__farkvctl_at ", Quoted(place.path), "\"");
    for (const auto& [name, help] : place.commands) {
      absl::StrAppend(&script, "complete -c farkvctl", here, " -a ", name,
                      " -d ", Quoted(help), "\n");
    }
    // Flags of the top are good everywhere.
    for (const Flag& flag : place.flags) {
      script += FishFlag(flag, place.path.empty() ? "" : here);
    }
  }
  return script;
}

}  // namespace

std::string CompletionHint(const std::string& shell) {
  if (shell == "bash") return "Load: source <(farkvctl completion bash)";
  if (shell == "zsh") return "Load: source <(farkvctl completion zsh)";
  return "Load: farkvctl completion fish | source";
}

std::string CompletionScript(const CLI::App& app, const std::string& shell) {
  std::vector<Place> places;
  AddPlaces(app, "", places);
  if (shell == "bash") return Bash(places);
  return shell == "zsh" ? Zsh(places) : Fish(places);
}

}  // namespace farkv
