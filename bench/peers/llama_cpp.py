#!/usr/bin/env python3
"""Decode and prefill tokens/s of farkv-bench and of llama.cpp's Python bindings.

Both read the same GGUF file, use as many threads and process the same token
ids: a prompt at once, then one token per step (forced, so that neither samples
and both do the same work). Rounds alternate between the two; the ratio is the
median of per-round ratios. Prints the JSON lines of farkv-bench on stdout.

llama-cpp-python must be built for this machine, in a virtual environment:
  CMAKE_ARGS=-DGGML_NATIVE=ON pip install --no-binary llama-cpp-python \
      llama-cpp-python
  <that environment>/bin/python bench/peers/llama_cpp.py --model MODEL.gguf
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time

# This file has the name of the package that it needs.
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path = [path for path in sys.path if os.path.abspath(path) != HERE]
import llama_cpp  # noqa: E402

GOALS = {"prefill": 0.7, "decode": 1.0}
# What idle OpenMP threads need to stop spinning; they would take our cores.
PAUSE_SECONDS = 0.2


class LlamaCpp:
    """The peer, loaded once."""

    def __init__(self, options, tokens):
        self.prompt = tokens[: options.prompt_tokens]
        self.forced = tokens[options.prompt_tokens:]
        self.model = llama_cpp.Llama(
            model_path=options.model,
            n_ctx=len(tokens) + 64,
            n_batch=512,
            n_threads=options.threads,
            n_threads_batch=options.threads,
            flash_attn=options.flash_attention,
            verbose=False,
        )

    def run(self):
        self.model.reset()
        start = time.perf_counter()
        self.model.eval(self.prompt)
        middle = time.perf_counter()
        # As many steps as lie between our first and last token.
        for token in self.forced[:-1]:
            self.model.eval([token])
        end = time.perf_counter()
        time.sleep(PAUSE_SECONDS)
        return {
            "prefill": len(self.prompt) / (middle - start),
            "decode": (len(self.forced) - 1) / (end - middle),
        }


class Farkv:
    """Ours, a process per round; loading is not in its figures."""

    def __init__(self, options, tokens_file):
        self.command = [
            options.farkv_bench, "throughput",
            "--model", options.model,
            "--tokens-file", tokens_file,
            "--prompt-tokens", str(options.prompt_tokens),
            "--new-tokens", str(options.new_tokens),
            "--threads", str(options.threads),
            "--rounds", "1",
        ]
        self.lines = {}

    def run(self):
        done = subprocess.run(self.command, stdout=subprocess.PIPE, check=True)
        for text in done.stdout.splitlines():
            line = json.loads(text)
            self.lines[line["case"]] = line
        return {case: line["value"] for case, line in self.lines.items()}


def spread(values):
    if len(values) < 4:
        return 0.0
    quarters = statistics.quantiles(values, n=4, method="inclusive")
    return (quarters[2] - quarters[0]) / statistics.median(values)


def bench_line(case, options, farkv, ours, theirs):
    ratios = [a[case] / b[case] for a, b in zip(ours, theirs)]
    ratio = statistics.median(ratios)
    line = farkv.lines[case]
    return {
        "bench": "llama_cpp",
        "case": f"{case}-{options.threads}-threads",
        "value": round(statistics.median(run[case] for run in ours), 2),
        "unit": "tokens/s",
        "better": "higher",
        "yardstick": {
            "name": f"llama-cpp-python {llama_cpp.__version__}",
            "value": round(statistics.median(r[case] for r in theirs), 2),
        },
        "ratio": round(ratio, 3),
        "goal": GOALS[case],
        "met": ratio >= GOALS[case],
        "runs": options.rounds,
        "spread": round(spread(ratios), 3),
        "params": {
            "model": os.path.basename(options.model),
            "prompt_tokens": options.prompt_tokens,
            "new_tokens": options.new_tokens,
            "threads": options.threads,
            "kernel": line["params"]["kernel"],
            "quantised_kernel": line["params"]["quantised_kernel"],
            "llama_cpp": llama_cpp.llama_print_system_info().decode().strip(),
            "flash_attention": options.flash_attention,
        },
        "metrics": {},
        "commit": line["commit"],
        "cpu": line["cpu"],
    }


def parse_arguments():
    binary = os.path.join(HERE, "../../build/release/bin/farkv-bench")
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--model", required=True, help="a GGUF file")
    parser.add_argument("--farkv-bench", default=os.path.normpath(binary))
    parser.add_argument("--prompt-tokens", type=int, default=256)
    parser.add_argument("--new-tokens", type=int, default=64)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--flash-attention", action="store_true",
                        help="of the peer")
    return parser.parse_args()


def main():
    options = parse_arguments()
    generator = random.Random(1)
    tokens = [generator.randrange(1000, 30000)
              for _ in range(options.prompt_tokens + options.new_tokens)]
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(" ".join(map(str, tokens)))
        file.flush()
        farkv = Farkv(options, file.name)
        peer = LlamaCpp(options, tokens)
        ours, theirs = [], []
        for index in range(options.rounds + 1):
            order = [(farkv, ours), (peer, theirs)]
            for engine, rates in order if index % 2 == 0 else order[::-1]:
                rates.append(engine.run())
            print(f"round {index}: {ours[-1]} {theirs[-1]}", file=sys.stderr)
        # The first round warmed the file and the caches.
        for case in GOALS:
            line = bench_line(case, options, farkv, ours[1:], theirs[1:])
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
