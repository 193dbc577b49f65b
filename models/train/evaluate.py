"""Measures free-running accuracy of an exported model on unseen programs.

A trace counts when every generated token is right, an answer when what the
program asks for at its end is.
"""

import argparse
import collections
import json
import os

import torch

import task
from decode import exact, generate_greedy, to_bf16
from export import TASKS, load_exported


def read_programs(path):
    with open(path) as file:
        return [json.loads(line) for line in file]


def by_layout(programs):
    """Programs of one task whose prompts and completions are equally long."""
    groups = collections.defaultdict(list)
    for program in programs:
        key = (program.get("task", ""), len(program["prompt"]),
               len(program["completion"]))
        groups[key].append(program)
    return groups


def forced_tokens(module, program):
    text = program.get("forced", task.FREE * len(program["completion"]))
    return [-1 if c == task.FREE else module.ID[c] for c in text]


def score(module, model, programs, rounding):
    """Returns (answers right, traces right)."""
    answers = traces = 0
    prompts = torch.tensor([[task.BOS] + module.encode(p["prompt"])
                            for p in programs])
    forced = torch.tensor([forced_tokens(module, p) for p in programs])
    rows = generate_greedy(model, prompts, forced.shape[1], rounding, forced)
    for row, program in zip(rows.tolist(), programs):
        text, answer = module.decode(row), program["answer"]
        answers += text[len(text) + 1 - 2 * len(answer)::2] == answer
        traces += text == program["completion"]
    return answers, traces


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default=os.path.join(here, "..", "reasoner"))
    parser.add_argument("--limit", type=int, help="programs of each file")
    parser.add_argument("--task", choices=TASKS, default="trace")
    options = parser.parse_args()
    module = TASKS[options.task]
    model = load_exported(options.model)
    for name, _ in module.heldout_files():
        programs = read_programs(os.path.join(options.model, name))
        for (kind, *_), group in by_layout(programs[:options.limit]).items():
            for label, rounding in (("f32", exact), ("bf16 operands", to_bf16)):
                answers, traces = score(module, model, group, rounding)
                print(f"{name} {kind} {label}: {answers}/{len(group)} answers, "
                      f"{traces}/{len(group)} whole traces right", flush=True)


if __name__ == "__main__":
    main()
