#!/usr/bin/env python3
"""Greedy tokens of a running worker against llama.cpp on the same GGUF file.

For five prompts the worker generates greedily; llama.cpp then reads the
worker's tokens one by one and says at each step which token it would have
taken. Where that is another one, the gap between the two in llama.cpp's own
logits shows whether the step was a near-tie: both engines round activations
to 8 bits, in places of their own. Prints one JSON line per prompt.

  bench/peers/greedy.py --model MODEL.gguf --worker 127.0.0.1:7400

With --golden it also writes what tests/integration/real_model_test compares
with; the worker must run with --kv-dtype=f32. llama-cpp-python as for
llama_cpp.py.
"""

import argparse
import json
import os
import subprocess
import sys

# llama_cpp.py beside this file is not the module of that name.
sys.path.pop(0)
import llama_cpp  # noqa: E402
import numpy  # noqa: E402

# Two engines' roundings moved a difference of logits by 0.31 at most, while the
# best token of SmolLM2 leads by 1.9 in the median step, and by less than this
# in 18 of 100 (tests/golden/smollm2.json).
NEAR_TIE = 0.5

PROMPTS = [
    "The capital of France is",
    "def fibonacci(n):\n    ",
    "Water boils at a temperature of",
    "Once upon a time there was a little girl who",
    "The three laws of motion were stated by Isaac Newton. The first law says",
]


def output_of(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    return done.stdout.decode().strip()


def cpu_name():
    with open("/proc/cpuinfo", encoding="ascii") as file:
        for line in file:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return "unknown"


def generate(options, ids):
    command = [options.farkvctl, "generate", "--worker", options.worker,
               "--prompt-ids", ",".join(map(str, ids)),
               "--max-new-tokens", str(options.new_tokens), "-o", "json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)["tokenIds"]


def compare(model, ids, ours):
    """Per step: llama.cpp's own token and the gap to ours in its logits, its
    second choice and the gap to that."""
    model.reset()
    model.eval(ids)
    steps = []
    for token in ours:
        logits = numpy.array(model.scores[model.n_tokens - 1])
        second, best = (int(i) for i in logits.argsort()[-2:])
        steps.append((best, float(logits[best] - logits[token]), second,
                      float(logits[best] - logits[second])))
        model.eval([token])
    return steps


def write_golden(options, prompts):
    """One line per prompt, so that a change shows where it is."""
    head = json.dumps({
        "model": os.path.basename(options.model), "near_tie": options.near_tie,
        "made_with": f"llama-cpp-python {llama_cpp.__version__}"})
    lines = ",\n".join(json.dumps(prompt) for prompt in prompts)
    with open(options.golden, "w", encoding="ascii") as file:
        file.write(f'{head[:-1]}, "prompts": [\n{lines}\n]}}\n')


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    binary = os.path.join(here, "../../build/release/bin/farkvctl")
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--model", required=True, help="a GGUF file")
    parser.add_argument("--worker", required=True, help="host:port")
    parser.add_argument("--farkvctl", default=os.path.normpath(binary))
    parser.add_argument("--new-tokens", type=int, default=64)
    parser.add_argument("--golden", help="file to write the ids to")
    parser.add_argument("--near-tie", type=float, default=NEAR_TIE,
                        help="largest gap in logits that counts as one")
    options = parser.parse_args()
    model = llama_cpp.Llama(model_path=options.model, n_ctx=1024, n_batch=512,
                            logits_all=True, verbose=False)
    explained = True
    golden = []
    for prompt in PROMPTS:
        ids = model.tokenize(prompt.encode(), add_bos=False)
        ours = generate(options, ids)
        steps = compare(model, ids, ours)
        gaps = [gap for (best, gap, *_), token in zip(steps, ours)
                if best != token]
        first = next((i for i, ((best, *_), token) in
                      enumerate(zip(steps, ours)) if best != token),
                     len(ours))
        golden.append({
            "prompt": prompt, "ids": ids, "ours": ours,
            "theirs": [step[0] for step in steps],
            "gaps": [round(step[1], 4) for step in steps],
            "seconds": [step[2] for step in steps],
            "leads": [round(step[3], 4) for step in steps]})
        explained &= all(gap <= options.near_tie for gap in gaps)
        print(json.dumps({
            "bench": "greedy", "case": json.dumps(prompt), "value": first,
            "unit": "tokens equal from the start", "better": "higher",
            "yardstick": {"name": f"llama-cpp-python {llama_cpp.__version__}",
                          "value": len(ours)},
            "ratio": None, "goal": None,
            "met": all(gap <= options.near_tie for gap in gaps),
            "runs": 1, "spread": 0.0,
            "params": {"model": os.path.basename(options.model),
                       "near_tie": options.near_tie},
            "metrics": {"steps": len(ours), "other_token": len(gaps),
                        "gap_at_first": round(gaps[0], 4) if gaps else None,
                        "largest_gap": round(max(gaps), 4) if gaps else None},
            "commit": output_of("git", "-C", here, "describe", "--always",
                                "--dirty", "--abbrev=12"),
            "cpu": cpu_name(),
        }), flush=True)
    if options.golden:
        write_golden(options, golden)
    sys.exit(0 if explained else 1)


if __name__ == "__main__":
    main()
