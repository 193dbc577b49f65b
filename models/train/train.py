"""Trains a model on one task, on one core within a time budget.

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

from export import TASKS, load_exported
from model import Reasoner
from optimizer import Optimizer

TOKENS_PER_STEP = 6144
WARMUP_STEPS, DECAY_START = 100, 0.6
GROW_AT, ACCURACY_WINDOW = 0.985, 10
SAVE_SECONDS, LOG_STEPS = 60, 25


def keep_freed_memory():
    """Large tensors would otherwise be mapped and zeroed anew at each step."""
    libc = ctypes.CDLL("libc.so.6")
    m_trim_threshold, m_mmap_max = -1, -4
    libc.mallopt(m_mmap_max, 0)
    libc.mallopt(m_trim_threshold, 2**31 - 1)


def rate_share(step, done):
    """Share of the peak learning rate, `done` being the share of the budget."""
    warm = min(1.0, (step + 1) / WARMUP_STEPS)
    if done < DECAY_START:
        return warm
    rest = min(1.0, (done - DECAY_START) / (1 - DECAY_START))
    return warm * max(0.005, 0.5 * (1 + math.cos(math.pi * rest)))


class Curriculum:
    """Lengthens the programs each time the longest ones are mastered."""

    def __init__(self, longest, last):
        self.longest, self.last = longest, last
        self.recent = []

    def pick(self, rng):
        if rng.random() < 0.75:
            return self.longest
        return int(rng.integers(2, self.longest + 1))

    def report(self, size, accuracy):
        if size != self.longest:
            return
        self.recent = (self.recent + [accuracy])[-ACCURACY_WINDOW:]
        full = len(self.recent) == ACCURACY_WINDOW
        if full and sum(self.recent) / ACCURACY_WINDOW > GROW_AT:
            self.grow()

    def grow(self):
        if self.longest < self.last:
            longer = self.longest + max(1, self.longest // 3)
            self.longest = min(self.last, longer)
            self.recent = []


def train_step(model, optimizer, batch):
    """One update; returns loss, token accuracy and program accuracy."""
    ids, learnt = (torch.from_numpy(part) for part in batch)
    first = int(learnt[0]) - 1
    logits = model(ids[:, :-1], first)[:, learnt - 1 - first]
    targets = ids[:, learnt]
    loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    right = logits.detach().argmax(-1) == targets
    return (loss.item(), right.float().mean().item(),
            right.all(1).float().mean().item())


class Log:
    """Prints averages over the steps since the last line."""

    def __init__(self):
        self.results = []

    def add(self, step, minutes, longest, result):
        self.results.append(result)
        if len(self.results) < LOG_STEPS:
            return
        means = (sum(r) / LOG_STEPS for r in zip(*self.results))
        loss, tokens, programs = means
        print(f"step {step} min {minutes:.1f} size {longest} loss {loss:.5f} "
              f"token {tokens:.5f} program {programs:.3f}", flush=True)
        self.results = []


class Run:
    """What a checkpoint holds: weights, optimizer state and progress."""

    def __init__(self, options):
        torch.manual_seed(options.seed)
        self.path = os.path.join(options.out, "checkpoint.pt")
        self.model = (load_exported(options.start).train()
                      if options.start else Reasoner())
        self.optimizer = Optimizer(self.model)
        self.step, self.elapsed = 0, 0.0
        self.task = TASKS[options.task]
        self.curriculum = Curriculum(self.task.FIRST_SIZE, self.task.LAST_SIZE)
        if options.resume:
            self.load(options.resume)
        self.rng = self.task.rng_for(self.task.TRAIN_STREAM, options.seed + self.step)

    def save(self):
        state = {"model": self.model.state_dict(),
                 "optimizer": self.optimizer.state_dict(), "step": self.step,
                 "elapsed": self.elapsed, "longest": self.curriculum.longest}
        torch.save(state, self.path + ".part")
        os.replace(self.path + ".part", self.path)

    def load(self, path):
        state = torch.load(path)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.step, self.elapsed = state["step"], state["elapsed"]
        self.curriculum.longest = state["longest"]

    def advance(self, done):
        if done >= DECAY_START and self.curriculum.longest < self.task.LAST_SIZE:
            self.curriculum.grow()
        self.optimizer.set_rate(rate_share(self.step, done))
        size = self.curriculum.pick(self.rng)
        batch = self.task.training_batch(self.rng, TOKENS_PER_STEP, size)
        result = train_step(self.model, self.optimizer, batch)
        self.curriculum.report(size, result[1])
        self.step += 1
        return result


def train(run, budget):
    log = Log()
    start = time.monotonic() - run.elapsed
    saved = run.elapsed
    while run.elapsed < budget:
        result = run.advance(run.elapsed / budget)
        run.elapsed = time.monotonic() - start
        log.add(run.step, run.elapsed / 60, run.curriculum.longest, result)
        if run.elapsed - saved > SAVE_SECONDS:
            run.save()
            saved = run.elapsed
    run.save()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--task", choices=TASKS, default="trace")
    parser.add_argument("--minutes", type=float, default=65)
    parser.add_argument("--out", required=True, help="folder for checkpoints")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--start", help="model folder whose weights to begin with")
    parser.add_argument("--resume", help="checkpoint to go on from")
    options = parser.parse_args()
    os.makedirs(options.out, exist_ok=True)
    keep_freed_memory()
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    train(Run(options), options.minutes * 60)


if __name__ == "__main__":
    main()
