"""Prints how far the values of an exported model spread, which is what VaSE
ranks rows by: a histogram of max - min over a value's channels, and the share of
the rows with the largest ranges that lie in the prompt.
"""

import argparse
import os

import numpy as np
import torch

import task
from decode import Decoder
from evaluate import read_programs
from export import TASKS, load_exported

BINS = 10
TOP_SHARE = 0.25  # VaSE keeps a quarter of its budget for large ranges


def ranges_of(module, model, program):
    """[layer, head, position] of the whole text, and the prompt's length."""
    prompt = [task.BOS] + module.encode(program["prompt"])
    decoder = Decoder(model)
    decoder.logits(torch.tensor([prompt + module.encode(program["completion"])]))
    values = torch.stack([v[0] for _, v in decoder.cache])
    return (values.amax(-1) - values.amin(-1)).numpy(), len(prompt)


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default=os.path.join(here, "..", "reasoner"))
    parser.add_argument("--task", choices=TASKS, default="trace")
    parser.add_argument("--limit", type=int, default=20, help="programs")
    options = parser.parse_args()
    model = load_exported(options.model)
    path = os.path.join(options.model, "heldout.jsonl")
    everything, in_top, in_text = [], [], []
    for program in read_programs(path)[:options.limit]:
        ranges, prompt = ranges_of(TASKS[options.task], model, program)
        count = round(TOP_SHARE * ranges.shape[2])
        top = np.argsort(-ranges, axis=2)[:, :, :count]
        in_top.append((top < prompt).mean())
        in_text.append(prompt / ranges.shape[2])
        everything.append(ranges.ravel())
    everything = np.concatenate(everything)
    counts, edges = np.histogram(everything, bins=BINS)
    median = np.median(everything)
    print("range of values: " + ", ".join(
        f"to {edge:.2f} {100 * count / everything.size:.1f} %"
        for edge, count in zip(edges[1:], counts)) +
        f"; median {median:.2f}, largest {everything.max() / median:.1f} x")
    print(f"the prompt is {100 * np.mean(in_text):.0f} % of the rows and takes "
          f"{100 * np.mean(in_top):.0f} % of the quarter with the largest "
          "ranges")


if __name__ == "__main__":
    main()
