"""Which characters Hugging Face tokenizers takes for letters, marks and so on.

usage: generate_categories.py     (needs Python's tokenizers, and a Python whose
unicodedata is that of Unicode 14, such as 3.11)

Writes categories.json: for each general category its number of characters and
the CRC32C of their code points as little-endian 32-bit numbers. Prints the table
of gpu_worker/tokenizer/newer_characters.cc: those that Unicode 14 lacks.
"""

import json
import os
import unicodedata

from tokenizers import Regex, pre_tokenizers

import generate
import generate_real

SURROGATES = range(0xD800, 0xE000)
CODE_POINTS = [c for c in range(0x110000) if c not in SURROGATES]
STEP = 20000  # characters at a time


def members(category):
    """The code points that match \\p{category}."""
    found = []
    split = pre_tokenizers.Split(Regex(rf"\p{{{category}}}"), "removed",
                                 invert=True)
    for begin in range(0, len(CODE_POINTS), STEP):
        text = "".join(map(chr, CODE_POINTS[begin:begin + STEP]))
        for piece, _ in split.pre_tokenize_str(text):
            found.extend(map(ord, piece))
    return sorted(found)


def ranges(points):
    """As [first, last]."""
    found = []
    for point in points:
        if found and found[-1][1] == point - 1:
            found[-1][1] = point
        else:
            found.append([point, point])
    return found


def table(category, newer):
    """One case of the switch."""
    lines = [""]
    for first, last in ranges(newer):
        part = rf"\x{{{first:x}}}"
        if last > first:
            part += rf"-\x{{{last:x}}}"
        if len(lines[-1]) + len(part) > 64:
            lines.append("")
        lines[-1] += part
    text = "\n             ".join(f'R"({line})"' for line in lines)
    return f"    case '{category}':\n      return {text};"


def main():
    golden = {}
    for category in "LMNPSZ":
        found = members(category)
        data = b"".join(point.to_bytes(4, "little") for point in found)
        golden[category] = [len(found), int.from_bytes(
            generate_real.crc32c(data), "little")]
        newer = [point for point in found
                 if unicodedata.category(chr(point))[0] != category]
        if newer:
            print(table(category, newer))
    with open(os.path.join(generate.HERE, "categories.json"), "w",
              encoding="utf-8") as file:
        json.dump(golden, file)
        file.write("\n")


if __name__ == "__main__":
    main()
