"""Runs scripts/accuracy_report.py --plots; the script's path is the only
argument. Exits with 77, which ctest shows as skipped, where matplotlib is not
installed (scripts/setup.sh installs it)."""

import importlib.util
import os
import sys
import tempfile
import unittest
import xml.etree.ElementTree

import accuracy_report_test
from accuracy_report_test import line, run

NAMES = ("accuracy_destroyed.svg", "accuracy_t0.svg")
TIERS = {"t0_tokens": 60.0, "t1_tokens": 140.0, "t2_tokens": 0.0}


def lines():
    tiers = line("T2r-20", "tiers-30", 100.0, **TIERS)
    tiers["params"]["budget"] = "none"
    return [line("T2r-20", "full", 100.0, **TIERS), tiers,
            line("T2r-20", "recency-fixed-25", 6.0, destroyed_average=37.0,
                 **TIERS)]


class AccuracyPlotsTest(unittest.TestCase):

    def draw(self):
        """The bytes of the plots, and the report."""
        with tempfile.TemporaryDirectory() as folder:
            done = run(lines(), "--plots", folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertCountEqual(os.listdir(folder), NAMES)
            plots = {}
            for name in NAMES:
                with open(os.path.join(folder, name), "rb") as file:
                    plots[name] = file.read()
            return plots, done.stdout

    def test_both_plots_are_svg_with_axes_and_a_panel_per_task(self):
        plots, report = self.draw()
        labels = dict(zip(NAMES, ("destroyed on average, %",
                                  "live tokens in T0, %")))
        for name, data in plots.items():
            root = xml.etree.ElementTree.fromstring(data)
            self.assertTrue(root.tag.endswith("}svg"), root.tag)
            text = "".join(root.itertext())
            self.assertIn("T2r-20", text)
            self.assertIn(labels[name], text)
            self.assertIn("programs right, %", text)
            self.assertIn(f"]({name})", report)

    def test_destroying_rows_are_in_the_first_plot_only(self):
        plots, _ = self.draw()
        self.assertIn(b">fixed<", plots[NAMES[0]])
        self.assertNotIn(b">fixed<", plots[NAMES[1]])

    def test_the_same_lines_give_the_same_bytes(self):
        self.assertEqual(self.draw()[0], self.draw()[0])


if __name__ == "__main__":
    accuracy_report_test.SCRIPT = sys.argv.pop()
    if importlib.util.find_spec("matplotlib") is None:
        print("SKIPPED: matplotlib is not installed, no plot was drawn; "
              "scripts/setup.sh installs Debian's python3-matplotlib")
        sys.exit(77)
    unittest.main()
