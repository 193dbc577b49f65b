#!/usr/bin/env python3
"""Writes the golden bytes of the page header and the data-plane bodies.

A second reading of common/page/page_format.h and bodies.h that shares no code
with the encoders. The formats are frozen: run it only together with a new
format version. It also writes the seeds of tests/fuzz.
"""
import pathlib
import struct

HERE = pathlib.Path(__file__).resolve().parent
CORPUS = HERE.parent / "fuzz" / "corpus"


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def pattern(count, start=0):
    return bytes((i * 131 + (i >> 8) * 17 + 7) & 0xFF
                 for i in range(start, start + count))


def align(data):
    return data + bytes(-len(data) % 64)


def u16(*values):
    return struct.pack(f"<{len(values)}H", *values)


def u32(*values):
    return struct.pack(f"<{len(values)}I", *values)


def u64(*values):
    return struct.pack(f"<{len(values)}Q", *values)


def f32(*values):
    return struct.pack(f"<{len(values)}f", *values)


SESSION = bytes(range(0xA0, 0xB0))


def header(tier, dtype, heads, dim, payload, bits, live, crcs):
    header_bytes = (64 + 8 * heads + 256 * heads + 63) // 64 * 64
    front = (b"FKVP" + struct.pack("<HBB", 1, tier, dtype) + SESSION +
             u32(7, 41))
    shape = struct.pack("<HHIIB3x", heads, dim, header_bytes, payload, bits)
    rows = u32(*crcs)
    crc = crc32c(front + shape + rows)
    data = front + u64(0x0102030405060708) + shape + u32(crc, 0)
    return align(data + u64(*live) + rows)


def page_t1():
    """2 heads of 16 bf16; every row of the pattern payload has its CRC."""
    heads, vector = 2, 32
    payload = pattern(heads * 64 * 2 * vector)
    crcs = []
    for head in range(heads):
        keys = head * 64 * 2 * vector
        values = keys + 64 * vector
        for slot in range(64):
            k = keys + slot * vector
            v = values + slot * vector
            crcs.append(crc32c(payload[k:k + vector] + payload[v:v + vector]))
    return header(1, 1, heads, 16, len(payload), 0, [0xFFFFFFFFFFFFFFFF, 5],
                  crcs)


def page_t2():
    """1 head of 32 f32, 8 bits; one CRC for the whole head part."""
    parts = [64, 64, 128, 128, 2048, 2048, 64, 8 * 256]
    payload = pattern(sum(parts))
    crcs = [crc32c(payload)] + 63 * [0]
    return header(2, 2, 1, 32, len(payload), 8, [0x8000000000000001], crcs)


def store_request():
    crcs = [0x11111111, 0x22222222, 0x33333333, 0x44444444, 0xFEDCBA98,
            0xDDDD0001]
    return align(u32(3, 2, 16, 1) +
                 u32(3, 5) + u16(1, 0) + u32(0) + u64(9, 0b101, 1 << 63) +
                 u32(4, 6) + u16(1, 0) + u32(0) +
                 u64(0x0102030405060708, 0, 0b11) +
                 u32(4, 7) + u16(2, 8) + u32(0) + u64(10, 0b110, 0) +
                 u32(*crcs)) + pattern(5 * 64 + t2_head(8))


def store_reply():
    return u32(3, 0, 0, 0, 9, 0, 8, 0)


def fetch_request():
    return (u32(4, 2) +
            u32(12) + u16(1, 0) + u64(3, 0xF0F0, 0) +
            u32(900) + u16(1, 0) + u64(1 << 40, 1, 0xFFFFFFFFFFFFFFFF) +
            u32(13) + u16(2, 8) + u64(4, 0, 0b110) +
            u32(14) + u16(2, 4) + u64(5, 1 << 63, 1))


def t2_head(bits):
    """Bytes of one head of a T2 page of 16 bf16: its parts, aligned."""
    halves = 2 * (2 * 16 + 32) + 2 * 64 * 2
    return halves + 2 * (64 * 16 * bits // 8) + 64 + 8 * 64


def fetch_reply():
    rows = 3 * 64 + t2_head(8) + 2 * t2_head(4)
    return align(u32(5, 2, 16, 1) +
                 u32(12, 0) + u64(3) + u16(1, 0) + u32(0) +
                 u64(0b1001, 0b10) +
                 u32(900, 5) + u64(1 << 40) + u16(1, 0) + u32(0) + u64(0, 0) +
                 u32(13, 0) + u64(4) + u16(2, 8) + u32(0) + u64(0, 0b110) +
                 u32(15, 9) + u64(6) + u16(2, 8) + u32(0) + u64(0, 0) +
                 u32(14, 0) + u64(5) + u16(2, 4) + u32(0) + u64(1 << 63, 1) +
                 u32(0xAAAA0001, 0xAAAA0002, 0xAAAA0003, 0xBBBB0001,
                     0xCCCC0001, 0xCCCC0002)) + pattern(rows)


def attend_request():
    def run(page, count, tier, bits, all_live, *words):
        return u32(page, count) + u16(tier, bits) + u32(all_live) + u64(*words)

    body = (u32(2, 4, 16, 1) + f32(0.25) + u32(2) +
            SESSION + u64(1000) + u32(2, 0) +
            SESSION[::-1] + u64(1 << 33) + u32(2, 3) +
            u64(77) + f32(1, -2, 3.5, float("-inf")) + f32(1, 2, 4, 0) +
            run(3, 1, 1, 0, 0, 11, 0xFF, 0xFE) +
            run(4, 1, 2, 8, 0, 12, 1, 0) +
            run(0, 2, 1, 0, 1, 13, 14) +
            run(7, 1, 2, 4, 0, 15, 0xFFFFFFFFFFFFFFFF, 2))
    for i in range(2):
        body = align(body) + pattern(4 * 32, start=1000 * i)
    return body


def attend_reply():
    def subtree(level, index, base):
        return (u32(level, index) + f32(base, base + 1) +
                f32(base + 2, base + 3) +
                f32(*(base + i / 4 for i in range(32))))
    return (u32(2, 2, 16, 0) + u32(0, 2, 0xFFFFFFFF, 0) + u32(14, 0, 900, 0) +
            subtree(4, 3, 1.0) + subtree(0, 64, -8.0))


def scores_request():
    return (u32(2, 2, 3, 0) + u64(6) +
            u32(0, 0) + u64(77) + f32(1, float("-inf")) + f32(2, 0) +
            u32(5, 0) + u64(78) + f32(-3, 0.5) + f32(1, 64) +
            u32(0, 7, 900))


def scores_reply():
    def page(index, first):
        return u32(index, 0) + u64(*((first - i) % 2**64 for i in range(64)))
    return u32(2, 0) + page(0, 1 << 40) + page(7, 3)


def write(name, data):
    lines = [data[i:i + 32].hex(" ", 4) for i in range(0, len(data), 32)]
    (HERE / f"{name}.hex").write_text("\n".join(lines) + "\n")
    seeds = CORPUS / (name if "page" not in name else "page_header")
    seeds.mkdir(parents=True, exist_ok=True)
    (seeds / name).write_bytes(data)


if __name__ == "__main__":
    for make in (page_t1, page_t2, store_request, store_reply, fetch_request,
                 fetch_reply, attend_request, attend_reply, scores_request,
                 scores_reply):
        write(make.__name__, make())
