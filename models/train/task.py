"""The restated-trace task: vocabulary, program generator, token layout.

A prompt is constants `c5;`, then `|`, definitions `k=c+d;`, then `?z|`.  The
completion restates each definition with its recalled values, `kc5+d3=k8;`, and
ends with `!` and the value of z.  All arithmetic is modulo 10.
"""

import string

import numpy as np

CHARS = string.ascii_letters + string.digits + ";|=+-*?!"
BOS, EOS, PAD = len(CHARS), len(CHARS) + 1, len(CHARS) + 2
SPECIALS = {"<bos>": BOS, "<eos>": EOS, "<pad>": PAD}
VOCAB_SIZE = 80  # 73 used; a multiple of 16 suits the kernels

NUM_NAMES = 52
MIN_CONSTANTS, MAX_CONSTANTS = 4, 8
MAX_DEFINITIONS = NUM_NAMES - MAX_CONSTANTS
FIRST_SIZE, LAST_SIZE = 3, 44  # definitions
TRAIN_STREAM, HELDOUT_STREAM = 1, 2
HELDOUT = (("heldout.jsonl", 200, 44), ("heldout_short.jsonl", 50, 20))
FREE = "_"  # in "forced" of a program: the model generates this one

ID = {c: i for i, c in enumerate(CHARS)}
DIGIT0, OPERATOR0 = ID["0"], ID["+"]


def rng_for(stream, seed):
    """Streams never share a generator, so held-out data is not trained on."""
    return np.random.default_rng([stream, seed])


def decode(ids):
    return "".join(CHARS[i] for i in ids if i < len(CHARS))


def encode(text):
    return [ID[c] for c in text]


def prompt_length(num_constants, num_definitions):
    return 1 + 3 * num_constants + 1 + 6 * num_definitions + 3


def _evaluate(constants, left, right, operators):
    batch, num_constants = constants.shape
    values = np.concatenate([constants, np.zeros_like(left)], axis=1)
    rows = np.arange(batch)
    for t in range(left.shape[1]):
        a, b = values[rows, left[:, t]], values[rows, right[:, t]]
        results = np.stack([a + b, a - b, a * b], axis=1) % 10
        values[:, num_constants + t] = results[rows, operators[:, t]]
    return values


def _columns(batch, *columns):
    """Stacks token columns (arrays or one fixed id) into runs per item."""
    shape = next(c.shape for c in columns if isinstance(c, np.ndarray))
    full = [np.broadcast_to(c, shape) for c in columns]
    return np.stack(full, axis=-1).reshape(batch, -1)


def generate(rng, batch, num_constants, num_definitions):
    """Returns token ids [batch, length]; all rows have the same layout."""
    total = num_constants + num_definitions
    names = np.argsort(rng.random((batch, NUM_NAMES)), axis=1)[:, :total]
    constants = rng.integers(0, 10, (batch, num_constants))
    defined = num_constants + np.arange(num_definitions)
    left = rng.integers(0, defined, (batch, num_definitions))
    right = rng.integers(0, defined, (batch, num_definitions))
    operators = rng.integers(0, 3, (batch, num_definitions))
    values = _evaluate(constants, left, right, operators)

    digits = values + DIGIT0
    operator_ids = operators + OPERATOR0
    take = np.take_along_axis
    left_names, right_names = take(names, left, 1), take(names, right, 1)
    left_digits, right_digits = take(digits, left, 1), take(digits, right, 1)
    targets, results = names[:, num_constants:], digits[:, num_constants:]
    last_name, answer = targets[:, -1:], results[:, -1:]
    semi, equals = ID[";"], ID["="]
    return np.concatenate([
        np.full((batch, 1), BOS),
        _columns(batch, names[:, :num_constants], digits[:, :num_constants],
                 semi),
        np.full((batch, 1), ID["|"]),
        _columns(batch, targets, equals, left_names, operator_ids, right_names,
                 semi),
        _columns(batch, ID["?"], last_name, ID["|"]),
        _columns(batch, targets, left_names, left_digits, operator_ids,
                 right_names, right_digits, equals, targets, results, semi),
        _columns(batch, ID["!"], answer, EOS),
    ], axis=1)


def random_num_constants(rng):
    return int(rng.integers(MIN_CONSTANTS, MAX_CONSTANTS + 1))


def generate_mixed(rng, count, num_definitions):
    """Programs with differing numbers of constants, as (prompt, completion)."""
    programs = []
    for _ in range(count):
        num_constants = random_num_constants(rng)
        ids = generate(rng, 1, num_constants, num_definitions)[0].tolist()
        split = prompt_length(num_constants, num_definitions)
        programs.append((ids[:split], ids[split:]))
    return programs


def training_batch(rng, num_tokens, num_definitions):
    """Ids of about `num_tokens` tokens and the positions that are learnt."""
    num_constants = random_num_constants(rng)
    first = prompt_length(num_constants, num_definitions)
    length = first + 10 * num_definitions + 3
    batch = max(1, round(num_tokens / length))
    ids = generate(rng, batch, num_constants, num_definitions)
    return ids, np.arange(first, length)


def heldout_files():
    """Unseen programs by file name; they depend on nothing but their stream."""
    for stream_seed, (name, count, num_definitions) in enumerate(HELDOUT):
        rng = rng_for(HELDOUT_STREAM, stream_seed)
        lines = []
        for prompt, completion in generate_mixed(rng, count, num_definitions):
            text = decode(completion)
            lines.append({"prompt": decode(prompt), "completion": text,
                          "answer": text[-1]})
        yield name, lines
