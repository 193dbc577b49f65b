"""Runs scripts/accuracy_report.py, whose path is the only argument."""

import json
import subprocess
import sys
import unittest

SCRIPT = None


def line(task, row, value, **metrics):
    shares = {"low_95": value - 2, "high_95": value + 1, "against_full": -4.5,
              "against_full_95": 2.0, "tokens_right": 99.0,
              "operand_present": 98.0, "destroyed_at_end": 3.0,
              "destroyed_average": 2.5, "tokens": 322.0, "t0_bytes": 2048.0,
              "t1_bytes": 1024.0, "t2_bytes": 0.0}
    is_full = row == "full"
    return {
        "bench": "accuracy", "case": f"{task}/{row}", "value": value,
        "unit": "% right", "better": "higher",
        "yardstick": {"name": "all programs", "value": 100.0},
        "ratio": value / 100, "goal": 0.95 if is_full else None,
        "met": value >= 95 if is_full else None, "runs": 1, "spread": 0.0,
        "params": {"task": task, "row": row,
                   "budget": "none" if is_full else "fixed", "t0_ratio": 1.0,
                   "programs": 200, "seed": 1},
        "metrics": {**shares, **metrics}, "commit": "0123456789ab",
        "cpu": "Test CPU"}


def run(lines):
    return subprocess.run(
        [sys.executable, SCRIPT, "--command", "farkv-bench accuracy"],
        input="".join(json.dumps(item) + "\n" for item in lines),
        capture_output=True, text=True, check=False)


class AccuracyReportTest(unittest.TestCase):

    def test_a_report_has_the_gate_and_a_table_per_task(self):
        done = run([line("T2r-20", "full", 100.0),
                    line("T2r-20", "h2o-fixed-50", 95.5),
                    line("T3-4", "full", 90.0)])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("| T2r-20 | 200 | 100 | met |", done.stdout)
        self.assertIn("| T3-4 | 200 | 90 | **missed** |", done.stdout)
        self.assertIn("| h2o-fixed-50 | fixed | **95.5** (93.5 to 96.5) | "
                      "-4.5 ± 2 | 99 | 98 | 3 / 2.5 | 2 / 1 / 0 | 322 |",
                      done.stdout)
        self.assertIn("## T3-4", done.stdout)

    def test_a_task_without_its_full_row_is_refused(self):
        done = run([line("T2r-20", "h2o-fixed-50", 95.5)])
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("T2r-20", done.stderr)

    def test_lines_of_another_bench_are_refused(self):
        done = run([dict(line("T2r-20", "full", 100.0), bench="decode")])
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("decode", done.stderr)


if __name__ == "__main__":
    SCRIPT = sys.argv.pop()
    unittest.main()
