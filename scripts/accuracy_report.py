#!/usr/bin/python3
"""Turns the JSON lines of farkv-bench accuracy into Markdown and plots.

farkv-bench accuracy | scripts/accuracy_report.py --command "farkv-bench accuracy"
    [--note note.md] [--plots bench/results] > bench/results/accuracy.md

Lines of several runs may follow one another; of one case the line with the most
programs counts, the later one of two. Plots (SVG) need matplotlib, Debian's
python3-matplotlib. Fails when a line is not one of that bench.
"""

import argparse
import collections
import os
import sys

import bench_table

HEADER = ("| row | budget | right % (95 %) | against full | tokens right % | "
          "operand present % | destroyed %, end / average | "
          "KiB in T0 / T1 / T2 | tokens |")
TEXT_HEADER = ("| row | budget | nats per token | against full | "
               "likelihood of full's, % | perplexity | "
               "destroyed %, end / average | KiB in T0 / T1 / T2 |")


def number(value, digits=1):
    text = f"{value:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def is_full(line):
    return line["params"]["row"] == "full"


def is_text(line):
    """Of a task that is judged by likelihood."""
    return line["unit"] == "nats per token"


def choose(lines):
    """One line per case, in the order of their first appearance."""
    chosen = {}
    for line in lines:
        other = chosen.get(line["case"])
        if other is None or (line["params"]["programs"] >=
                             other["params"]["programs"]):
            chosen[line["case"]] = line
    return list(chosen.values())


def by_task(lines):
    tasks = {}
    for line in lines:
        tasks.setdefault(line["params"]["task"], []).append(line)
    for task, rows in tasks.items():
        rows.sort(key=lambda line: not is_full(line))
        if not is_full(rows[0]):
            raise ValueError(f"task {task} has no row full")
    return tasks


class Names:
    """Of rows, with what sets one apart from the others of its table."""

    def __init__(self, lines):
        commits = collections.Counter(line["commit"] for line in lines)
        self.commit = commits.most_common(1)[0][0]

    def __call__(self, line, full):
        name = line["params"]["row"]
        if line["params"]["programs"] != full["params"]["programs"]:
            name += f", {line['params']['programs']} programs"
        if line["commit"] != self.commit:
            name += f", at {line['commit']}"
        return name


def destroyed(line):
    return (f"{number(line['metrics']['destroyed_at_end'])} / "
            f"{number(line['metrics']['destroyed_average'])}")


def kib(line):
    return " / ".join(number(line["metrics"][f"t{i}_bytes"] / 1024, 0)
                      for i in range(3))


def against_full(line, digits):
    m = line["metrics"]
    return "–" if is_full(line) else (
        f"{m['against_full']:+.{digits}f} ± "
        f"{number(m['against_full_95'], digits)}")


def budget(line):
    groups = line["metrics"].get("groups_read")
    return line["params"]["budget"] + (
        "" if groups is None else f", {number(groups)} % of groups read")


def table_row(line, name):
    m = line["metrics"]
    return [name, budget(line),
            f"**{number(line['value'])}** ({number(m['low_95'])} to "
            f"{number(m['high_95'])})", against_full(line, 1),
            number(m["tokens_right"]), number(m["operand_present"]),
            destroyed(line), kib(line), number(m["tokens"], 0)]


def text_row(line, name):
    ratio = "–" if is_full(line) else f"{100 * line['ratio']:.2f}"
    return [name, budget(line), f"**{line['value']:.4f}**",
            against_full(line, 4), ratio,
            number(line["metrics"]["perplexity"], 2), destroyed(line),
            kib(line)]


def markdown(header, rows):
    columns = header.count("|") - 1
    return [header, "|" + " --- |" * columns] + [
        "| " + " | ".join(cells) + " |" for cells in rows]


def verdict(met):
    return {True: "met", False: "**missed**", None: "none"}[met]


def gate_table(tasks):
    rows = []
    for task, lines in tasks.items():
        full = lines[0]
        if is_text(full):
            continue
        m = full["metrics"]
        lookups, gate = m.get("lookups_right"), m.get("lookups_gate")
        rows.append([task, str(full["params"]["programs"]),
                     number(full["value"]), verdict(full["met"]),
                     "–" if lookups is None else number(lookups, 3),
                     "–" if gate is None else verdict(lookups >= gate)])
    return markdown(
        "| task | programs | full cache, right % | gate 95 % | "
        "lookups right % | gate 99.9 % |", rows)


def t2_table(lines):
    """Bytes of rounded rows, as shares of the same rows in T1."""
    shares = {}
    for line in lines:
        m = line["metrics"]
        if "t2_of_t1_bytes" in m:
            other = m.get("t2_of_t1_bytes_heads_of_128")
            shares[line["params"]["row"]] = [
                line["params"]["row"], number(m["t2_of_t1_bytes"]),
                "–" if other is None else number(other)]
    return [] if not shares else ["", "## Bytes of T2", ""] + markdown(
        "| row | of T1's bytes, % | with heads of 128 channels, % |",
        shares.values())


def range_table(lines):
    rows = []
    for line in lines:
        m = line["metrics"]
        if "value_range_median" not in m:
            continue
        first = "–" if not is_text(line) else (
            f"{number(m['first_page_rows'])} / "
            f"{number(m['first_page_in_top_quarter'])}")
        rows.append([line["params"]["task"]] + [
            number(m[f"value_range_{name}"], 2)
            for name in ("median", "p90", "p99", "largest")] + [
            number(m["value_range_largest"] / m["value_range_median"]), first])
    return [] if not rows else ["", "## Ranges of stored values", ""] + markdown(
        "| task | median | 90 % | 99 % | largest | largest / median | prompt's "
        "share of rows / of the largest quarter, % |", rows)


def report(lines, command, note, plots):
    tasks, names = by_task(lines), Names(lines)
    seeds = sorted({line["params"]["seed"] for line in lines})
    out = ["# farkv-bench accuracy", "", f"`{command}`", "",
           f"Commit {names.commit}, {lines[0]['cpu']}; seed "
           f"{', '.join(map(str, seeds))}. All rows of a task run the same "
           "programs; a row that has fewer ran the first of them. Intervals "
           "are 95 %: Wilson's for a share, normal for the mean of paired "
           "differences, in points (nats for a text)."]
    if note:
        out += ["", note.strip()]
    out += ["", "## Gate", ""] + gate_table(tasks)
    for name, caption in plots:
        out += ["", f"![{caption}]({name})"]
    for task, rows in tasks.items():
        text = is_text(rows[0])
        make = text_row if text else table_row
        out += ["", f"## {task}", ""] + markdown(
            TEXT_HEADER if text else HEADER,
            [make(line, names(line, rows[0])) for line in rows])
    out += t2_table(lines) + range_table(lines)
    return "\n".join(out) + "\n"


def scatter(path, tasks, x_of, x_label, chosen):
    """One panel per task; x_of gives a share in per cent."""
    import matplotlib
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "farkv"  # the same bytes each time
    matplotlib.rcParams["svg.fonttype"] = "none"  # text stays text
    from matplotlib import pyplot
    columns = min(3, len(tasks))
    rows = -(-len(tasks) // columns)
    figure, axes = pyplot.subplots(rows, columns, squeeze=False, sharey=True,
                                   figsize=(4.2 * columns, 3.2 * rows))
    kinds = {"none": "o", "bounds": "s", "fixed": "^", "proportional": "v",
             "selection": "D"}
    for axis, (task, lines) in zip(axes.flat, tasks.items()):
        for kind, marker in kinds.items():
            points = [line for line in lines
                      if line["params"]["budget"] == kind and chosen(line)]
            if not points:
                continue
            values = [line["value"] for line in points]
            low = [max(0, line["value"] - line["metrics"]["low_95"])
                   for line in points]
            high = [max(0, line["metrics"]["high_95"] - line["value"])
                    for line in points]
            axis.errorbar([x_of(line) for line in points], values, [low, high],
                          fmt=marker, label=kind, markersize=4, linewidth=0.6)
        axis.set_title(task)
        axis.set_xlabel(x_label)
        axis.set_xlim(-3, 103)
        axis.set_ylim(-3, 103)
    for axis in list(axes.flat)[len(tasks):]:
        axis.set_visible(False)
    axes[0][0].set_ylabel("programs right, %")
    axes[0][0].legend(title="budget")
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def t0_share(line):
    tokens = [line["metrics"][f"t{i}_tokens"] for i in range(3)]
    return 100 * tokens[0] / sum(tokens)


def draw(folder, lines):
    tasks = {task: rows for task, rows in by_task(lines).items()
             if len(rows) > 1 and not is_text(rows[0])}
    if not tasks:
        return []
    plots = [("accuracy_destroyed.svg", "Accuracy against the share destroyed",
              lambda line: line["metrics"]["destroyed_average"],
              "destroyed on average, %", lambda line: True),
             ("accuracy_t0.svg", "Accuracy against the share of tokens in T0",
              t0_share, "live tokens in T0, %",
              lambda line: line["params"]["budget"] == "none")]
    for name, _, x_of, label, chosen in plots:
        scatter(os.path.join(folder, name), tasks, x_of, label, chosen)
    return [(name, caption) for name, caption, *_ in plots]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--command", required=True,
                        help="the command that printed the lines")
    parser.add_argument("--note", help="file with text to put above the tables")
    parser.add_argument("--plots", help="folder for SVG plots")
    arguments = parser.parse_args()
    note = ""
    if arguments.note:
        with open(arguments.note, encoding="utf-8") as file:
            note = file.read()
    try:
        lines = bench_table.parse(sys.stdin.read())
        if lines[0]["bench"] != "accuracy":
            raise ValueError(f"lines of {lines[0]['bench']}, not of accuracy")
        lines = choose(lines)
        plots = draw(arguments.plots, lines) if arguments.plots else []
        text = report(lines, arguments.command, note, plots)
    except ValueError as error:
        sys.exit(f"accuracy_report: {error}")
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
