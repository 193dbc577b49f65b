"""Whether the packages of an image bring the libraries of its programs."""

import functools
import os
import re
import shutil
import subprocess


def lines_of(*command):
    answer = subprocess.run(command, capture_output=True, text=True, timeout=60,
                            check=False)
    return answer.stdout.splitlines()


def packages_of(stage):
    """What a stage of a Dockerfile installs."""
    text = stage.replace("\\\n", " ")
    packages = set()
    for found in re.findall(r"apt-get install ([^&\n]*)", text):
        packages |= {w for w in found.split() if not w.startswith("-")}
    return packages


def needed_by(binary):
    """Paths of the libraries that a program names itself."""
    names = {match.group(1) for line in lines_of("readelf", "-d", binary)
             if (match := re.search(r"\(NEEDED\).*\[(.*)\]", line))}
    paths = {}
    for line in lines_of("ldd", binary):
        match = re.match(r"\s*(\S+) => (/\S+)", line)
        if match:
            paths[match.group(1)] = os.path.realpath(match.group(2))
    return {name: paths[name] for name in names if name in paths}


@functools.lru_cache
def package_with(path):
    for place in (path, path.removeprefix("/usr")):
        for line in lines_of("dpkg-query", "-S", place):
            return line.split(":")[0]
    return None


@functools.lru_cache
def depends():
    """What each installed package depends on, alternatives too."""
    table = {}
    for line in lines_of("dpkg-query", "-W", "-f", "${Package}\t${Depends}\n"):
        package, _, names = line.partition("\t")
        table[package] = [re.split(r"[ :(]", alternative.strip())[0]
                          for part in names.split(",")
                          for alternative in part.split("|")]
    return table


def with_dependencies(packages):
    """The packages and all that they depend on, as far as installed here."""
    known, waiting = set(), list(packages)
    while waiting:
        package = waiting.pop()
        if package in known:
            continue
        known.add(package)
        waiting += depends().get(package, [])
    return known


def check_libraries(stage, programs, bin_dir):
    """Violations of the last stage; nothing where Debian's tools are missing."""
    if not all(map(shutil.which, ("dpkg-query", "readelf", "ldd"))):
        return
    there = with_dependencies(packages_of(stage))
    for program in programs:
        for name, path in sorted(needed_by(f"{bin_dir}/{program}").items()):
            package = package_with(path)
            if package is not None and package not in there:
                yield f"{program} needs {name} of {package}, which is missing"
