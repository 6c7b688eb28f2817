"""`strata train --trace` records what ran.

    train_trace_test.py STRATA
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CONFIG = """\
model = "llama3"
dim = 16
n_layers = 2
n_heads = 4
n_kv_heads = 2
vocab_size = 24
multiple_of = 8
seq_len = 6
batch_size = 2
steps = 3
"""


class TrainTraceTest(unittest.TestCase):
    strata = ""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        with open(self.path("config.toml"), "w", encoding="utf-8") as file:
            file.write(CONFIG)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def run_strata(self, *words):
        result = subprocess.run([self.strata, *words], cwd=self.folder.name, capture_output=True, text=True,
                                timeout=120, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def train(self, trace, *options):
        return self.run_strata("train", "config.toml", "--trace", trace, *options)

    def ls(self, trace):
        (run,) = json.loads(self.run_strata("ls", trace, "--json"))["runs"]
        return run

    def test_what_ran_is_the_graph_that_the_last_changing_pass_left(self):
        self.train("t.strata")
        run = self.ls("t.strata")
        self.assertEqual((run["kind"], run["status"]), ("train", "finished"))
        graphs = {graph["name"]: graph for graph in run["graphs"]}
        self.assertEqual(sorted(graphs), ["optimizer", "step"])
        executed = {entry["graph"]: entry for entry in run["executed"]}
        self.assertEqual(sorted(executed), ["optimizer", "step"])
        for name, entry in executed.items():
            self.assertEqual((entry["first_step"], entry["last_step"]), (1, 3))
            self.assertEqual(entry["fingerprint"], graphs[name]["fingerprint"])
        changed = [p for p in run["passes"] if p["graph"] == "step" and p["status"] == "ok"]
        self.assertEqual(executed["step"]["pass"], changed[-1]["index"])
        self.assertEqual(executed["step"]["fingerprint"], changed[-1]["after"]["fingerprint"])

    def test_without_passes_the_traced_graph_runs_and_trains_the_same(self):
        table = self.train("plain.strata", "--passes", "")
        self.assertEqual(table, self.train("passes.strata"))
        run = self.ls("plain.strata")
        self.assertEqual(run["passes"], [])
        for entry in run["executed"]:
            self.assertIsNone(entry["pass"])
        self.assertNotEqual(run["executed"][0]["fingerprint"], self.ls("passes.strata")["executed"][0]["fingerprint"])

    def test_the_same_run_records_the_same_graphs(self):
        first, second = (self.train(name) for name in ("a.strata", "b.strata"))
        self.assertEqual(first, second)
        for selector in ("graph=step", "graph=optimizer", "graph=step,pass=canonicalize:before"):
            self.assertEqual(self.run_strata("show", f"a.strata#{selector}"),
                             self.run_strata("show", f"b.strata#{selector}"))

    def test_the_graphs_of_a_trace_are_read_back_and_its_file_is_sound(self):
        self.train("t.strata")
        self.run_strata("check", "t.strata")
        text = self.run_strata("show", "t.strata#graph=step")
        for part in ("aten._scaled_dot_product_flash_attention_for_cpu.default", "layers.1.feed_forward.w2", "backward"):
            self.assertIn(part, text)


if __name__ == "__main__":
    TrainTraceTest.strata = os.path.abspath(sys.argv.pop(1))
    unittest.main()
