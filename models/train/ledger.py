"""The ledger task: registers that only read themselves (T3), a fact stated once
(T4).

A line is eight tokens, `c2+5=k7;`: the register that had the name c and the
value 2 gets the name k and the value 7.  Names are never used twice, so a name
has one value wherever it is restated.  The digits behind names are generated,
all other tokens are forced, and so are the first lines, `@0+5=c5;`, and the line
that states the fact.  A checkpoint `#c4k7...;` restates all registers.
The end is `?` and a name, then its value.  Arithmetic is modulo 10.
"""

import string

import numpy as np

from task import BOS, ID as TRACE_ID, PAD, VOCAB_SIZE
from task import EOS, SPECIALS  # noqa: F401
from task import FREE, HELDOUT_STREAM, TRAIN_STREAM, rng_for  # noqa: F401

# The characters of the other task keep their ids, so that training can begin
# with its weights.
EXTRA = "#@$%&~"
ID = {**TRACE_ID, **{c: PAD + 1 + i for i, c in enumerate(EXTRA)}}
CHARACTER = {i: c for c, i in ID.items()}
NAMES = string.ascii_letters + "$%&~"
NAME_IDS = np.array([ID[c] for c in NAMES])
DIGIT0, PLUS = ID["0"], ID["+"]
assert ID["-"] == PLUS + 1 and max(ID.values()) < VOCAB_SIZE

NUM_REGISTERS, NUM_KEY_DIGITS = 8, 3
SPACINGS = (0, 16, 8, 4)  # lines between checkpoints, 0 for none
SPACING_SHARES = (0.15, 0.15, 0.2, 0.5)  # recalls are densest with the last
KEY_SPACING = 4
FIRST_SIZE, LAST_SIZE = 16, len(NAMES) - NUM_REGISTERS
LAST_KEY_SIZE = LAST_SIZE - NUM_KEY_DIGITS
PROMPT_LENGTH = 5
# Lines behind the first eight that a fact and 15 events of 16 tokens need.
HELDOUT_KEY_LINES = 16
HELDOUT_EACH = 40


def decode(ids):
    return "".join(CHARACTER.get(i, "") for i in ids)


def encode(text):
    return [ID[c] for c in text]


def header(spacing, has_key):
    return [BOS] + encode(f"{'!' if has_key else '#'}{spacing:02}|")


class Ledger:
    """A batch of programs of one layout, written column by column."""

    def __init__(self, rng, batch):
        self.rng, self.batch = rng, batch
        self.rows = np.arange(batch)
        self.columns, self.made = [], []
        order = np.argsort(rng.random((batch, len(NAMES))), axis=1)
        self.names = NAME_IDS[order]
        self.num_names = 0
        self.current = np.zeros((batch, NUM_REGISTERS), dtype=np.int64)
        self.values = np.zeros((batch, NUM_REGISTERS), dtype=np.int64)

    def put(self, *columns):
        """Forced tokens: characters or one id per row."""
        for c in columns:
            self.columns.append(
                np.full(self.batch, ID[c]) if isinstance(c, str) else c)

    def put_given(self, values):
        self.columns.append(values + DIGIT0)

    def put_made(self, values):
        self.made.append(len(self.columns))
        self.columns.append(values + DIGIT0)

    def new_name(self):
        self.num_names += 1
        return self.names[:, self.num_names - 1]

    def line(self, register, source, old, put_value):
        minus = self.rng.integers(0, 2, self.batch)
        operand = self.rng.integers(0, 10, self.batch)
        new = np.where(minus, old - operand, old + operand) % 10
        name = self.new_name()
        self.put(source)
        put_value(old)
        self.put(minus + PLUS, operand + DIGIT0, "=", name)
        put_value(new)
        self.put(";")
        self.current[self.rows, register] = name
        self.values[self.rows, register] = new

    def initialise(self, register):
        self.line(np.full(self.batch, register), "@",
                  np.zeros(self.batch, dtype=np.int64), self.put_given)

    def update(self):
        register = self.rng.integers(0, NUM_REGISTERS, self.batch)
        self.line(register, self.current[self.rows, register],
                  self.values[self.rows, register], self.put_made)

    def checkpoint(self):
        self.put("#")
        for register in range(NUM_REGISTERS):
            self.put(self.current[:, register].copy())
            self.put_made(self.values[:, register].copy())
        self.put(";")

    def state_key(self):
        """A digit for each of three names, stated here and nowhere else."""
        names = [self.new_name() for _ in range(NUM_KEY_DIGITS)]
        digits = self.rng.integers(0, 10, (NUM_KEY_DIGITS, self.batch))
        self.put("!")
        for name, digit in zip(names, digits):
            self.put(name)
            self.put_given(digit)
        self.put(";")
        return names, digits

    def ask(self, names, digits):
        self.put("?")
        for name, digit in zip(names, digits):
            self.put(name)
            self.put_made(digit)

    def ask_register(self):
        register = self.rng.integers(0, NUM_REGISTERS, self.batch)
        self.ask([self.current[self.rows, register]],
                 [self.values[self.rows, register]])


def generate(rng, batch, num_lines, spacing, has_key):
    """Token ids [batch, length] and the positions that are generated."""
    ledger = Ledger(rng, batch)
    ledger.columns += [np.full(batch, t) for t in header(spacing, has_key)]
    for register in range(NUM_REGISTERS):
        ledger.initialise(register)
        if has_key and register == 0:
            key = ledger.state_key()
    for line in range(num_lines):
        if spacing and line and line % spacing == 0:
            ledger.checkpoint()
        ledger.update()
    if has_key:
        ledger.ask(*key)
    else:
        ledger.ask_register()
    return np.stack(ledger.columns, axis=1), np.array(ledger.made)


def training_batch(rng, num_tokens, num_lines):
    """About `num_tokens` tokens of programs with as many lines."""
    has_key = rng.random() < 0.25
    spacing = KEY_SPACING if has_key else int(rng.choice(SPACINGS,
                                                           p=SPACING_SHARES))
    if has_key:
        num_lines = min(num_lines, LAST_KEY_SIZE)
    length = 8 * (NUM_REGISTERS + num_lines)
    if spacing:
        length += 18 * (num_lines // spacing)
    return generate(rng, max(1, round(num_tokens / length)), num_lines,
                    spacing, has_key)


def heldout_files():
    """Unseen programs by file name; they depend on nothing but their stream."""
    rng = rng_for(HELDOUT_STREAM, 2)
    layouts = [(f"T3-{spacing or 'none'}", LAST_SIZE, spacing, False)
               for spacing in SPACINGS]
    layouts.append(("T4-15", HELDOUT_KEY_LINES, KEY_SPACING, True))
    lines = []
    for name, num_lines, spacing, has_key in layouts:
        ids, made = generate(rng, HELDOUT_EACH, num_lines, spacing, has_key)
        # The answers are the last values, each behind its name.
        num_answers = NUM_KEY_DIGITS if has_key else 1
        for row in ids.tolist():
            text = decode(row[PROMPT_LENGTH:])
            forced = list(text)
            for position in made:
                forced[position - PROMPT_LENGTH] = FREE
            lines.append({"task": name, "prompt": decode(row[:PROMPT_LENGTH]),
                          "completion": text, "forced": "".join(forced),
                          "answer": text[-1 - 2 * (num_answers - 1)::2]})
    yield "heldout.jsonl", lines
