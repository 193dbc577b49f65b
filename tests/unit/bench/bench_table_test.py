"""Runs scripts/bench_table.py, whose path is the only argument."""

import json
import subprocess
import sys
import unittest

SCRIPT = None

LINE = {
    "bench": "matmul", "case": "m1-read", "value": 27.2631, "unit": "GB/s",
    "better": "higher", "yardstick": {"name": "plain read", "value": 30.0},
    "ratio": 0.912346, "goal": 0.9, "met": True, "runs": 21, "spread": 0.0312,
    "params": {"m": 1, "threads": 1}, "metrics": {}, "commit": "0123456789ab",
    "cpu": "Test CPU"}


def run(lines, *arguments):
    return subprocess.run(
        [sys.executable, SCRIPT, "--command", "farkv-bench matmul",
         *arguments],
        input="".join(line + "\n" for line in lines), capture_output=True,
        text=True, check=False)


class BenchTableTest(unittest.TestCase):

    def test_a_table_names_command_commit_and_every_case(self):
        plain = dict(LINE, case="m4", yardstick=None, ratio=None, goal=None,
                     met=None, params={"m": 4, "threads": 1})
        done = run([json.dumps(LINE), json.dumps(plain)])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("`farkv-bench matmul`", done.stdout)
        self.assertIn("Commit 0123456789ab, Test CPU", done.stdout)
        self.assertIn("All cases: threads 1.", done.stdout)
        self.assertIn("| m1-read | 27.3 GB/s | plain read: 30 | 0.91 | 0.90 |"
                      " yes | 3 % | m 1 | – |", done.stdout)
        self.assertIn("| m4 | 27.3 GB/s | – | – | – | – | 3 % | m 4 | – |",
                      done.stdout)

    def test_a_line_with_a_missing_field_is_refused(self):
        short = {key: value for key, value in LINE.items() if key != "cpu"}
        done = run([json.dumps(LINE), json.dumps(short)])
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("line 2", done.stderr)

    def test_lines_of_two_subcommands_are_refused(self):
        done = run([json.dumps(LINE), json.dumps(dict(LINE, bench="decode"))])
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("decode", done.stderr)

    def test_nothing_on_stdin_is_refused(self):
        self.assertNotEqual(run([]).returncode, 0)


if __name__ == "__main__":
    SCRIPT = sys.argv.pop()
    unittest.main()
