// Command-line flags of a program, with their environment twins and a
// configuration file. Precedence: flag > environment > file > default (OPS 2).
//
//   Flags flags({"farkv-memory-node", "Serves ...", SoftwareVersion()});
//   flags.AddBytes("t1-bytes", &options.t1_bytes, "Size of the pool");
//   if (std::optional<int> code = flags.Parse(argc, argv)) return *code;
//
// Goals: one table that names every flag; values are copied once into the
// caller's options struct; every error names the flag, where its value came
// from and what was wrong with it. An unknown flag, an unknown key of the file,
// a bare number where a unit is needed, control characters and what is not
// UTF-8 are errors. Non-goals: subcommands,
// positional arguments.
//
// The environment twin of "t1-bytes" is FARKV_T1_BYTES. The file (--config) is
// TOML: `t1-bytes = "64GiB"`. Thread-compatible; used by main alone.
#ifndef FARKV_COMMON_PROCESS_FLAGS_H_
#define FARKV_COMMON_PROCESS_FLAGS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace farkv {

struct ProgramDescription {
  std::string name;     // as typed: "farkv-memory-node"
  std::string purpose;  // one sentence for --help
  std::string version;
};

class Flags {
 public:
  // Exit code of a bad flag, variable or file (OPS 2).
  static constexpr int kUsageError = 2;
  // Value of an environment variable, or nullptr.
  using Environment = std::function<const char*(const std::string&)>;

  explicit Flags(const ProgramDescription& program);
  ~Flags();
  Flags(const Flags&) = delete;
  Flags& operator=(const Flags&) = delete;

  struct DurationBounds {
    absl::Duration shortest, longest;
    std::string why;  // what goes wrong outside, for the error
  };

  // Each takes the default from `*value` and writes it in Parse; `value` must
  // outlive the last Parse or Effective. Names are without dashes in front.
  void AddText(const std::string& name, std::string* value,
               const std::string& help);
  // As CheckName (flag_checks.h) wants it.
  void AddName(const std::string& name, std::string* value,
               const std::string& help);
  // Comma-separated; an empty text is an empty list, an empty element or one
  // that comes twice an error.
  void AddTexts(const std::string& name, std::vector<std::string>* value,
                const std::string& help);
  // One of `choices`.
  void AddChoice(const std::string& name, std::string* value,
                 const std::vector<std::string>& choices,
                 const std::string& help);
  // "--name", "--name=false".
  void AddSwitch(const std::string& name, bool* value, const std::string& help);
  void AddInteger(const std::string& name, int64_t* value, int64_t minimum,
                  int64_t maximum, const std::string& help);
  // "64GiB".
  void AddBytes(const std::string& name, uint64_t* value,
                const std::string& help);
  // "500ms".
  void AddDuration(const std::string& name, absl::Duration* value,
                   const DurationBounds& bounds, const std::string& help);
  // A decimal in [0, 1], held in 1/10,000.
  void AddRatio(const std::string& name, int32_t* value,
                const std::string& help);
  // The same in [0.0001, 1].
  void AddPositiveRatio(const std::string& name, int32_t* value,
                        const std::string& help);
  // "host:port", "[::1]:port"; port 0 asks for any free one.
  void AddAddress(const std::string& name, std::string* value,
                  const std::string& help);
  // A list, as AddTexts, of addresses to connect to: "host:port", not port 0.
  void AddPeers(const std::string& name, std::vector<std::string>* value,
                const std::string& help);
  // Anything else: `parse` reads a given text, `print` shows the value.
  void Add(const std::string& name,
           std::function<absl::Status(const std::string&)> parse,
           std::function<std::string()> print, const std::string& help);

  // Nothing: go on. A number: exit with it; help, version or the error has
  // been printed (errors to stderr).
  std::optional<int> Parse(int argc, const char* const* argv);
  std::optional<int> Parse(const std::vector<std::string>& arguments,
                           const Environment& environment);

  // The values in effect by flag name, as text that the flag would take.
  std::map<std::string, std::string> Effective() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// "t1-bytes" -> "FARKV_T1_BYTES".
std::string EnvironmentName(const std::string& flag);

}  // namespace farkv

#endif  // FARKV_COMMON_PROCESS_FLAGS_H_
