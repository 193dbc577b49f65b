#!/usr/bin/env python3
"""Writes quantized_groups.txt: random groups of GGUF's quantised types and what
gguf-py, the reference's own package, reads in them.

    python3 -m venv VENV && VENV/bin/pip install gguf
    VENV/bin/python tests/golden/make_group_goldens.py

One line per row: the type, the stored bytes and the float32 values, both in
hex, values little endian. Every bit of the integers is random; the fp16 scales
are finite, one of them subnormal.
"""

import pathlib

import gguf
import numpy as np

ROW = 256
# Type: where the fp16 scales of a group lie.
SCALES = {"Q8_0": [0], "Q4_0": [0], "Q4_1": [0, 2], "Q4_K": [0, 2],
          "Q6_K": [208]}


def random_row(kind, rng):
    elements, size = gguf.GGML_QUANT_SIZES[kind]
    groups = rng.integers(0, 256, (ROW // elements, size), dtype=np.uint8)
    for at in SCALES[kind.name]:
        scales = rng.uniform(-1 / 16, 1 / 16, len(groups)).astype("<f2")
        groups[:, at:at + 2] = scales.view(np.uint8).reshape(-1, 2)
    return groups


def main():
    rng = np.random.default_rng(20261130)
    lines = []
    for name, places in SCALES.items():
        kind = gguf.GGMLQuantizationType[name]
        row = random_row(kind, rng)
        row[0, places[0]:places[0] + 2] = [0x23, 0x01]  # subnormal
        rows = [row] + ([random_row(kind, rng)] if len(row) == 1 else [])
        for row in rows:
            flat = row.reshape(1, -1)
            values = gguf.dequantize(flat, kind).astype("<f4")
            assert values.shape == (1, ROW) and np.isfinite(values).all()
            lines.append(f"{name} {flat.tobytes().hex()} "
                         f"{values.tobytes().hex()}\n")
    path = pathlib.Path(__file__).resolve().parent / "quantized_groups.txt"
    path.write_text("".join(lines))


if __name__ == "__main__":
    main()
