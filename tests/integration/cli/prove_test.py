"""`strata prove`: passes of a trace and of a PyTorch log, proven and refuted.

    prove_test.py STRATA
"""

import json
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))

from small_graphs import NATIVE  # noqa: E402
from strata_case import LOGS, StrataCase, main  # noqa: E402

LOG = os.path.join(LOGS, "llama3_compile_torch2.11.log.zst")

GRAPH = """\
def forward(self, x: "f32[4, 3][3, 1]cpu"):
    t: "f32[3, 4][1, 3]cpu" = torch.ops.aten.t.default(x)
    t_1: "f32[4, 3][3, 1]cpu" = torch.ops.aten.t.default(t)
    mul: "f32[4, 3][3, 1]cpu" = torch.ops.aten.mul.Tensor(t_1, 2.0)
    dead: "f32[4, 3][3, 1]cpu" = torch.ops.aten.neg.default(x)
    return (mul,)
"""


# A sum of numbers that are rounded before it, and after it.
SUM_ROUNDED = """\
def forward(self, x: "f32[4, 3][3, 1]cpu"):
    total: "f32[3][1]cpu" = torch.ops.aten.sum.dim_IntList(x, [0])
    y: "bf16[3][1]cpu" = torch.ops.prims.convert_element_type.default(total, torch.bfloat16)
    return (y,)
"""
ROUNDED_SUM = """\
def forward(self, x: "f32[4, 3][3, 1]cpu"):
    narrow: "bf16[4, 3][3, 1]cpu" = torch.ops.prims.convert_element_type.default(x, torch.bfloat16)
    y: "bf16[3][1]cpu" = torch.ops.aten.sum.dim_IntList(narrow, [0])
    return (y,)
"""


class ProveTest(StrataCase):
    def works(self, *words):
        done = self.run_strata(*words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_pv_77_a_partition_and_post_grad_passes_of_pytorch_are_proven(self):
        proof = json.loads(self.works("prove", LOG, "--json"))
        self.assertEqual(proof["schema"], "strata.prove/1")
        self.assertEqual(proof["summary"], {"proven": 4, "differs": 0, "unproven": 0})
        partition = proof["passes"][-1]
        self.assertEqual((partition["values"], partition["unknown_operators"]), (22, []))

    def test_a_file_without_a_graph_is_said_before_a_choice_of_the_other(self):
        graphs = self.write("two.txt", NATIVE + NATIVE.replace("graph step", "graph other"))
        empty = self.write("empty.log", "")
        for command in ("prove", "compare-values"):
            for files in ((graphs, empty), (empty, graphs)):
                done = self.run_strata(command, *files)
                self.assertEqual(done.returncode, 2)
                self.assertIn("not a graph: " + empty, done.stderr)
            done = self.run_strata(command, graphs, graphs)
            self.assertIn("REF names several graphs: " + graphs, done.stderr)

    def test_a_file_that_is_missing_beside_a_log_of_one_device_is_named(self):
        done = self.run_strata("prove", LOG, self.path("ranks.log"))
        self.assertEqual(done.returncode, 2)
        self.assertIn("no such file: " + self.path("ranks.log"), done.stderr)

    def test_passes_of_a_trace_are_proven_value_by_value(self):
        graph, trace = self.write("g.txt", GRAPH), self.path("t.strata")
        self.works("opt", graph, "--passes", "dce,canonicalize", "-o", trace)
        text = self.works("prove", trace)
        self.assertIn("proven: 2 of 2 steps, seed 1, p = 2^61-1", text)
        self.assertRegex(text, r"✓ pass 0 dce, .*: \d+ values equal")
        one = self.works("prove", trace, "--pass", "canonicalize")
        self.assertIn("proven: 1 of 1 steps", one)

    def test_passes_are_proven_while_they_run(self):
        done = self.run_strata("opt", self.write("g.txt", GRAPH), "--passes", "dce,canonicalize", "--prove-exact")
        self.assertEqual(done.returncode, 0, done.stderr)
        for name in ("0 dce", "1 canonicalize"):
            self.assertRegex(done.stderr, rf"proved exactly: pass {name}: graph \w+: \d+ values are equal\n")

    def test_a_recorded_proof_is_listed(self):
        graph, trace = self.write("g.txt", GRAPH), self.path("t.strata")
        self.works("opt", graph, "--passes", "dce,canonicalize", "-o", trace)
        self.assertNotIn("proof", self.works("ls", trace))
        self.works("prove", trace, "--record", "--pass", "dce")
        passes = json.loads(self.works("ls", trace, "--json"))["runs"][0]["passes"]
        self.assertEqual(passes[0]["proof"], {"verdict": "proven", "node": "", "class": "", "what": "", "scope": ""})
        self.assertNotIn("proof", passes[1])
        text = self.works("ls", trace)
        self.assertRegex(text, r"  # +pass .* proof\n")
        self.assertRegex(text, r" dce .* ✓ proven\n")
        self.assertNotIn("proof.json", text)
        self.works("check", trace)

    def test_a_proof_of_passes_while_they_run_is_recorded(self):
        graph, trace = self.write("g.txt", GRAPH), self.path("t.strata")
        self.works("opt", graph, "--passes", "dce,canonicalize", "--prove-exact", "-o", trace)
        passes = json.loads(self.works("ls", trace, "--json"))["runs"][0]["passes"]
        self.assertEqual([step["proof"]["verdict"] for step in passes], ["proven", "proven"])

    def test_merged_traces_keep_the_proofs_of_each_rank(self):
        graph = self.write("g.txt", GRAPH)
        self.works("opt", graph, "--passes", "dce,canonicalize", "--prove-exact", "-o", self.path("a.strata"))
        self.works("opt", graph, "--passes", "dce,canonicalize", "-o", self.path("b.strata"))
        self.works("prove", self.path("b.strata"), "--record", "--pass", "canonicalize")
        merged = self.path("m.strata")
        self.works("merge", self.path("a.strata"), self.path("b.strata"), "--renumber", "-o", merged)
        runs = json.loads(self.works("ls", merged, "--json"))["runs"]
        verdicts = [[step.get("proof", {}).get("verdict") for step in run["passes"]] for run in runs]
        self.assertEqual(verdicts, [["proven", "proven"], [None, "proven"]])
        self.works("check", merged)

    def test_only_a_trace_records_proofs(self):
        self.write("g.txt", GRAPH)
        self.assertIn("cannot record: g.txt: --record needs a trace", self.fails("prove", "g.txt", "--record"))

    def test_two_graphs_are_proven_by_their_outputs(self):
        first = self.write("g.txt", GRAPH)
        same = self.write("same.txt", GRAPH.replace("mul.Tensor(t_1, 2.0)", "add.Tensor(t_1, t_1)"))
        other = self.write("other.txt", GRAPH.replace("2.0", "3.0"))
        self.assertIn("proven: 1 of 1 steps", self.works("prove", first, same))
        done = self.run_strata("prove", first, other)
        self.assertEqual(done.returncode, 1)
        self.assertIn("mul: output 0: 3/2 of the expected value", done.stdout)

    def test_pv_74_an_unknown_operator_that_decides_is_no_proof(self):
        custom = GRAPH.replace("torch.ops.aten.mul.Tensor(t_1, 2.0)", "torch.ops.mylib.fast.default(t_1, 2.0)")
        self.write("custom.txt", custom)
        self.write("other.txt", custom.replace("(t_1, 2.0)", "(x, 3.0)"))
        first, other = "custom.txt", "other.txt"
        same = self.works("prove", first, first)
        self.assertIn("unknown operators: mylib.fast.default", same)
        done = self.run_strata("prove", first, other)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stdout, """\
? custom.txt = other.txt, other: unproven: mul may differ: nothing is known of mylib.fast.default, which reads other operands; unknown operators: mylib.fast.default

proven: 0 of 1 steps, 1 unproven, seed 1, p = 2^61-1
""")
        self.assertIn("1 unproven", self.works("prove", first, other, "--allow-unproven"))

    def test_pv_75_exit_codes_texts_and_keys(self):
        self.write("g.txt", GRAPH)
        self.write("other.txt", GRAPH.replace("2.0", "3.0"))
        first, other = "g.txt", "other.txt"
        done = self.run_strata("prove", first, other)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stdout, """\
✗ g.txt = other.txt, other: 2 values compared, 1 differs

differs: mul: output 0: 3/2 of the expected value
  node    mul in graph other, g.txt = other.txt; before it: mul
  see     strata diff 'other.txt'

proven: 0 of 1 steps, seed 1, p = 2^61-1
""")
        self.assertEqual(self.run_strata("prove", first, other, "--allow-unproven").returncode, 1)
        self.assertEqual(self.run_strata("prove", "absent.txt").returncode, 2)
        proof = json.loads(self.run_strata("prove", first, other, "--json").stdout)
        self.assertEqual(list(proof), ["schema", "kind", "file", "prime", "seed", "passes", "findings", "precision",
                                       "summary"])
        self.assertEqual(list(proof["passes"][0]), [
            "index", "name", "graph", "rank", "status", "values", "not_compared", "layers", "layers_left_out",
            "unchanged", "evaluations", "ms", "reason", "unknown_operators", "reduced_sizes", "chosen_sizes", "ref"])
        self.assertEqual(list(proof["findings"][0]), [
            "verdict", "graph", "pass", "node", "reference", "module", "what", "class", "reason", "from", "ref"])
        self.assertEqual(proof["summary"], {"proven": 0, "differs": 1, "unproven": 0})

    def test_b93_a_cast_that_moves_across_a_sum_is_listed_on_request(self):
        words = ("prove", self.write("before.txt", SUM_ROUNDED), self.write("after.txt", ROUNDED_SUM))
        self.assertNotIn("rounded", self.works(*words))
        text = self.works(*words, "--precision")
        self.assertIn("2 values equal; rounded otherwise at 1 place\n", text)
        self.assertIn("\nprecision: rounded otherwise\n  node    y in graph", text)
        self.assertEqual(self.run_strata(*words, "--strict-casts").returncode, 1)
        proof = json.loads(self.works(*words, "--precision", "--json"))
        self.assertEqual([(change["node"], change["places"]) for change in proof["precision"]], [("y", 1)])
        self.assertEqual(proof["passes"][0]["status"], "proven")

    def test_nothing_to_prove_is_an_error(self):
        self.write("g.txt", GRAPH)
        self.assertIn("nothing to prove: g.txt", self.fails("prove", "g.txt"))


if __name__ == "__main__":
    main()
