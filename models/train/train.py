"""Trains the reasoner on one core within a time budget.

The learning rate and the final length follow elapsed time, so a run always
finishes whatever the speed of the machine.
"""

import argparse
import ctypes
import math
import os
import time

import torch
from torch.nn import functional as F

import task
from model import Reasoner

TOKENS_PER_STEP = 6144
PEAK_LR, WARMUP_STEPS, DECAY_START = 3e-3, 100, 0.6
FIRST_S, LAST_S, GROW_AT, ACCURACY_WINDOW = 3, 44, 0.985, 10
SAVE_SECONDS = 90


def keep_freed_memory():
    """Large tensors would otherwise be mapped and zeroed anew at each step."""
    libc = ctypes.CDLL("libc.so.6")
    m_trim_threshold, m_mmap_max = -1, -4
    libc.mallopt(m_mmap_max, 0)
    libc.mallopt(m_trim_threshold, 2**31 - 1)


def make_optimizer(model):
    decayed = [p for p in model.parameters() if p.dim() >= 2]
    norms = [p for p in model.parameters() if p.dim() < 2]
    groups = [{"params": decayed, "weight_decay": 0.05},
              {"params": norms, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=PEAK_LR, betas=(0.9, 0.98))


def learning_rate(step, done):
    warm = min(1.0, (step + 1) / WARMUP_STEPS)
    if done < DECAY_START:
        return PEAK_LR * warm
    rest = min(1.0, (done - DECAY_START) / (1 - DECAY_START))
    return PEAK_LR * warm * max(0.005, 0.5 * (1 + math.cos(math.pi * rest)))


class Curriculum:
    """Lengthens the programs each time the longest ones are mastered."""

    def __init__(self, longest=FIRST_S):
        self.longest = longest
        self.recent = []

    def pick(self, rng):
        if rng.random() < 0.75:
            return self.longest
        return int(rng.integers(2, self.longest + 1))

    def report(self, num_definitions, accuracy):
        if num_definitions != self.longest:
            return
        self.recent = (self.recent + [accuracy])[-ACCURACY_WINDOW:]
        full = len(self.recent) == ACCURACY_WINDOW
        if full and sum(self.recent) / ACCURACY_WINDOW > GROW_AT:
            self.grow()

    def grow(self):
        if self.longest < LAST_S:
            self.longest = min(LAST_S, self.longest + max(1, self.longest // 3))
            self.recent = []


def train_step(model, optimizer, rng, num_definitions):
    """One update; returns loss, token accuracy and program accuracy."""
    num_constants = task.random_num_constants(rng)
    first = task.prompt_length(num_constants, num_definitions) - 1
    length = first + 1 + 10 * num_definitions + 3
    batch = max(1, round(TOKENS_PER_STEP / length))
    ids = torch.from_numpy(
        task.generate(rng, batch, num_constants, num_definitions))
    logits = model(ids[:, :-1], first)
    targets = ids[:, first + 1:]
    loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    right = logits.detach().argmax(-1) == targets
    return (loss.item(), right.float().mean().item(),
            right.all(1).float().mean().item())


def save(path, model, optimizer, step, elapsed, longest):
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(),
                "step": step, "elapsed": elapsed, "longest": longest},
               path + ".part")
    os.replace(path + ".part", path)


def resume(path, model, optimizer):
    state = torch.load(path)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return state["step"], state["elapsed"], state["longest"]


def run(options):
    torch.manual_seed(options.seed)
    model = Reasoner()
    optimizer = make_optimizer(model)
    step, offset, longest = 0, 0.0, FIRST_S
    if options.resume:
        step, offset, longest = resume(options.resume, model, optimizer)
    rng = task.rng_for(task.TRAIN_STREAM, options.seed + step)
    curriculum = Curriculum(longest)
    start = saved = time.monotonic()
    path = os.path.join(options.out, "checkpoint.pt")
    budget = options.minutes * 60
    totals = [0.0, 0.0, 0.0, 0]
    elapsed = offset
    while elapsed < budget:
        done = elapsed / budget
        if done >= DECAY_START and curriculum.longest < LAST_S:
            curriculum.grow()
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, done)
        num_definitions = curriculum.pick(rng)
        result = train_step(model, optimizer, rng, num_definitions)
        curriculum.report(num_definitions, result[1])
        step += 1
        totals = [a + b for a, b in zip(totals, result + (1,))]
        elapsed = offset + time.monotonic() - start
        if step % 25 == 0:
            loss, tokens, programs, count = totals
            print(f"step {step} min {elapsed / 60:.1f} S {curriculum.longest} "
                  f"loss {loss / count:.5f} token {tokens / count:.5f} "
                  f"program {programs / count:.3f}", flush=True)
            totals = [0.0, 0.0, 0.0, 0]
        if time.monotonic() - saved > SAVE_SECONDS:
            save(path, model, optimizer, step, elapsed, curriculum.longest)
            saved = time.monotonic()
    save(path, model, optimizer, step, elapsed, curriculum.longest)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=65)
    parser.add_argument("--out", required=True, help="folder for checkpoints")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--resume", help="checkpoint to go on from")
    options = parser.parse_args()
    os.makedirs(options.out, exist_ok=True)
    keep_freed_memory()
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    run(options)


if __name__ == "__main__":
    main()
