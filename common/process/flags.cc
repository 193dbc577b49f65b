#include "common/process/flags.h"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <deque>
#include <iostream>
#include <iterator>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/status_macros.h"
#include "common/base/text_checks.h"
#include "common/process/config_text.h"

namespace farkv {
namespace {

struct Flag {
  std::string name;
  std::function<absl::Status(const std::string&)> parse;
  std::function<std::string()> print;
  std::string text;  // as given, when `option` has a result
  CLI::Option* option = nullptr;
};

// Keeps the text that CLI11 reads, for CheckConfigText: the file may be a pipe.
class RecordedConfig final : public CLI::ConfigBase {
 public:
  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override {
    text_.assign(std::istreambuf_iterator<char>(input), {});
    std::istringstream copy(text_);
    return ConfigBase::from_config(copy);
  }
  const std::string& text() const { return text_; }

 private:
  mutable std::string text_;
};

// CLI11 would take the next argument as the value of "--name=".
void AddArgument(const std::string& argument, std::vector<std::string>& all) {
  if (argument.starts_with("--") && argument.ends_with("=")) {
    all.push_back(argument.substr(0, argument.size() - 1));
    all.emplace_back();
  } else {
    all.push_back(argument);
  }
}

absl::Status ParseSwitch(const std::string& text, bool* value) {
  if (text == "true" || text == "1" || text == "on") {
    *value = true;
  } else if (text == "false" || text == "0" || text == "off") {
    *value = false;
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' is neither true nor false"));
  }
  return absl::OkStatus();
}

}  // namespace

std::string EnvironmentName(const std::string& flag) {
  return absl::StrCat(
      "FARKV_", absl::AsciiStrToUpper(absl::StrReplaceAll(flag, {{"-", "_"}})));
}

struct Flags::Impl {
  explicit Impl(const ProgramDescription& description)
      : program(description), app(program.purpose, program.name) {}

  // Values of environment twins, in front of `arguments` so that flags win.
  std::vector<std::string> WithEnvironment(
      const std::vector<std::string>& arguments,
      const Environment& environment);
  absl::Status CheckConfig() const;
  absl::Status Apply();
  int Fail(const std::string& message) const;

  const ProgramDescription program;
  CLI::App app;
  const std::shared_ptr<RecordedConfig> config =
      std::make_shared<RecordedConfig>();
  std::deque<Flag> flags;  // stable addresses
  std::string config_file;
  std::set<std::string> from_environment;
};

Flags::Flags(const ProgramDescription& program)
    : impl_(std::make_unique<Impl>(program)) {
  CLI::App& app = impl_->app;
  app.set_version_flag("--version", program.name + " " + program.version);
  app.config_formatter(impl_->config);
  app.allow_config_extras(CLI::config_extras_mode::error);
  app.set_config("--config", "", "Configuration file (TOML)")->take_last();
  app.footer(
      "Every flag has an environment twin: --log-level is FARKV_LOG_LEVEL.\n"
      "Precedence: flag, environment, configuration file, default.\n"
      "Sizes carry a unit (64GiB), durations too (500ms, 10s); shares lie in "
      "[0, 1].\n"
      "Exit codes: 0 stopped by a signal, 128 and its number by a second one, "
      "1 error, 2 bad flag, variable or file.");
}

Flags::~Flags() = default;

void Flags::Add(const std::string& name,
                std::function<absl::Status(const std::string&)> parse,
                std::function<std::string()> print, const std::string& help) {
  Flag& flag = impl_->flags.emplace_back();
  flag.name = name;
  flag.parse = std::move(parse);
  flag.print = std::move(print);
  flag.option = impl_->app.add_option("--" + name, flag.text, help);
  flag.option->take_last()->default_str(flag.print())->type_name("");
}

void Flags::AddSwitch(const std::string& name, bool* value,
                      const std::string& help) {
  Flag& flag = impl_->flags.emplace_back();
  flag.name = name;
  flag.parse = [value](const std::string& text) {
    return ParseSwitch(text, value);
  };
  flag.print = [value] { return *value ? "true" : "false"; };
  flag.option = impl_->app.add_flag("--" + name, flag.text, help);
  flag.option->take_last()->default_str(flag.print());
}

std::vector<std::string> Flags::Impl::WithEnvironment(
    const std::vector<std::string>& arguments, const Environment& environment) {
  std::vector<std::string> all;
  const auto add = [&](const std::string& name) {
    const char* value = environment(EnvironmentName(name));
    if (value == nullptr) return;
    AddArgument(absl::StrCat("--", name, "=", value), all);
    from_environment.insert(name);
  };
  add("config");
  for (const Flag& flag : flags) add(flag.name);
  for (const std::string& argument : arguments) {
    const std::string name = argument.substr(0, argument.find('='));
    if (name.starts_with("--")) from_environment.erase(name.substr(2));
    AddArgument(argument, all);
  }
  return all;
}

absl::Status Flags::Impl::CheckConfig() const {
  const absl::Status status = CheckConfigText(config->text());
  if (status.ok()) return status;
  return absl::InvalidArgumentError(
      absl::StrCat("--config ", app.get_config_ptr()->as<std::string>(), ", ",
                   status.message()));
}

absl::Status Flags::Impl::Apply() {
  FARKV_RETURN_IF_ERROR(CheckConfig());
  for (Flag& flag : flags) {
    if (flag.option->count() == 0) continue;
    absl::Status status = CheckPrintable(flag.text);
    if (status.ok()) status = flag.parse(flag.text);
    if (status.ok()) continue;
    const std::string source =
        from_environment.contains(flag.name)
            ? absl::StrCat(" (from ", EnvironmentName(flag.name), ")")
            : "";
    return absl::InvalidArgumentError(
        absl::StrCat("--", flag.name, source, ": ", status.message()));
  }
  return absl::OkStatus();
}

int Flags::Impl::Fail(const std::string& message) const {
  std::cerr << program.name << ": " << message << "\nTry '" << program.name
            << " --help'.\n";
  return kUsageError;
}

namespace {

// CLI11 speaks of INI, and of a section as of a key that ends in ".++".
std::string ConfigErrorText(std::string what) {
  static constexpr char kParser[] = "INI was not able to parse ";
  if (what.rfind(kParser, 0) == 0) what = what.substr(sizeof(kParser) - 1);
  return absl::StrCat("--config: unknown key or bad line: ", what,
                      "; keys are the names of flags, without sections");
}

}  // namespace

std::optional<int> Flags::Parse(int argc, const char* const* argv) {
  return Parse(
      std::vector<std::string>(argv + 1, argv + argc),
      [](const std::string& name) { return std::getenv(name.c_str()); });
}

std::optional<int> Flags::Parse(const std::vector<std::string>& arguments,
                                const Environment& environment) {
  std::vector<std::string> all = impl_->WithEnvironment(arguments, environment);
  // CLI11 takes a vector from its end.
  const std::vector<std::string> reversed(all.rbegin(), all.rend());
  try {
    std::vector<std::string> left = reversed;
    impl_->app.parse(std::move(left));
  } catch (const CLI::Success& asked) {  // --help, --version
    return impl_->app.exit(asked);
  } catch (const CLI::ConfigError& error) {
    const absl::Status status = impl_->CheckConfig();
    return impl_->Fail(status.ok() ? ConfigErrorText(error.what())
                                   : std::string(status.message()));
  } catch (const CLI::Error& error) {
    return impl_->Fail(error.what());
  }
  if (absl::Status status = impl_->Apply(); !status.ok()) {
    return impl_->Fail(std::string(status.message()));
  }
  return std::nullopt;
}

std::map<std::string, std::string> Flags::Effective() const {
  std::map<std::string, std::string> values;
  for (const Flag& flag : impl_->flags) values[flag.name] = flag.print();
  return values;
}

}  // namespace farkv
