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


def text_line(row, nats, **metrics):
    made = line("text", row, nats, perplexity=9.87, **metrics)
    return dict(made, unit="nats per token", better="lower",
                ratio=None if row == "full" else 2.25 / nats)


def run(lines, *options):
    return subprocess.run(
        [sys.executable, SCRIPT, "--command", "farkv-bench accuracy", *options],
        input="".join(json.dumps(item) + "\n" for item in lines),
        capture_output=True, text=True, check=False)


class AccuracyReportTest(unittest.TestCase):

    def test_a_report_has_the_gate_and_a_table_per_task(self):
        done = run([line("T2r-20", "full", 100.0, lookups_right=99.95,
                         lookups_gate=99.9),
                    line("T2r-20", "h2o-fixed-50", 95.5),
                    line("T2-48", "full", 97.0, lookups_right=99.85,
                         lookups_gate=99.9),
                    line("T3-4", "full", 90.0)])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("| T2r-20 | 200 | 100 | met | 99.95 | met |", done.stdout)
        self.assertIn("| T2-48 | 200 | 97 | met | 99.85 | **missed** |",
                      done.stdout)
        # A line of before the gate of lookups.
        self.assertIn("| T3-4 | 200 | 90 | **missed** | – | – |", done.stdout)
        self.assertIn("| h2o-fixed-50 | fixed | **95.5** (93.5 to 96.5) | "
                      "-4.5 ± 2 | 99 | 98 | 3 / 2.5 | 2 / 1 / 0 | 322 |",
                      done.stdout)
        self.assertIn("## T3-4", done.stdout)

    def test_a_task_without_its_full_row_is_refused(self):
        done = run([line("T2r-20", "h2o-fixed-50", 95.5)])
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("T2r-20", done.stderr)

    def test_of_one_case_the_line_with_the_most_programs_counts(self):
        few = line("T2r-20", "h2o-fixed-50", 40.0)
        few["params"]["programs"] = 60
        done = run([line("T2r-20", "full", 100.0), few,
                    line("T2r-20", "h2o-fixed-50", 45.0), few])
        self.assertIn("**45**", done.stdout)
        self.assertNotIn("**40**", done.stdout)

    def test_a_row_that_differs_names_its_programs_and_its_commit(self):
        few = dict(line("T2r-20", "h2o-fixed-50", 40.0), commit="fedcba987654")
        few["params"] = dict(few["params"], programs=60)
        done = run([line("T2r-20", "full", 100.0),
                    line("T2r-20", "tiers-10", 100.0), few])
        self.assertIn("Commit 0123456789ab,", done.stdout)
        self.assertIn("| h2o-fixed-50, 60 programs, at fedcba987654 |",
                      done.stdout)
        self.assertIn("| tiers-10 |", done.stdout)

    def test_a_text_has_a_table_of_its_own(self):
        done = run([text_line("full", 2.25),
                    text_line("t2-8bit", 2.26, against_full=0.01,
                              against_full_95=0.002, t2_of_t1_bytes=67.6,
                              t2_of_t1_bytes_heads_of_128=67.4)])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("| t2-8bit | fixed | **2.2600** | +0.0100 ± 0.002 | "
                      "99.56 | 9.87 | 3 / 2.5 | 2 / 1 / 0 |", done.stdout)
        self.assertIn("| t2-8bit | 67.6 | 67.4 |", done.stdout)
        self.assertNotIn("| text |", done.stdout)  # no gate

    def test_ranges_of_values_are_listed(self):
        ranges = {"value_range_median": 2.0, "value_range_p90": 3.0,
                  "value_range_p99": 4.5, "value_range_largest": 9.0,
                  "first_page_rows": 6.25, "first_page_in_top_quarter": 8.0}
        done = run([text_line("full", 2.25),
                    text_line("tiers-10", 2.25, **ranges)])
        self.assertIn("| text | 2 | 3 | 4.5 | 9 | 4.5 | 6.2 / 8 |",
                      done.stdout)

    def test_lines_of_another_bench_are_refused(self):
        done = run([dict(line("T2r-20", "full", 100.0), bench="decode")])
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("decode", done.stderr)


if __name__ == "__main__":
    SCRIPT = sys.argv.pop()
    unittest.main()
