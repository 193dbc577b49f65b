// T2r, the restated trace (models/train/task.py writes the same programs), and
// T2 in the same form, because that is what models/reasoner knows: its operands
// are as far apart as ALGORITHMS 14.2 says, and only values are generated.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/accuracy_task.h"

namespace farkv::bench {
namespace {

constexpr char kTraceNames[] =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
constexpr int kMinConstants = 4, kMaxConstants = 8;
// Of T2: the lines that stand in the prompt with their values, and how far back
// a left operand is at least.
constexpr int kNumFirstLines = 5, kLeastDistance = 5;

struct Definition {
  int left = 0, right = 0;  // indices of names
  char op = '+';
};

int Evaluate(char op, int left, int right) {
  const int result = op == '+'   ? left + right
                     : op == '-' ? left - right + 10
                                 : left * right;
  return result % 10;
}

std::string Text(char c) { return std::string(1, c); }

// Names, what they are worth, and from what: constants come first.
struct Trace {
  std::string names;
  std::vector<int> values;
  int num_constants = 0;
  std::vector<Definition> definitions;

  int num_defined() const { return static_cast<int>(values.size()); }
  char name(int i) const { return names[static_cast<size_t>(i)]; }
  int value(int i) const { return values[static_cast<size_t>(i)]; }
  void Define(const Definition& d) {
    definitions.push_back(d);
    values.push_back(Evaluate(d.op, value(d.left), value(d.right)));
  }
};

Trace BeginTrace(std::string names, int num_constants, ProgramDraws& draws) {
  Trace trace;
  trace.names = std::move(names);
  trace.num_constants = num_constants;
  for (int i = 0; i < num_constants; ++i) {
    trace.values.push_back(draws.Below(10));
  }
  return trace;
}

void WritePrompt(const Trace& trace, ProgramWriter& writer) {
  for (int i = 0; i < trace.num_constants; ++i) {
    writer.Give(Text(trace.name(i)));
    writer.GiveValue(trace.name(i), trace.value(i));
    writer.Give(";");
  }
  writer.Give("|");
  int target = trace.num_constants;
  for (const Definition& d : trace.definitions) {
    writer.Give(Text(trace.name(target++)) + "=" + trace.name(d.left) + d.op +
                trace.name(d.right) + ";");
  }
  writer.Give("?" + Text(trace.name(target - 1)) + "|");
  writer.EndPrompt();
}

// What is no value is generated, or forced.
Program WriteTrace(const Trace& trace, bool is_forced) {
  ProgramWriter writer;
  WritePrompt(trace, writer);
  const auto put = [&](const std::string& text) {
    is_forced ? writer.Give(text) : writer.Make(text);
  };
  const auto recall = [&](int i) {
    writer.Recall(trace.name(i), trace.value(i));
  };
  int target = trace.num_constants;
  for (const Definition& d : trace.definitions) {
    put(Text(trace.name(target)) + trace.name(d.left));
    recall(d.left);
    put(Text(d.op) + trace.name(d.right));
    recall(d.right);
    put("=" + Text(trace.name(target)));
    writer.MakeValue(trace.name(target), trace.value(target));
    put(";");
    ++target;
  }
  put("!");
  recall(target - 1);
  return writer.Finish(1);
}

class RestatedTraceTask : public AccuracyTask {
 public:
  explicit RestatedTraceTask(int num_definitions)
      : num_definitions_(num_definitions) {}
  const char* model() const override { return "reasoner"; }
  Program Make(ProgramDraws draws) const override {
    std::string names = draws.Shuffled(kTraceNames);
    const int num_constants =
        kMinConstants + draws.Below(kMaxConstants - kMinConstants + 1);
    Trace trace = BeginTrace(std::move(names), num_constants, draws);
    for (int i = 0; i < num_definitions_; ++i) {
      const int defined = trace.num_defined();
      trace.Define(
          {draws.Below(defined), draws.Below(defined), "+-*"[draws.Below(3)]});
    }
    return WriteTrace(trace, /*is_forced=*/false);
  }

 private:
  const int num_definitions_;
};

class TraceTask : public AccuracyTask {
 public:
  explicit TraceTask(int num_lines) : num_lines_(num_lines) {}
  const char* model() const override { return "reasoner"; }
  Program Make(ProgramDraws draws) const override {
    Trace trace =
        BeginTrace(draws.Shuffled(kTraceNames), kNumFirstLines, draws);
    while (trace.num_defined() < num_lines_) {
      const int line = trace.num_defined();
      const int left = draws.Below(line - kLeastDistance + 1);
      const bool is_any = draws.Below(2) == 1;
      trace.Define({left, draws.Below(is_any ? line : kNumFirstLines), '+'});
    }
    return WriteTrace(trace, /*is_forced=*/true);
  }

 private:
  const int num_lines_;
};

}  // namespace

std::unique_ptr<AccuracyTask> MakeRestatedTraceTask(int num_definitions) {
  return std::make_unique<RestatedTraceTask>(num_definitions);
}

std::unique_ptr<AccuracyTask> MakeTraceTask(int num_lines) {
  return std::make_unique<TraceTask>(num_lines);
}

}  // namespace farkv::bench
