// T1, T3 and T4 in the form that models/ledger was trained on: registers that
// get a new name with each value, so that a name has one value wherever it
// stands (models/train/ledger.py writes the same programs, T1's six registers
// aside: there are eight in all that were trained).
#include <array>
#include <string>

#include "absl/strings/str_format.h"
#include "bench/accuracy_task.h"

namespace farkv::bench {
namespace {

constexpr char kNames[] =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ$%&~";
constexpr int kNumRegisters = 8, kNumKeyDigits = 3;
constexpr int kNumAccumulators = 6;  // T1
constexpr int kNumLines = 48;
constexpr int kKeySpacing = 4;
constexpr size_t kEventTokens = 16;

// Writes the text of a program and knows what its registers hold.
class LedgerWriter {
 public:
  LedgerWriter(ProgramDraws draws, int spacing, char kind,
               int num_registers = kNumRegisters)
      : draws_(draws),
        spacing_(spacing),
        num_registers_(num_registers),
        names_(draws_.Shuffled(kNames)) {
    writer_.Give(absl::StrFormat("%c%02d|", kind, spacing));
    writer_.EndPrompt();
  }

  void Initialise(int index) {
    Register& reg = registers_[static_cast<size_t>(index)];
    Line(reg, '@', /*is_first=*/true);
  }

  // A checkpoint when one is due, then a line.
  void Update() {
    if (spacing_ > 0 && num_updates_ > 0 && num_updates_ % spacing_ == 0) {
      Checkpoint();
    }
    ++num_updates_;
    Register& reg = AnyRegister();
    Line(reg, reg.name, /*is_first=*/false);
  }

  void StateKey() {
    Give("!");
    for (Register& digit : key_) {
      digit = {NextName(), draws_.Below(10)};
      Give({&digit.name, 1});
      writer_.GiveValue(digit.name, digit.value);
    }
    Give(";");
    key_end_ = writer_.size();
  }

  Program AskKey() {
    Give("?");
    for (const Register& digit : key_) Recall(digit);
    return writer_.Finish(kNumKeyDigits);
  }

  Program AskRegister() {
    Give("?");
    Recall(AnyRegister());
    return writer_.Finish(1);
  }

  size_t tokens_since_key() const { return writer_.size() - key_end_; }

 private:
  struct Register {
    char name = '@';
    int value = 0;
  };

  Register& AnyRegister() {
    return registers_[static_cast<size_t>(draws_.Below(num_registers_))];
  }

  char NextName() { return names_[num_names_++]; }

  void Give(absl::string_view text) { writer_.Give(text); }

  void Recall(const Register& reg) {
    Give({&reg.name, 1});
    writer_.Recall(reg.name, reg.value);
  }

  // `c2+5=k7;`
  void Line(Register& reg, char source, bool is_first) {
    if (is_first) {
      Give("@0");
    } else {
      Recall({source, reg.value});
    }
    const bool minus = draws_.Below(2) == 1;
    const int operand = draws_.Below(10);
    reg.value = (reg.value + (minus ? 10 - operand : operand)) % 10;
    reg.name = NextName();
    Give(absl::StrFormat("%c%d=%c", minus ? '-' : '+', operand, reg.name));
    if (is_first) {
      writer_.GiveValue(reg.name, reg.value);
    } else {
      writer_.MakeValue(reg.name, reg.value);
    }
    Give(";");
  }

  void Checkpoint() {
    Give("#");
    for (const Register& reg : registers_) Recall(reg);
    Give(";");
  }

  ProgramDraws draws_;
  const int spacing_, num_registers_;
  const std::string names_;
  ProgramWriter writer_;
  std::array<Register, kNumRegisters> registers_;
  std::array<Register, kNumKeyDigits> key_;
  size_t num_names_ = 0, key_end_ = 0;
  int num_updates_ = 0;
};

class AccumulatorTask : public AccuracyTask {
 public:
  explicit AccumulatorTask(int num_lines) : num_lines_(num_lines) {}
  const char* model() const override { return "ledger"; }
  Program Make(ProgramDraws draws) const override {
    LedgerWriter writer(draws, /*spacing=*/0, '#', kNumAccumulators);
    for (int i = 0; i < kNumAccumulators; ++i) writer.Initialise(i);
    for (int i = kNumAccumulators; i < num_lines_; ++i) writer.Update();
    return writer.AskRegister();
  }

 private:
  const int num_lines_;
};

class RegisterTask : public AccuracyTask {
 public:
  explicit RegisterTask(int spacing) : spacing_(spacing) {}
  const char* model() const override { return "ledger"; }
  Program Make(ProgramDraws draws) const override {
    LedgerWriter writer(draws, spacing_, '#');
    for (int i = 0; i < kNumRegisters; ++i) writer.Initialise(i);
    for (int i = 0; i < kNumLines; ++i) writer.Update();
    return writer.AskRegister();
  }

 private:
  const int spacing_;
};

class FactTask : public AccuracyTask {
 public:
  explicit FactTask(int num_events) : num_events_(num_events) {}
  const char* model() const override { return "ledger"; }
  Program Make(ProgramDraws draws) const override {
    LedgerWriter writer(draws, kKeySpacing, '!');
    writer.Initialise(0);
    writer.StateKey();
    for (int i = 1; i < kNumRegisters; ++i) writer.Initialise(i);
    const size_t tokens = kEventTokens * static_cast<size_t>(num_events_);
    while (writer.tokens_since_key() < tokens) writer.Update();
    return writer.AskKey();
  }

 private:
  const int num_events_;
};

}  // namespace

std::unique_ptr<AccuracyTask> MakeAccumulatorTask(int num_lines) {
  return std::make_unique<AccumulatorTask>(num_lines);
}

std::unique_ptr<AccuracyTask> MakeRegisterTask(int spacing) {
  return std::make_unique<RegisterTask>(spacing);
}

std::unique_ptr<AccuracyTask> MakeFactTask(int num_events) {
  return std::make_unique<FactTask>(num_events);
}

}  // namespace farkv::bench
