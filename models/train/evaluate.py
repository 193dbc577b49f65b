"""Measures free-running accuracy of an exported reasoner on held-out programs.

An answer counts when the token after `!` is right; a trace counts when every
generated token is.
"""

import argparse
import collections
import json
import os

import torch

import task
from decode import exact, generate_greedy, to_bf16
from export import load_exported


def read_programs(path):
    with open(path) as file:
        return [json.loads(line) for line in file]


def by_length(programs):
    groups = collections.defaultdict(list)
    for program in programs:
        prompt = [task.BOS] + task.encode(program["prompt"])
        key = len(prompt), len(program["completion"])
        groups[key].append((prompt, program))
    return groups


def is_answered(text, program):
    _, mark, rest = text.partition("!")
    return bool(mark) and rest == program["answer"]


def score(model, programs, rounding):
    """Returns (answers right, traces right)."""
    answers = traces = 0
    for (_, length), group in by_length(programs).items():
        prompts = torch.tensor([prompt for prompt, _ in group])
        rows = generate_greedy(model, prompts, length + 1, rounding)
        for row, (_, program) in zip(rows.tolist(), group):
            end = row.index(task.EOS) if task.EOS in row else len(row)
            text = task.decode(row[:end])
            answers += is_answered(text, program)
            traces += row == task.encode(program["completion"]) + [task.EOS]
    return answers, traces


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default=os.path.join(here, "..", "reasoner"))
    parser.add_argument("--limit", type=int, help="programs of each file")
    options = parser.parse_args()
    model = load_exported(options.model)
    for name in ("heldout.jsonl", "heldout_short.jsonl"):
        programs = read_programs(os.path.join(options.model, name))
        programs = programs[:options.limit]
        for label, rounding in (("f32", exact), ("bf16 operands", to_bf16)):
            answers, traces = score(model, programs, rounding)
            print(f"{name} {label}: {answers}/{len(programs)} answers, "
                  f"{traces}/{len(programs)} whole traces right", flush=True)


if __name__ == "__main__":
    main()
