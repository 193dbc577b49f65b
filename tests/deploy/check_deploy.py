"""Checks deploy/ and the operators' docs against the built programs.

usage: check_deploy.py --bin-dir DIR [--root DIR]

Prints one line per violation and exits with 1 when there is any. Manifests are
rendered by `kubectl kustomize`; without kubectl the raw files are checked for
their flags alone, and that is said. Exits with 77 when there is no yaml module.
"""

import argparse
import glob
import json
import os
import re
import shutil
import subprocess
import sys

try:
    import yaml
except ImportError:
    print("skipped: no Python module yaml (Debian: python3-yaml)")
    sys.exit(77)

import fields
import images
import manifests
import operators
import programs as programs_module

ROOT = os.path.normpath(
    os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
METRIC = re.compile(r"\bfarkv_(?:node|worker)_[a-z0-9_]+")
SUFFIXES = ("_bucket", "_sum", "_count")


def read(*parts):
    with open(os.path.join(*parts), encoding="utf-8") as file:
        return file.read()


def documents(text):
    return [d for d in yaml.safe_load_all(text) if d]


def metric_table(root):
    """{name: type} of docs/METRICS.md."""
    rows = re.findall(r"^\| `(farkv_\w+)` \| (\w+) ",
                      read(root, "docs", "METRICS.md"), re.MULTILINE)
    return dict(rows)


def check_metrics(text, table):
    """Names of metrics in any text that are not in the table."""
    for name in sorted(set(METRIC.findall(text))):
        base = name
        for suffix in SUFFIXES:
            if name.endswith(suffix) and (
                    table.get(name.removesuffix(suffix)) == "histogram"):
                base = name.removesuffix(suffix)
        if base not in table:
            yield f"no metric {name}"
        elif table[base] == "histogram" and base == name:
            yield f"{name} is a histogram: use {name}_bucket, _sum or _count"


def expressions(dashboard):
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"]


def check_dashboard(text, table):
    dashboard = json.loads(text)
    ids = [panel["id"] for panel in dashboard["panels"]]
    if len(set(ids)) != len(ids):
        yield "two panels have one id"
    for panel in dashboard["panels"]:
        if panel["type"] != "row" and not panel.get("targets"):
            yield f"panel {panel['title']} shows nothing"
    for title, expression in expressions(dashboard):
        if not METRIC.search(expression):
            yield f"panel {title}: {expression} names no metric"
        if expression.count("(") != expression.count(")"):
            yield f"panel {title}: parentheses of {expression}"
        for message in check_counters(expression, table):
            yield f"panel {title}: {message}"
    yield from check_metrics(text, table)


def check_counters(expression, table):
    """A counter says something only by its rate."""
    for match in re.finditer(METRIC, expression):
        name = match.group(0)
        kind = table.get(name)
        before = expression[:match.start()]
        if kind == "counter" and not re.search(
                r"(rate|increase|resets)\($", before):
            yield f"{name} is a counter, and this is no rate of it"


def check_rules(text, table):
    names = set()
    for group in yaml.safe_load(text)["groups"]:
        for rule in group["rules"]:
            name = rule.get("alert", "?")
            if name in names:
                yield f"two rules are called {name}"
            names.add(name)
            if rule.get("labels", {}).get("severity") not in (
                    "critical", "warning"):
                yield f"{name}: its severity is neither critical nor warning"
            for key in ("summary", "description"):
                if not rule.get("annotations", {}).get(key):
                    yield f"{name}: no {key}"
            for message in check_counters(rule["expr"], table):
                yield f"{name}: {message}"
    yield from check_metrics(text, table)


def check_dockerfile(text, programs):
    """Multi-stage, not root, its ports and programs as the manifests want."""
    stages = re.split(r"^(?=FROM )", text, flags=re.MULTILINE)[1:]
    if len(stages) < 2:
        yield "has one stage"
    last = stages[-1]
    if not re.search(r"^USER 65532", last, re.MULTILINE):
        yield "runs as root"
    targets = re.search(r"--target ([\w -]+?) *(?:\\|$)", text,
                        re.MULTILINE).group(1).split()
    if "farkvctl" not in targets:
        yield "lacks farkvctl"
    # The stage that takes the programs has their libraries, too.
    taken = [s for s in stages if "COPY --from=build " in s]
    there = " ".join(taken[-1:])
    copied = re.findall(r"^COPY --from=build (.*)$",
                        there.replace("\\\n", " "), re.MULTILINE)
    for target in targets:
        if target not in programs.flags:
            yield f"builds {target}, which is none of our programs"
        if not any(f"/{target} " in line for line in copied):
            yield f"builds {target} and leaves it behind"
    if there != last and not re.search(
            rf"collect\.sh /image {' '.join(targets)}$", there, re.MULTILINE):
        yield f"does not collect {' '.join(targets)}"
    entry = json.loads(re.search(r"^ENTRYPOINT (.*)$", last,
                                 re.MULTILINE).group(1))[0]
    exposed = re.search(r"^EXPOSE (.*)$", last, re.MULTILINE).group(1).split()
    for flag, value in programs.flags.get(entry, {}).items():
        port = (value or "").rpartition(":")[2]
        if flag.endswith("listen") and port not in ("", "0", *exposed):
            yield f"does not expose {port}, the port of {flag}"
    known = [target for target in targets if target in programs.flags]
    yield from images.check_libraries(there, known, programs.bin_dir)


def command_lines(text):
    """(program, words behind it) in the code blocks of a text."""
    for block in re.findall(r"```[^\n]*\n(.*?)```", text, re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            line = line.split("#")[0]
            match = (re.search(r"(?:^|[/ (|])(farkvctl) (\S[^|;)>]*)", line) or
                     re.match(r"(?:[\w.-]+/)*(farkv-memory-node|farkv-worker)"
                              r"((?: [^|;)>&]*)?)", line))
            if match:
                yield match.group(1), match.group(2).split()


def script_flags(root=ROOT):
    """Flags that the scripts explain in the comment at their top."""
    flags = set()
    for path in glob.glob(os.path.join(root, "scripts", "*.sh")):
        top = re.match(r"(?:#.*\n)*", read(path)).group(0)
        flags |= set(re.findall(r"--[a-z][a-z0-9-]*", top))
    return flags


def check_docs(text, programs, table):
    """Commands, flags and metrics that a text names must exist."""
    for program, words in command_lines(text):
        if program == "farkvctl":
            yield from programs.check_command_line(words)
            continue
        for flag in [word.split("=")[0] for word in words]:
            if flag not in programs.flags[program]:
                yield f"{program} has no flag {flag}"
    known = {flag for flags in programs.flags.values() for flag in flags}
    known |= script_flags()
    for words in re.findall(r"`farkvctl ([^`]+)`", text):
        yield from programs.check_command_line(words.split())
    for command in (("drain",), ("verify",), ("preflight",), ("plan",),
                    ("generate",), ("top",), ("get", "pages")):
        known |= set(programs.command_flags(command) or {})
    for flag in sorted(set(re.findall(r"`(--[a-z][a-z0-9-]*)", text))):
        some = flag.endswith("-")  # `--tls-*`
        if not any(name == flag or some and name.startswith(flag)
                   for name in known):
            yield f"no program has a flag {flag}"
    yield from check_metrics(text, table)


def render(root, folder):
    """Objects of a kustomization; raises where kubectl refuses it."""
    answer = subprocess.run(
        ["kubectl", "kustomize", os.path.join(root, "deploy", "k8s", folder)],
        capture_output=True, text=True, timeout=120, check=False)
    if answer.returncode != 0:
        raise ValueError(answer.stderr.strip().splitlines()[0])
    return documents(answer.stdout)


def check_raw(root, programs):
    """What can be said of manifests that nobody has rendered."""
    known = {"FARKV_" + flag[2:].upper().replace("-", "_")
             for program in ("farkv-memory-node", "farkv-worker")
             for flag in programs.flags[program]}
    for path in sorted(glob.glob(root + "/deploy/k8s/**/*.yaml",
                                 recursive=True)):
        text = read(path)
        documents(text)  # is YAML
        for name in re.findall(r"- (FARKV_\w+)=", text):
            if name not in known:
                yield f"{os.path.relpath(path, root)}: no flag has the twin {name}"


def check_kustomizations(root, programs):
    yield from check_raw(root, programs)
    if shutil.which("kubectl") is None:
        print("skipped: no kubectl, so that manifests are not rendered")
        return
    overlays = sorted(os.listdir(os.path.join(root, "deploy/k8s/overlays")))
    for folder in ["base", *(f"overlays/{name}" for name in overlays)]:
        try:
            objects = render(root, folder)
        except ValueError as error:
            yield f"{folder}: {error}"
            continue
        for message in [*fields.check_fields(objects),
                        *operators.check_operators(objects),
                        *manifests.check_objects(objects, programs)]:
            yield f"{folder}: {message}"


def check_all(root, programs):
    table = metric_table(root)
    yield from check_kustomizations(root, programs)
    for folder, check in (("deploy/grafana/*.json", check_dashboard),
                          ("deploy/prometheus/*.yaml", check_rules)):
        for path in sorted(glob.glob(os.path.join(root, folder))):
            for message in check(read(path), table):
                yield f"{os.path.relpath(path, root)}: {message}"
    for path in sorted(glob.glob(root + "/deploy/images/*.Dockerfile")):
        for message in check_dockerfile(read(path), programs):
            yield f"{os.path.relpath(path, root)}: {message}"
    for name in ("README.md", "docs/OPERATING.md", "docs/TROUBLESHOOTING.md"):
        for message in check_docs(read(root, name), programs, table):
            yield f"{name}: {message}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin-dir", required=True)
    parser.add_argument("--root", default=ROOT)
    arguments = parser.parse_args()
    programs = programs_module.Programs(arguments.bin_dir)
    violations = list(check_all(os.path.normpath(arguments.root), programs))
    for line in violations:
        print(line)
    print(f"check_deploy: {len(violations)} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
