"""Checks the source tree: include arrows, sizes, room READMEs, guards.

usage: check_tree.py [--root DIR] [--arrows FILE]

An arrow that no file uses is a violation too: it would let one appear unseen.

Prints one line per violation and exits with 1 when there is any; long files
that are still allowed are named as warnings.
"""

import argparse
import dataclasses
import fnmatch
import os
import re
import sys

SOURCE_SUFFIXES = (".h", ".cc", ".cu", ".cuh")
SIZED_SUFFIXES = SOURCE_SUFFIXES + (".py", ".proto", ".sh", ".cmake")
SKIPPED_FOLDERS = {".git", "build", "__pycache__", ".cache"}
OUR_ROOTS = ("common/", "kernels/", "memory_node/", "gpu_worker/", "admin_cli/",
             "bench/", "models/", "proto/", "tests/", "farkv/")

FILE_LINES, TEST_FILE_LINES, WARN_LINES = 600, 800, 400
FUNCTION_LINES, KERNEL_BODY_LINES = 100, 150

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)
NOISE = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])*'|^\s*#(?:[^\n\\]|\\\n|\\.)*",
    re.DOTALL | re.MULTILINE)


@dataclasses.dataclass
class Table:
    arrows: dict  # folder -> folders that it may include
    external: list  # (include patterns, path patterns)


def read_table(path):
    table = Table({}, [])
    section = None
    with open(path, encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            line = line.split("#")[0].strip()
            if not line:
                continue
            if line in ("[arrows]", "[external]"):
                section = line
                continue
            left, colon, right = line.partition(":")
            if not colon or section is None:
                raise SystemExit(f"{path}:{number}: cannot read \"{line}\"")
            if section == "[arrows]":
                table.arrows[left.strip()] = right.split()
            else:
                table.external.append((left.split(), right.split()))
    return table


def files_of(root):
    for folder, names, files in os.walk(root):
        names[:] = [n for n in names if n not in SKIPPED_FOLDERS]
        for name in files:
            yield os.path.relpath(os.path.join(folder, name), root)


def matches(path, patterns):
    return any(fnmatch.fnmatchcase(path, p) for p in patterns)


def folder_of(path, folders):
    """The longest of `folders` that `path` lies in, or None."""
    inside = [f for f in folders if path.startswith(f + "/")]
    return max(inside, key=len, default=None)


def check_includes(path, text, table):
    own = folder_of(path, table.arrows)
    if own is None:
        yield "its folder is not in the table of arrows"
        return
    for included in INCLUDE.findall(text):
        for patterns, places in table.external:
            if matches(included, patterns):
                if not matches(path, places):
                    yield f"may not include {included}: only {' '.join(places)}"
                break
        if not included.startswith(OUR_ROOTS):
            continue
        target = target_of(included, table)
        if target != own and not matches(target or "", table.arrows[own]):
            yield f"{own} may not include {included}"


def target_of(included, table):
    """The folder of one of our headers."""
    if included.startswith("farkv/"):  # generated from proto/
        included = "proto/" + included
    return folder_of(included, [*table.arrows, "proto"])


def unused_arrows(root, table):
    used = {folder: set() for folder in table.arrows}
    for path in files_of(root):
        own = folder_of(path, table.arrows)
        if own is None or not path.endswith(SOURCE_SUFFIXES):
            continue
        with open(os.path.join(root, path), encoding="utf-8") as file:
            used[own].update(target_of(included, table) or ""
                             for included in INCLUDE.findall(file.read()))
    return [f"arrows: no file of {folder} includes {pattern}"
            for folder, patterns in table.arrows.items()
            for pattern in patterns
            if not fnmatch.filter(used[folder], pattern)]


def blank(match):
    """Keeps the lines of a comment, string or directive, not its text."""
    return " " + "\n" * match.group(0).count("\n")


def function_lengths(text):
    """(first line, number of lines) of each outermost function body."""
    code = NOISE.sub(blank, text)
    stack = []  # kind of each open brace: "scope", "function" or "other"
    start = 0  # where the text that explains the next brace begins
    first = 0
    for at in (m.start() for m in re.finditer(r"[{};]", code)):
        char = code[at]
        if char == "{":
            head = code[start:at]
            if "function" in stack:
                kind = "other"
            elif re.search(r"\bnamespace\b|\bextern\s*$", head):
                kind = "scope"
            elif re.search(r"\b(class|struct|union|enum)\b", head) and (
                    not re.search(r"\)[\w\s]*$", head)):
                kind = "scope"
            elif ")" in head:
                kind = "function"
                first = start + len(head) - len(head.lstrip())
            else:
                kind = "other"
            stack.append(kind)
        elif char == "}" and stack:
            if stack.pop() == "function":
                yield (code.count("\n", 0, first) + 1,
                       code.count("\n", first, at) + 1)
        if "function" not in stack:
            start = at + 1


def check_sizes(path, text):
    """Violations, then warnings."""
    in_tests = path.startswith("tests/")
    limit = TEST_FILE_LINES if in_tests else FILE_LINES
    lines = text.count("\n")
    if lines > limit:
        yield f"has {lines} lines, more than {limit}", True
    elif lines > WARN_LINES:
        yield f"has {lines} lines; over {WARN_LINES} needs a reason", False
    if not path.endswith(SOURCE_SUFFIXES):
        return
    longest = KERNEL_BODY_LINES if path.startswith("kernels/") else (
        FUNCTION_LINES)
    for line, length in function_lengths(text):
        if length > longest:
            yield (f"line {line}: function of {length} lines, more than "
                   f"{longest}"), True


def check_names(text):
    """DESIGN 13: a peer must not read or write memory by its address."""
    for name in re.findall(r"\bUCP_FEATURE_(?:RMA|AMO)\w*",
                           NOISE.sub(blank, text)):
        yield f"may not use {name}: active messages only"


def check_header(path, text):
    guard = "FARKV_" + re.sub(r"\W", "_", path).upper() + "_"
    if f"#ifndef {guard}\n#define {guard}\n" not in text:
        # Headers that Highway includes once per target guard themselves.
        if not path.endswith("-inl.h"):
            yield f"must be guarded by {guard}"
    if re.search(r"^\s*using namespace\b", text, re.MULTILINE):
        yield "a header must not say using namespace"


def check_readme(root, folder):
    path = os.path.join(root, folder, "README.md")
    if not os.path.exists(path):
        return "has no README.md"
    with open(path, encoding="utf-8") as file:
        lines = [line for line in file.read().splitlines() if line.strip()]
    if len(lines) != 3:
        return f"README.md has {len(lines)} lines, not three"
    return None


def check_tree(root, table):
    """Returns (violations, warnings), each a list of lines."""
    violations, warnings = [], []
    rooms = set()
    for path in sorted(files_of(root)):
        if not path.endswith(SIZED_SUFFIXES):
            continue
        with open(os.path.join(root, path), encoding="utf-8") as file:
            text = file.read()
        for message, fails in check_sizes(path, text):
            (violations if fails else warnings).append(f"{path}: {message}")
        if not path.endswith(SOURCE_SUFFIXES) or path.startswith("cmake/"):
            continue
        for message in [*check_includes(path, text, table),
                        *check_names(text)]:
            violations.append(f"{path}: {message}")
        if path.endswith(".h"):
            for message in check_header(path, text):
                violations.append(f"{path}: {message}")
        room = folder_of(path, table.arrows)
        if room is not None:
            rooms.add(room)
    for room in sorted(rooms):
        message = check_readme(root, room)
        if message:
            violations.append(f"{room}: {message}")
    return violations, warnings


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", default=os.path.join(here, "..", ".."))
    parser.add_argument("--arrows", default=os.path.join(here, "arrows.txt"))
    arguments = parser.parse_args()
    root = os.path.normpath(arguments.root)
    table = read_table(arguments.arrows)
    violations, warnings = check_tree(root, table)
    violations += unused_arrows(root, table)
    for line in warnings:
        print(f"warning: {line}")
    for line in violations:
        print(line)
    print(f"check_tree: {len(violations)} violations, {len(warnings)} warnings")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
