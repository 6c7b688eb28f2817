"""`strata bisect` as scripts use it, over logs made by hand and edited fixtures.

    bisect_test.py STRATA
"""

import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))

from run_logs import (  # noqa: E402
    graph, GRAPH_TRAINER, inference, LAYERS, log, pipeline, RunsCase, TWO_RANKS, with_relu, without_detach,
)
from strata_case import main, read_log  # noqa: E402


class BisectTest(RunsCase):
    def bisect(self, first, second, code):
        self.write("a.log", log(first))
        self.write("b.log", log(second))
        return self.json("bisect", "a.log", "b.log", code=code)

    def test_equal_runs(self):
        report = self.bisect(pipeline(LAYERS), pipeline(LAYERS), 0)
        self.assertEqual((report["schema"], report["pass"], report["node"]), ("strata.bisect/1", None, None))

    def test_a_pass_that_does_something_else(self):
        steps = pipeline(LAYERS)
        steps[3] = ("fuse", without_detach(LAYERS))
        report = self.bisect(pipeline(LAYERS), steps, 1)
        self.assertEqual((report["pass"], report["pass_name"], report["node"]), (2, "fuse", "si"))
        self.assertEqual(report["what"], "change aten.relu.default to aten.silu.default")
        self.assertFalse(report["inputs_differ"])
        for ref in report["refs"]:
            self.assertIn("si", self.nodes_of(ref))

    def test_inputs_that_differ(self):
        report = self.bisect(pipeline(LAYERS), pipeline(with_relu(LAYERS)), 1)
        self.assertEqual((report["pass"], report["inputs_differ"], report["node"]), (None, True, "si"))

    def test_an_additional_pass_that_changes_nothing_for_good(self):
        steps = pipeline(LAYERS)
        steps.insert(2, ("twice", LAYERS))
        self.assertTrue(self.bisect(pipeline(LAYERS), steps, 0)["equal"])

    def test_an_additional_pass_parts_the_runs(self):
        steps = pipeline(LAYERS)
        relu = [("relu", with_relu(LAYERS)), ("remove_detach", without_detach(with_relu(LAYERS)))]
        report = self.bisect(steps[:3], steps[:2] + relu, 1)
        self.assertEqual((report["pass_name"], report["pass_before"], report["pass_after"]), ("relu", None, 1))
        self.assertTrue(report["what"].startswith("pass 1 'relu' runs only in b.log#run=1: "), report["what"])
        self.assertEqual(report["node"], "si")

    def test_a_missing_pass_at_the_end(self):
        report = self.bisect(pipeline(LAYERS), pipeline(LAYERS)[:3], 1)
        self.assertEqual((report["pass"], report["pass_name"], report["pass_after"]), (2, "fuse", None))
        # What the pass does, not what the other run lacks.
        self.assertEqual(report["what"],
                         "pass 2 'fuse' runs only in a.log#run=1: change aten.silu.default to aten.relu.default")
        self.assertEqual((report["node_before"], report["node_after"]), ("si", "si"))
        self.assertEqual([ref.split("#")[0] for ref in report["refs"]], ["a.log", "b.log"])
        self.assertIn("\n  strata diff \"b.log#", self.run_strata("bisect", "a.log", "b.log").stdout)

    def test_texts_are_runs_of_one_graph(self):
        self.write("a.txt", graph(LAYERS))
        self.write("b.txt", graph(with_relu(LAYERS)))
        self.assertEqual(self.json("bisect", "a.txt", "b.txt", code=1)["node"], "si")

    def test_edited_fixture(self):
        """Of the recorded run pass 4 removes one more node."""
        text = read_log(GRAPH_TRAINER).decode()
        begin = text.index('"after_remove_identity_slice_pass"')
        edited = text[:begin] + text[begin:].replace("aten.silu.default(", "aten.gelu.default(", 1)
        self.write("edited.log", edited)
        report = self.json("bisect", GRAPH_TRAINER, "edited.log", code=1)
        self.assertEqual((report["pass"], report["pass_name"]), (4, "remove_identity_slice_pass"))
        self.assertIn("aten.silu.default to aten.gelu.default", report["what"])

    def test_several_runs_are_listed(self):
        self.assertIn("REF names several runs", self.fails("bisect", TWO_RANKS, GRAPH_TRAINER))
        self.assertTrue(self.json("bisect", f"{TWO_RANKS}#rank=0", f"{TWO_RANKS}#rank=1", code=0)["equal"])


class CompilerCacheTest(RunsCase):
    def test_cold_and_warm_agree(self):
        self.write("cold.log", inference(False))
        self.write("warm.log", inference(True))
        for a, b in (("cold.log", "warm.log"), ("warm.log", "cold.log")):
            done = self.run_strata("bisect", a, b)
            self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
            self.assertIn("agree to the end", done.stdout)
            self.assertIn("warm.log#run=1 took from the cache: pass 0 'joint_graph' of cold.log#run=1", done.stdout)
        for name in ("cold", "warm"):
            self.assertEqual(self.run_strata("import", f"{name}.log", "-o", f"{name}.strata").returncode, 0)
        self.assertEqual(self.run_strata("bisect", "cold.strata", "warm.strata").returncode, 0)

    def test_what_the_cache_returned_is_compared(self):
        self.write("cold.log", inference(False))
        self.write("warm.log", inference(True).replace("aten.exp2.default", "aten.expm1.default"))
        for a, b in (("cold.log", "warm.log"), ("warm.log", "cold.log")):
            done = self.run_strata("bisect", a, b)
            self.assertEqual(done.returncode, 1, done.stdout)
            self.assertIn("exp", done.stdout)

    def test_without_a_hit_a_missing_pass_is_a_difference(self):
        self.write("cold.log", inference(False))
        self.write("other.log", inference(True).replace("cache_hit", "cache_other"))
        self.assertEqual(self.run_strata("bisect", "cold.log", "other.log").returncode, 1)

    def test_ranks_of_which_one_hits_the_cache_are_one_class(self):
        self.write("r/rank_0.log", inference(False))
        self.write("r/rank_1.log", inference(True, 1))
        report = self.json("ranks", "r", code=0)
        self.assertEqual(report["classes"], [[0, 1]])
        self.assertIn("rank 1 took from a compiler cache", self.run_strata("ranks", "r").stdout)


def torch_logs(text, with_prefixes=True):
    """What TORCH_LOGS=aot_graphs,post_grad_graphs prints where TORCH_TRACE writes `text`."""
    titles = {"aot_inference_graph": "Forward graph 0", "inductor_post_grad_graph": "AFTER POST GRAD"}
    out = "step 1\n"
    for header, payload in re.findall(r"(?m)^V\S+ [^{]*(\{.*\})\n((?:\t.*\n)*)", text):
        envelope = json.loads(header)
        title = titles.get(envelope.get("artifact", {}).get("name"))
        if title is None:
            continue
        tag = "__post_grad_graphs" if "POST" in title else "__aot_graphs"
        at = f"{envelope['frame_id']}/{envelope['frame_compile_id']}"
        prefix = f"V1122 09:21:42.497000 12524 torch/x.py:2417] [{at}] [{tag}] " if with_prefixes else ""
        lines = ["TRACED GRAPH", f" ===== {title} ====="] + [line[1:] for line in payload.splitlines()]
        out += "".join(prefix + line + "\n" for line in lines)
    return out


class ExcerptTest(RunsCase):
    """The output of TORCH_LOGS has the graphs that were asked for alone."""

    def test_it_agrees_with_the_log_of_the_program(self):
        self.write("a.log", inference(False))
        for with_prefixes in (True, False):
            self.write("a.txt", torch_logs(inference(False), with_prefixes))
            self.assertEqual(self.run_strata("import", "a.txt", "-o", "a.strata").returncode, 0)
            for a, b in (("a.log", "a.txt"), ("a.txt", "a.log"), ("a.strata", "a.log")):
                done = self.run_strata("bisect", a, b)
                self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
                self.assertIn("is output of TORCH_LOGS: only the graphs in it were compared", done.stdout)
            os.remove(os.path.join(self.folder, "a.strata"))

    def test_what_both_have_is_compared(self):
        self.write("a.log", inference(False))
        self.write("a.txt", torch_logs(inference(False)).replace("aten.exp2.default", "aten.expm1.default"))
        done = self.run_strata("bisect", "a.log", "a.txt")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("change aten.exp2.default to aten.expm1.default", done.stdout)


if __name__ == "__main__":
    main()
