#!/usr/bin/python3
"""Turns the JSON lines of one farkv-bench subcommand into a Markdown table.

farkv-bench matmul | scripts/bench_table.py --command "farkv-bench matmul" \
    [--note note.md] > bench/results/matmul.md

Fails when a line is not a bench line or lines disagree about the subcommand.
"""

import argparse
import json
import sys

FIELDS = ("bench", "case", "value", "unit", "better", "yardstick", "ratio",
          "goal", "met", "runs", "spread", "params", "metrics", "commit", "cpu")


def parse(text):
    """Returns the bench lines of `text`, in order."""
    lines = []
    for number, row in enumerate(text.splitlines(), 1):
        if not row.strip():
            continue
        try:
            line = json.loads(row)
        except json.JSONDecodeError as error:
            raise ValueError(f"line {number} is not JSON: {error}") from error
        keys = tuple(line) if isinstance(line, dict) else ()
        if keys != FIELDS:
            raise ValueError(
                f"line {number} has the fields {list(keys)}, not {list(FIELDS)}")
        lines.append(line)
    if not lines:
        raise ValueError("no bench lines on stdin")
    names = {line["bench"] for line in lines}
    if len(names) > 1:
        raise ValueError(f"lines of several subcommands: {sorted(names)}")
    return lines


def number(value):
    """Three significant digits, or more where they are whole."""
    if value is None:
        return "–"
    if abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.3g}"


def pairs(fields, hidden):
    shown = [f"{key} {number(value) if isinstance(value, float) else value}"
             for key, value in fields.items() if key not in hidden]
    return ", ".join(shown) or "–"


def row(line, shared):
    yardstick = line["yardstick"]
    met = {True: "yes", False: "no", None: "–"}[line["met"]]
    arrow = "" if line["better"] == "higher" else " (lower is better)"
    ratio = "–" if line["ratio"] is None else f"{line['ratio']:.2f}"
    goal = "–" if line["goal"] is None else f"{line['goal']:.2f}"
    against = "–" if yardstick is None else (
        f"{yardstick['name']}: {number(yardstick['value'])}")
    cells = [line["case"], f"{number(line['value'])} {line['unit']}{arrow}",
             against, ratio, goal, met, f"{100 * line['spread']:.0f} %",
             pairs(line["params"], shared), pairs(line["metrics"], ())]
    return "| " + " | ".join(cells) + " |"


def table(lines, command, note):
    """The whole text of bench/results/<subcommand>.md."""
    first = lines[0]
    # Parameters that all lines share stand above the table once.
    shared = [key for key, value in first["params"].items()
              if len(lines) > 1 and
              all(line["params"].get(key) == value for line in lines)]
    common = ", ".join(f"{key} {first['params'][key]}" for key in shared)
    runs = sorted({line["runs"] for line in lines})
    out = [f"# farkv-bench {first['bench']}", "",
           f"`{command}`", "",
           f"Commit {first['commit']}, {first['cpu']}; medians of "
           f"{' or '.join(str(count) for count in runs)} interleaved rounds; "
           "the ratio is the median of per-round ratios, above 1 is better "
           "than the yardstick; spread is its interquartile range over the "
           "median."]
    if common:
        out += ["", f"All cases: {common}."]
    out += ["", "| case | value | yardstick | ratio | goal | met | spread | "
            "parameters | metrics |", "|" + " --- |" * 9]
    out += [row(line, shared) for line in lines]
    if note:
        out += ["", note.strip()]
    return "\n".join(out) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--command", required=True,
                        help="the command that printed the lines")
    parser.add_argument("--note", help="file with text to put under the table")
    arguments = parser.parse_args()
    note = ""
    if arguments.note:
        with open(arguments.note, encoding="utf-8") as file:
            note = file.read()
    try:
        lines = parse(sys.stdin.read())
    except ValueError as error:
        sys.exit(f"bench_table: {error}")
    sys.stdout.write(table(lines, arguments.command, note))


if __name__ == "__main__":
    main()
