"""What the programs say about themselves: flags, defaults, commands."""

import os
import re
import subprocess

PROGRAMS = ("farkv-memory-node", "farkv-worker", "farkvctl")


def help_of(bin_dir, program, *commands):
    """The text of --help; None when there is no such command."""
    answer = subprocess.run(
        [os.path.join(bin_dir, program), *commands, "--help"],
        capture_output=True, text=True, timeout=60, check=False)
    return answer.stdout if answer.returncode == 0 else None


def flags_in(text):
    """{"--listen": "127.0.0.1:7401"}, of a help text; None: no default."""
    flags = {}
    for line in text.splitlines():
        match = re.match(r"\s+((?:-\w,)?--[a-z0-9-]+(?:,--?[\w-]+)*)"
                         r"(?: [A-Z]+[^ =]*)?(?:=(\S+))?", line)
        if match:
            for name in match.group(1).split(","):
                flags[name] = match.group(2)
    return flags


class Programs:
    """Flags of each program; those of farkvctl by its commands."""

    def __init__(self, bin_dir):
        self.bin_dir = bin_dir
        self.flags = {}
        for program in PROGRAMS:
            text = help_of(bin_dir, program)
            if text is None:
                raise SystemExit(f"{program} --help failed in {bin_dir}")
            self.flags[program] = flags_in(text)
        self.commands = {}

    def command_flags(self, commands):
        """Of `farkvctl COMMANDS...`; None when there is no such command."""
        key = tuple(commands)
        if key not in self.commands:
            text = help_of(self.bin_dir, "farkvctl", *key)
            self.commands[key] = (None if text is None else
                                  {**self.flags["farkvctl"], **flags_in(text)})
        return self.commands[key]

    def subcommands(self, commands):
        text = help_of(self.bin_dir, "farkvctl", *commands) or ""
        _, _, below = text.partition("\nSubcommands:\n")
        return re.findall(r"^  ([a-z]+)", below, re.MULTILINE)

    def check_command_line(self, words):
        """Violations of the words behind "farkvctl"."""
        path = []
        for word in words:
            if word not in self.subcommands(path):
                break
            path.append(word)
        flags = self.command_flags(path)
        if not path or self.subcommands(path):
            yield f"farkvctl {' '.join(words)}: is no whole command"
            return
        for word in words[len(path):]:
            name = word.split("=")[0]
            if name.startswith("-") and name not in flags:
                yield f"farkvctl {' '.join(path)} has no flag {name}"
