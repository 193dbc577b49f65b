#!/usr/bin/python3
"""Turns the JSON lines of farkv-bench accuracy into Markdown and plots.

farkv-bench accuracy | scripts/accuracy_report.py --command "farkv-bench accuracy"
    [--note note.md] [--plots bench/results] > bench/results/accuracy.md

Plots (SVG) need matplotlib, Debian's python3-matplotlib. Fails when a line is
not one of that bench.
"""

import argparse
import os
import sys

import bench_table

HEADER = ("| row | budget | right % (95 %) | against full | tokens right % | "
          "operand present % | destroyed %, end / average | "
          "KiB in T0 / T1 / T2 | tokens |")


def number(value, digits=1):
    text = f"{value:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def table_row(line):
    m = line["metrics"]
    is_full = line["params"]["row"] == "full"
    against = "–" if is_full else (
        f"{m['against_full']:+.1f} ± {number(m['against_full_95'])}")
    kib = " / ".join(number(m[f"t{i}_bytes"] / 1024, 0) for i in range(3))
    cells = [
        line["params"]["row"], line["params"]["budget"],
        f"**{number(line['value'])}** ({number(m['low_95'])} to "
        f"{number(m['high_95'])})", against, number(m["tokens_right"]),
        number(m["operand_present"]),
        f"{number(m['destroyed_at_end'])} / {number(m['destroyed_average'])}",
        kib, number(m["tokens"], 0)]
    return "| " + " | ".join(cells) + " |"


def by_task(lines):
    tasks = {}
    for line in lines:
        tasks.setdefault(line["params"]["task"], []).append(line)
    return tasks


def gate_table(tasks):
    out = ["| task | programs | full cache, right % | gate 95 % |",
           "|" + " --- |" * 4]
    for task, lines in tasks.items():
        full = lines[0]
        met = "met" if full["met"] else "**missed**"
        out.append(f"| {task} | {full['params']['programs']} | "
                   f"{number(full['value'])} | {met} |")
    return out


def report(lines, command, note, plots):
    first, tasks = lines[0], by_task(lines)
    for task, rows in tasks.items():
        if rows[0]["params"]["row"] != "full":
            raise ValueError(f"task {task} begins without its row full")
    seeds = sorted({line["params"]["seed"] for line in lines})
    out = ["# farkv-bench accuracy", "", f"`{command}`", "",
           f"Commit {first['commit']}, {first['cpu']}; seed "
           f"{', '.join(map(str, seeds))}. All rows of a task run the same "
           "programs. Intervals are 95 %: Wilson's for a share, normal for the "
           "mean of paired differences, in points."]
    if note:
        out += ["", note.strip()]
    out += ["", "## Gate", ""] + gate_table(tasks)
    for name, caption in plots:
        out += ["", f"![{caption}]({name})"]
    for task, rows in tasks.items():
        out += ["", f"## {task}", "", HEADER, "|" + " --- |" * 9]
        out += [table_row(line) for line in rows]
    return "\n".join(out) + "\n"


def scatter(path, tasks, x_of, x_label, chosen):
    """One panel per task; x_of gives a share in per cent."""
    import matplotlib
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "farkv"  # the same bytes each time
    from matplotlib import pyplot
    columns = min(3, len(tasks))
    rows = -(-len(tasks) // columns)
    figure, axes = pyplot.subplots(rows, columns, squeeze=False, sharey=True,
                                   figsize=(4.2 * columns, 3.2 * rows))
    kinds = {"none": "o", "bounds": "s", "fixed": "^", "proportional": "v"}
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
             if len(rows) > 1}
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
        plots = draw(arguments.plots, lines) if arguments.plots else []
        text = report(lines, arguments.command, note, plots)
    except ValueError as error:
        sys.exit(f"accuracy_report: {error}")
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
