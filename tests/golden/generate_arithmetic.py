#!/usr/bin/env python3
"""Writes arithmetic_k1.txt: checksums of the kernels' results.

A second reading of the attention's and the products' arithmetic that shares no
code with the kernels: every fp32 operation of attention_exp.h, merge.h,
attention_leaf.h, attention_scores.h and matmul_kernels.h, rounded by itself,
for CPUs with and without a fused multiply-add and of each vector length.
"""
import fractions
import pathlib
import struct

from generate import crc32c

HERE = pathlib.Path(__file__).resolve().parent
# Lanes of a vector, and whether MulAdd rounds once. Those that a CPU has
# confirmed: AVX3 should be (16, True).
TARGETS = {
    "SCALAR": (1, False), "SSSE3": (4, False), "SSE4": (4, False),
    "AVX2": (8, True),
}
INFINITY = float("inf")
DIM, HEADS = 32, 4
SCALE = float.fromhex("0x1.6a09e6p-3")
LIVE = [s for s in range(64) if s not in (0, 7, 40)]


def single(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def bits(x):
    return struct.unpack("<I", struct.pack("<f", x))[0]


def from_bits(b):
    return struct.unpack("<f", struct.pack("<I", b & 0xFFFFFFFF))[0]


def bf16(x):
    b = bits(x)
    return from_bits((b + 0x7FFF + (b >> 16 & 1)) >> 16 << 16)


# A double holds a product of two fp32, and rounding a sum, difference or
# quotient of two twice is rounding it once.
def add(a, b):
    return single(a + b)


def mul(a, b):
    return single(a * b)


def mul_add(fused, a, b, c):
    if not fused:
        return add(mul(a, b), c)
    exact = (fractions.Fraction(a) * fractions.Fraction(b) +
             fractions.Fraction(c))
    if exact == 0:
        return 0.0
    size = abs(exact)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    if size < fractions.Fraction(2)**exponent:
        exponent -= 1
    step = fractions.Fraction(2)**(exponent - 23)
    return float(round(exact / step) * step)


def sum_of_lanes(lanes):
    while len(lanes) > 1:
        half = len(lanes) // 2
        lanes = [add(lanes[i], lanes[i + half]) for i in range(half)]
    return lanes[0]


def exp(x):
    if x < -87.0:
        return 0.0
    constant = float.fromhex
    shifted = add(mul(x, constant("0x1.715476p+0")), constant("0x1.8p+23"))
    n = add(shifted, -constant("0x1.8p+23"))
    r = add(add(x, -mul(n, constant("0x1.62e4p-1"))),
            -mul(n, constant("0x1.7f7d1cp-20")))
    q = constant("0x1.6d1606p-10")
    for coefficient in ("0x1.12106cp-7", "0x1.555516p-5", "0x1.5554d8p-3",
                        "0x1p-1"):
        q = add(mul(q, r), constant(coefficient))
    y = add(add(mul(q, mul(r, r)), r), 1.0)
    return mul(y, from_bits((bits(shifted) - 0x4B400000 + 127) << 23))


def number(a, b):
    """The tests' numbers: whole ones of 8 bits, without a pattern."""
    return (a * 37 + b * 131 + (b >> 3) * 17 + 59) % 253 - 126


def spread(a, b):
    """A bf16 number; of many sizes, so that the order of a sum matters."""
    return number(a, b) / 2**(5 + (a + 5 * b) % 11)


def checksum(*floats):
    return crc32c(struct.pack(f"<{len(floats)}f", *floats))


def exps():
    return checksum(*(exp(single(-i / 752)) for i in range(65536)),
                    exp(-INFINITY))


def partials(seed, empty):
    """m, l and O of three heads of 16."""
    m = [single(number(seed, h) / 12) for h in range(3)]
    l = [single((number(seed, h) + 222) / 96) for h in range(3)]
    out = [single(number(seed, 10 + i) / 96) for i in range(48)]
    if empty is not None:
        m[empty], l[empty] = -INFINITY, 0.0
        out[empty * 16:empty * 16 + 16] = [0.0] * 16
    return m, l, out


def merge():
    (ml, ll, ol), (mr, lr, o_r) = partials(1, 1), partials(2, None)
    for h in range(3):
        if mr[h] == -INFINITY:
            continue
        part = slice(16 * h, 16 * h + 16)
        if ml[h] == -INFINITY:
            ml[h], ll[h], ol[part] = mr[h], lr[h], o_r[part]
            continue
        m = max(ml[h], mr[h])
        left, right = exp(add(ml[h], -m)), exp(add(mr[h], -m))
        ml[h] = m
        ll[h] = add(mul(ll[h], left), mul(lr[h], right))
        ol[part] = [add(mul(a, left), mul(b, right))
                    for a, b in zip(ol[part], o_r[part])]
    return checksum(*ml, *ll, *ol)


def scores():
    """Of one layer of two with three heads, the second one without rows."""
    m_leaf, l_leaf, _ = partials(1, 1)
    m = [add(max(x, 0.0), 0.75) for x in m_leaf]
    l = [add(x, 1.5) for x in l_leaf]
    sums = [0.0] * 64
    for h in range(3):
        factor = 0.0
        if m_leaf[h] != -INFINITY:
            factor = single(exp(add(m_leaf[h], -m[h])) / l[h])
        sums = [add(sums[s], mul(single((number(h, s) + 126) / 252), factor))
                for s in range(64)]
    return crc32c(struct.pack("<64q",
                              *(round(x * (2.0**40 / 6)) for x in sums)))


def leaf(lanes, fused, rounded):
    ms, ls, outs, all_weights = [], [], [], []
    keys = [[spread(s, c) for c in range(DIM)] for s in range(64)]
    values = [[spread(s + 64, c) for c in range(DIM)] for s in range(64)]
    for head in range(HEADS):
        query = [single(number(200 + head, c) / 96) for c in range(DIM)]
        if rounded:
            query = [bf16(x) for x in query]
        logits = [-INFINITY] * 64
        for s in LIVE:
            sums = [0.0] * lanes
            for c in range(DIM):
                sums[c % lanes] = mul_add(fused, query[c], keys[s][c],
                                          sums[c % lanes])
            logits[s] = mul(sum_of_lanes(sums), SCALE)
        m = max(logits)
        weights = [exp(x - m if x == -INFINITY else add(x, -m))
                   for x in logits]
        sums = [0.0] * lanes
        for s in range(64):
            sums[s % lanes] = add(sums[s % lanes], weights[s])
        out = [0.0] * DIM
        for s in LIVE:
            out = [mul_add(fused, weights[s], values[s][c], out[c])
                   for c in range(DIM)]
        ms.append(m)
        ls.append(sum_of_lanes(sums))
        outs += out
        all_weights += weights
    return checksum(*ms, *ls, *outs, *all_weights)


def matmul(fused, rounded):
    """One row of 96 times a weight of five rows."""
    row = [single(number(300, k) / 96) for k in range(96)]
    if rounded:
        row = [bf16(x) for x in row]
    out = []
    for n in range(5):
        total = 0.0
        for k in range(96):
            total = mul_add(fused, spread(n, k), row[k], total)
        out.append(total)
    return checksum(*out)


def main():
    lines = [("exp", "any", exps()), ("merge", "any", merge()),
             ("scores", "any", scores())]
    known = {}
    for target, key in TARGETS.items():
        if key not in known:
            lanes, fused = key
            known[key] = (("leaf_f32", leaf(lanes, fused, False)),
                          ("leaf_bf16", leaf(lanes, fused, True)),
                          ("matmul_f32", matmul(fused, False)),
                          ("matmul_bf16", matmul(fused, True)))
        lines += [(what, target, value) for what, value in known[key]]
    (HERE / "arithmetic_k1.txt").write_text(
        "# CRC32C of results under kernel revision k1, by generate_arithmetic"
        ".py.\n# Other bits than these need another revision "
        "(kernels/kernel_target.cc):\n# worker and node of one revision and "
        "target mix under --exactness=bitwise.\n# No lines yet for targets of "
        "AVX-512 and NEON, which no CPU has confirmed.\n" +
        "".join(f"{what} {target} {value:08x}\n"
                for what, target, value in lines))


if __name__ == "__main__":
    main()
