#!/usr/bin/env python3
"""Writes the golden bytes of one head of a T2 page, at 8 and at 4 bits.

A second reading of common/page/page_format.h and of ALGORITHMS 11.3 that
shares no code with the encoder. The form is frozen: run it only together with
a new format version.
"""
import pathlib
import struct

from generate import crc32c, u32

HERE = pathlib.Path(__file__).resolve().parent
LIVE = [s for s in range(64) if s not in (7, 40, 63)]
SINKS = [0, 1, 3, 7]  # 7 is dead


def single(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def half_bits(x):
    return struct.unpack("<H", struct.pack("<e", x))[0]


def half_value(bits):
    return struct.unpack("<e", struct.pack("<H", bits))[0]


def half_down(x):
    """The largest half that is not above x."""
    bits = half_bits(x)
    if half_value(bits) <= x:
        return bits
    return bits - 1 if half_value(bits) > 0 else bits + 1


def half_up(x):
    """The smallest half that is not below x >= 0."""
    bits = half_bits(x)
    return bits if half_value(bits) >= x else bits + 1


class Head:
    def __init__(self, dim, bits, bf16, divisor):
        self.dim, self.bits, self.bf16 = dim, bits, bf16
        self.divisor = divisor
        self.groups = [range(c, min(c + 32, dim)) for c in range(0, dim, 32)]
        self.key = [self.row(slot, 0) for slot in range(64)]
        self.value = [self.row(slot, 1) for slot in range(64)]
        self.exceptions = self.choose()
        self.coded = [s for s in LIVE if s not in self.exceptions]

    def row(self, slot, kind):
        if kind == 1 and slot == 5:
            return [single(32 / self.divisor)] * self.dim
        return [single(((slot * 37 + c * 131 + kind * 59 + (c >> 3) * 17) % 253
                        - 126) * 2**(slot % 3) / self.divisor)
                for c in range(self.dim)]

    def choose(self):
        chosen = [s for s in SINKS if s in LIVE]
        spread = sorted((s for s in LIVE if s not in chosen),
                        key=lambda s: (-single(max(self.value[s]) -
                                               min(self.value[s])), s))
        return sorted(chosen + spread[:2])

    def step(self, numbers):
        """(scale, minimum) as the bits of halves."""
        if not numbers:
            return 0, 0
        minimum = half_down(min(numbers))
        spread = single(max(numbers) - half_value(minimum))
        return half_up(single(spread / (2**self.bits - 1))), minimum

    def code(self, number, step):
        scale, minimum = map(half_value, step)
        if scale == 0:
            return 0
        distance = single(single(number - minimum) / scale)
        return min(max(round(distance), 0), 2**self.bits - 1)

    def decoded(self, code, step):
        scale, minimum = map(half_value, step)
        return single(single(code * scale) + minimum)

    def encode(self):
        dim = self.dim
        key_steps = [self.step([self.key[s][c] for s in self.coded])
                     for c in range(dim)]
        keys, values = [[0] * dim for _ in range(64)], [[0] * dim
                                                        for _ in range(64)]
        value_steps = [[(0, 0)] * len(self.groups) for _ in range(64)]
        self.rows = {}
        for s in self.coded:
            for g, group in enumerate(self.groups):
                value_steps[s][g] = self.step([self.value[s][c]
                                               for c in group])
            keys[s] = [self.code(self.key[s][c], key_steps[c])
                       for c in range(dim)]
            values[s] = [self.code(self.value[s][c], value_steps[s][c // 32])
                         for c in range(dim)]
            self.rows[s] = (
                [self.decoded(keys[s][c], key_steps[c]) for c in range(dim)],
                [self.decoded(values[s][c], value_steps[s][c // 32])
                 for c in range(dim)])
        for s in self.exceptions:
            self.rows[s] = self.key[s], self.value[s]
        parts = [halves(step[0] for step in key_steps),
                 halves(step[1] for step in key_steps),
                 halves(step[0] for row in value_steps for step in row),
                 halves(step[1] for row in value_steps for step in row),
                 self.codes(keys), self.codes(values),
                 bytes(self.exceptions) + b"\xff" * (8 - len(self.exceptions)),
                 b"".join(self.bytes_of(self.key[s]) +
                          self.bytes_of(self.value[s])
                          for s in self.exceptions)]
        parts[-1] += bytes(8 * 2 * len(self.bytes_of(self.key[0])) -
                           len(parts[-1]))
        return b"".join(part + bytes(-len(part) % 64) for part in parts)

    def codes(self, rows):
        flat = [code for row in rows for code in row]
        if self.bits == 8:
            return bytes(flat)
        return bytes(low | high << 4
                     for low, high in zip(flat[::2], flat[1::2]))

    def bytes_of(self, row):
        words = struct.unpack(f"<{self.dim}I",
                              struct.pack(f"<{self.dim}f", *row))
        if not self.bf16:
            return u32(*words)
        return halves((w + 0x7FFF + (w >> 16 & 1)) >> 16 for w in words)

    def decoded_rows(self):
        return (b"".join(self.bytes_of(self.rows[s][0]) for s in LIVE) +
                b"".join(self.bytes_of(self.rows[s][1]) for s in LIVE))


def halves(values):
    values = list(values)
    return struct.pack(f"<{len(values)}H", *values)


def main():
    heads = {8: Head(48, 8, True, 64), 4: Head(16, 4, False, 96)}
    for bits, head in heads.items():
        data = head.encode()
        lines = [data[i:i + 32].hex(" ", 4) for i in range(0, len(data), 32)]
        (HERE / f"t2_head_{bits}.hex").write_text("\n".join(lines) + "\n")
        print(f"{bits} bits: exceptions {head.exceptions}, CRC32C of the "
              f"decoded rows {crc32c(head.decoded_rows()):08x}")


if __name__ == "__main__":
    main()
