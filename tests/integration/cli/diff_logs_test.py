"""`strata diff`, `patch` and `report` over graphs of a log.

    diff_logs_test.py STRATA
"""

import glob
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))

from small_graphs import BEFORE  # noqa: E402
from strata_case import LOGS, StrataCase, main  # noqa: E402

LOG = os.path.join(LOGS, "graph_trainer_2layer_torch2.14.1.log.zst")


class LogTest(StrataCase):
    def test_passes_of_a_log(self):
        done = self.run_strata("diff", f"{LOG}#pass=remove_b2b_transpose_pass:before",
                               f"{LOG}#pass=remove_b2b_transpose_pass:after", "--format", "json")
        self.assertEqual(done.returncode, 1, done.stderr)
        diff = json.loads(done.stdout)
        # Names survive this pass: they are the truth.
        self.assertEqual([pair for pair in diff["pairs"] if pair["before"] != pair["after"]], [])
        self.assertEqual((diff["summary"]["deleted"], diff["summary"]["inserted"]), (45, 0))

    def test_a_pass_that_changes_nothing(self):
        done = self.run_strata("diff", f"{LOG}#pass=remove_detach_pass:before",
                               f"{LOG}#pass=remove_detach_pass:after")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_operators_replaced_in_a_row(self):
        done = self.run_strata("diff", f"{LOG}#pass=normalize_view_ops_as_reshape:before",
                               f"{LOG}#pass=normalize_view_ops_as_reshape:after", "--format", "json")
        diff = json.loads(done.stdout)
        self.assertEqual((diff["deleted"], diff["inserted"]), ([], []))
        self.assertEqual(diff["summary"]["changed"], 100)

    def test_patches_between_graphs_of_a_log(self):
        refs = [f"{LOG}#pass={name}:{moment}" for name, moment in (
            ("remove_b2b_transpose_pass", "before"), ("remove_b2b_transpose_pass", "after"),
            ("normalize_view_ops_as_reshape", "after"))] + [self.write("small.txt", BEFORE)]
        for before in refs:
            for after in refs:
                self.run_strata("diff", before, after, "--patch", "p")
                done = self.run_strata("patch", before, "p", "-o", "out.txt")
                self.assertEqual(done.returncode, 0, (before, after, done.stderr))
                done = self.run_strata("diff", "out.txt", after, "--format", "json")
                self.assertEqual(done.returncode, 0, (before, after))
                diff = json.loads(done.stdout)
                self.assertEqual(diff["before"]["fingerprint"], diff["after"]["fingerprint"])
                self.assertEqual(diff["summary"]["renamed"], 0)

    def test_reports_of_a_pass_of_two_graphs_and_of_two_runs(self):
        name = "remove_b2b_transpose_pass"
        other = self.run_strata("import", LOG, "-o", "t.strata")
        self.assertEqual(other.returncode, 0, other.stderr)
        log = os.path.basename(LOG)
        for refs, title in (([f"{LOG}#pass={name}"], f"{log}#pass={name}:before → "),
                            ([f"{LOG}#pass={name}", "--full-paths"], f"{LOG}#pass={name}:before → "),
                            ([f"t.strata#pass={name},run=1"], f"t.strata#pass={name}:before,run=1 → "),
                            ([f"{LOG}#pass={name}:after", f"{LOG}#pass=1:before"], f"{log}#pass=1:before"),
                            ([LOG, "t.strata"], "t.strata#run=1")):
            done = self.run_strata("report", *refs, "-o", "r.html")
            self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
            with open(os.path.join(self.folder, "r.html"), encoding="utf-8") as file:
                self.assertIn(title, file.read())
        self.assertIn("missing.log", self.fails("report", LOG, "missing.log", "-o", "x.html"))

    def test_malformed_logs_do_not_crash(self):
        for path in glob.glob(os.path.join(LOGS, "malformed", "*.log")):
            done = self.run_strata("diff", path, path)
            self.assertIn(done.returncode, (0, 2), path)


if __name__ == "__main__":
    main()
