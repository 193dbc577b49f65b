// T2r, the restated trace (models/train/task.py writes the same programs).
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/accuracy_task.h"

namespace farkv::bench {
namespace {

constexpr char kNames[] =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
constexpr int kMinConstants = 4, kMaxConstants = 8;

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

class TraceTask : public AccuracyTask {
 public:
  explicit TraceTask(int num_definitions) : num_definitions_(num_definitions) {}

  const char* model() const override { return "reasoner"; }

  Program Make(ProgramDraws draws) const override {
    const std::string names = draws.Shuffled(kNames);
    const int num_constants =
        kMinConstants + draws.Below(kMaxConstants - kMinConstants + 1);
    std::vector<int> values;
    for (int i = 0; i < num_constants; ++i) values.push_back(draws.Below(10));
    std::vector<Definition> definitions;
    for (int i = 0; i < num_definitions_; ++i) {
      const int defined = num_constants + i;
      const Definition d = {draws.Below(defined), draws.Below(defined),
                            "+-*"[draws.Below(3)]};
      definitions.push_back(d);
      values.push_back(Evaluate(d.op, values[static_cast<size_t>(d.left)],
                                values[static_cast<size_t>(d.right)]));
    }
    return Write(names, values, num_constants, definitions);
  }

 private:
  static Program Write(const std::string& names, const std::vector<int>& values,
                       int num_constants,
                       const std::vector<Definition>& definitions) {
    const auto name = [&](int i) { return names[static_cast<size_t>(i)]; };
    const auto value = [&](int i) { return values[static_cast<size_t>(i)]; };
    ProgramWriter writer;
    for (int i = 0; i < num_constants; ++i) {
      writer.Give(Text(name(i)));
      writer.GiveValue(name(i), value(i));
      writer.Give(";");
    }
    writer.Give("|");
    int target = num_constants;
    for (const Definition& d : definitions) {
      writer.Give({Text(name(target++)) + "=" + name(d.left) + d.op +
                   name(d.right) + ";"});
    }
    writer.Give("?" + Text(name(target - 1)) + "|");
    writer.EndPrompt();
    target = num_constants;
    for (const Definition& d : definitions) {
      writer.Make(Text(name(target)) + name(d.left));
      writer.Recall(name(d.left), value(d.left));
      writer.Make(Text(d.op) + name(d.right));
      writer.Recall(name(d.right), value(d.right));
      writer.Make("=" + Text(name(target)));
      writer.MakeValue(name(target), value(target));
      writer.Make(";");
      ++target;
    }
    writer.Make("!");
    writer.Recall(name(target - 1), value(target - 1));
    return writer.Finish(1);
  }

  const int num_definitions_;
};

}  // namespace

std::unique_ptr<AccuracyTask> MakeTraceTask(int num_definitions) {
  return std::make_unique<TraceTask>(num_definitions);
}

}  // namespace farkv::bench
