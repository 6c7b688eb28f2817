"""`strata blame` as scripts use it, over logs made by hand and edited fixtures.

    blame_test.py STRATA
"""

import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))

from run_logs import (  # noqa: E402
    compiled, COMPILED, event, graph, GRAPH_TRAINER, LAYERS, log, partitioned, pipeline, record, RunsCase, TWO_RANKS,
)
from strata_case import main  # noqa: E402


class BlameAcrossGraphsTest(RunsCase):
    def story(self, ref, node, *flags):
        done = self.run_strata("blame", ref, node, *flags)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def test_a_joint_graph_with_its_parts(self):
        forward = ["sin = sin.default(primals_1)", "exp = exp.default(sin)"]
        backward = ["neg = neg.default(tangents_1)", "mul = mul.Tensor(neg, exp)", "mul_1 = mul.Tensor(mul, sin)"]
        self.write("a.log", compiled("aot_joint_graph", ["primals_1", "tangents_1"],
                                     forward + ["dead = tan.default(sin)"] + backward, ["exp", "mul_1"]) +
                   compiled("aot_forward_graph", ["primals_1"], forward, ["exp", "primals_1"]) +
                   compiled("aot_backward_graph", ["primals_1", "exp", "tangents_1"], forward[:1] + backward,
                            ["mul_1"]))
        refs = [f"a.log#graph=aot_{part}_graph" for part in ("joint", "forward", "backward")]
        done = self.run_strata("diff", *refs)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout, """\
joint     a.log#graph=aot_joint_graph  9 nodes
forward   a.log#graph=aot_forward_graph  4 nodes
backward  a.log#graph=aot_backward_graph  8 nodes

1 forward only · 3 backward only · 1 in both (recomputed) · 2 saved · 1 in neither

in both (recomputed)
  sin = aten.sin.default(primals_1)

saved
  primals_1 (input)
  exp = aten.exp.default(sin)
""")
        parts = self.json("diff", *refs, "--json", code=0)
        del parts["schema"], parts["joint"], parts["forward"], parts["backward"]
        self.assertEqual(parts, {"forward_only": ["exp"], "backward_only": ["neg", "mul", "mul_1"], "both": ["sin"],
                                 "saved": ["primals_1", "exp"], "neither": ["dead"]})

    def test_stories_of_a_partition(self):
        self.write("a.log", partitioned())
        self.assertEqual(self.story("a.log", "cos"), """\
cos  in graph 'aot_joint_graph'
  aot_joint_graph     -  given
  aot_backward_graph  -  carried over from 'aot_joint_graph'
""")
        self.assertEqual(self.story("a.log", "exp"), """\
exp  in graph 'aot_joint_graph'
  aot_joint_graph     -  given
  aot_forward_graph   -  carried over from 'aot_joint_graph'
  aot_backward_graph  -  became the input exp
""")
        self.assertEqual(self.story("a.log", "dead"), """\
dead  in graph 'aot_joint_graph'
  aot_joint_graph     -  given
  aot_backward_graph  -  deleted: not in 'aot_forward_graph', 'aot_backward_graph'
""")
        self.assertEqual(self.story("a.log#graph=aot_backward_graph", "mul"), """\
mul  in graph 'aot_backward_graph'  confidence 0.99
  aot_joint_graph     -                        given
  aot_backward_graph  -                        carried over from 'aot_joint_graph', follows a change: operands[1]: exp → exp
  aot_backward_graph  pass 1  post_grad_graph  deleted: replaced by fma
""")
        self.assertEqual(self.story("a.log#graph=aot_backward_graph", "exp", "--follow"), """\
exp  in graph 'aot_backward_graph'
  -  born: stands for exp of 'aot_joint_graph'

exp  in graph 'aot_joint_graph'
  aot_joint_graph     -  given
  aot_forward_graph   -  carried over from 'aot_joint_graph'
  aot_backward_graph  -  became the input exp
""")

    def test_born_in_a_pass_before_the_partition_and_changed_after_it(self):
        def backward(name, lines):
            return compiled(name, ["exp", "tangents_1"], lines, ["mul"])

        def joint(name, lines):
            return compiled(name, ["primals_1", "tangents_1"], lines, ["exp", "mul"])

        plain = ["exp = exp.default(primals_1)", "mul = mul.Tensor(tangents_1, exp)"]
        negated = [plain[0], "neg = neg.default(tangents_1)", "mul = mul.Tensor(neg, exp)"]
        absolute = ["neg = abs.default(tangents_1)", "mul = mul.Tensor(neg, exp)"]
        self.write("a.log", joint("aot_joint_graph", plain) + joint("before_negate", plain) +
                   joint("after_negate", negated) +
                   compiled("aot_forward_graph", ["primals_1"], negated[:1], ["exp"]) +
                   backward("aot_backward_graph", negated[1:]) + backward("before_absolute", negated[1:]) +
                   backward("after_absolute", absolute))
        told = """\
  aot_joint_graph     pass 0  negate    born: reads tangents_1, read by mul
  aot_backward_graph  -                 carried over from 'aot_joint_graph'
  aot_backward_graph  pass 1  absolute  changed target: aten.neg.default → aten.abs.default
"""
        self.assertEqual(self.story("a.log", "neg"), "neg  in graph 'aot_joint_graph'\n" + told)
        # Asked for at the other end, the history is the same.
        self.assertEqual(self.story("a.log#graph=aot_backward_graph", "neg"),
                         "neg  in graph 'aot_backward_graph'\n" + told)

    def test_json(self):
        self.write("a.log", partitioned())
        report = self.json("blame", "a.log", "exp", code=0)
        self.assertEqual([(e["graph"], e["pass"], e["node"], e["to"], e["from_graph"]) for e in report["events"]], [
            ("aot_joint_graph", None, "exp", [], None),
            ("aot_forward_graph", None, "exp", [], "aot_joint_graph"),
            ("aot_backward_graph", None, "exp", ["exp"], "aot_joint_graph")])
        report = self.json("blame", "a.log#graph=aot_backward_graph", "exp", code=0)
        self.assertEqual([(e["graph"], e["from"], e["from_graph"]) for e in report["events"]],
                         [("aot_backward_graph", ["exp"], "aot_joint_graph")])

    def test_an_imported_log_tells_the_same(self):
        self.write("a.log", partitioned() + partitioned(1))
        self.assertEqual(self.run_strata("import", "a.log", "-o", "a.strata").returncode, 0)
        for graph in ("aot_joint_graph", "aot_backward_graph@0/1", "aot_forward_graph"):
            for node in self.nodes_of(f"a.log#graph={graph}"):
                self.assertEqual(self.story(f"a.strata#graph={graph}", node), self.story(f"a.log#graph={graph}", node))

    def test_graphs_of_other_compilations_are_not_related(self):
        self.write("a.log", partitioned() + partitioned(1))
        self.assertEqual(self.fails("blame", "a.log", "cos"), """\
'cos' names several nodes: a.log: say which one:
  "a.log#run=1,graph=aot_joint_graph" cos
  "a.log#run=1,graph=aot_joint_graph@0/1" cos""")
        self.write("c.log", "".join(partitioned(i) for i in range(30)))
        self.assertEqual(self.fails("blame", "c.log", "cos").count("\n"), 30)
        # Parts of a model that are compiled one by one in one compilation (DDP's buckets).
        self.write("b.log", partitioned() + partitioned())
        self.assertEqual(self.fails("blame", "b.log", "cos"), """\
'cos' names several nodes: b.log: say which one:
  "b.log#run=1,graph=aot_joint_graph" cos
  "b.log#run=1,graph=aot_joint_graph.2" cos""")

    def test_graph_and_node_name_a_node(self):
        self.write("a.log", partitioned() + partitioned(1))
        for name in ("aot_joint_graph", "aot_backward_graph@0/1"):
            self.assertEqual(self.story("a.log", f"{name}:cos"), self.story(f"a.log#graph={name}", "cos"))
        self.assertIn("no node 'aot_forward_graph:cos'", self.fails("blame", "a.log", "aot_forward_graph:cos"))

    def test_what_a_restart_replaced_is_found_only_where_nothing_else_is(self):
        def attempt(number, lines):
            text = compiled("aot_inference_graph", ["x"], lines, ["sin"])
            return text.replace('"attempt": 0', f'"attempt": {number}')

        self.write("a.log", attempt(0, ["cos = cos.default(x)", "sin = sin.default(cos)"]) + attempt(1, ["sin = sin.default(x)"]))
        self.assertIn("in graph 'aot_inference_graph@0/0_1'", self.story("a.log", "sin"))
        self.assertIn("in graph 'aot_inference_graph'", self.story("a.log#graph=aot_inference_graph", "sin"))
        self.assertIn("in graph 'aot_inference_graph'", self.story("a.log", "cos"))

    def test_costs_by_the_pass_that_made_the_nodes(self):
        code = record("inductor_output_code", "# kernels", 0, frame_id=0, frame_compile_id=0, attempt=0)
        call = {"ph": "X", "cat": "user_annotation", "name": "## Call CompiledFxGraph f ##", "ts": 0, "dur": 9, "tid": 1}
        for name, op, us in (("a", "sin", 2), ("b", "cos", 5)):
            self.write(f"{name}.log", compiled("before_trig", ["x"], ["neg = neg.default(x)"], ["neg"]) +
                       compiled("after_trig", ["x"], ["neg = neg.default(x)", f"y = {op}.default(neg)"], ["y"]) + code)
            events = [call, {**call, "cat": "cpu_op", "name": f"aten::{op}", "ts": 1, "dur": us}]
            self.write(f"{name}.json", json.dumps({"traceEvents": events}))
        refs = [f"{name}.log#pass=trig:after" for name in "ab"]
        costs = self.json("diff", *refs, "--cost", "--json",
                          "--chrome-before", "a.json", "--chrome-after", "b.json", code=1)
        self.assertEqual([(c["what"], c["us"]) for c in costs["passes"]], [("trig", 3)])
        # Nothing was measured of bytes.
        profile = self.run_strata("profile", "a.log", "--chrome", "a.json")
        self.assertEqual((profile.returncode, "bytes" in profile.stdout), (0, False), profile.stderr)
        self.assertIn("--chrome of strata profile", self.fails("profile", refs[0]))
        self.assertIn("--attach stores times in what strata import made", self.fails("profile", "a.log", "--chrome", "a.json", "--attach"))
        self.assertIn("give --cost, too", self.fails("diff", *refs, "--chrome-before", "a.json"))
        self.assertIn("--cost prints text, json or html", self.fails("diff", *refs, "--cost", "--format", "md"))
        # A folder as a log: nodes of its graphs have other ids.
        for name in "ab":
            os.mkdir(self.path(name))
            os.rename(self.path(f"{name}.log"), self.path(f"{name}/rank_0.log"))
        refs = [f"{name}#pass=trig:after" for name in "ab"]
        folders = self.json("diff", *refs, "--cost", "--json",
                            "--chrome-before", "a.json", "--chrome-after", "b.json", code=1)
        self.assertEqual(folders["nodes"], costs["nodes"])

    def test_saved_values_are_found_by_the_names_of_the_inputs_of_backward(self):
        # `exp` has no user in backward that shows which node of the joint graph it was.
        forward = ["exp = exp.default(primals_1)"]
        backward = ["mul = mul.Tensor(tangents_1, 2)"]
        self.write("a.log", compiled("aot_joint_graph", ["primals_1", "tangents_1"], forward + backward, ["exp", "mul"]) +
                   compiled("aot_forward_graph", ["primals_1"], forward, ["exp"]) +
                   compiled("aot_backward_graph", ["exp", "tangents_1"], backward, ["mul"]))
        refs = [f"a.log#graph=aot_{name}_graph" for name in ("joint", "forward", "backward")]
        parts = self.json("diff", *refs, "--json", code=0)
        self.assertEqual((parts["saved"], parts["forward_only"], parts["backward_only"]), (["exp"], ["exp"], ["mul"]))

    def test_nodes_of_bodies(self):
        body = '\n    class {0}(torch.nn.Module):\n        def forward(self, y: "f32[8]"):\n            {1}: "f32[8]" = torch.ops.aten.{1}(y)\n            return ({1},)\n'
        self.write("a.txt", 'class GraphModule(torch.nn.Module):\n    def forward(self, x: "f32[8]", p: "b8[]"):\n        a = self.a\n        b = self.b\n'
                   '        cond = torch.ops.higher_order.cond(p, a, b, (x,))\n        getitem: "f32[8]" = cond[0]\n        return (getitem,)\n'
                   + body.format("a", "sin") + body.format("b", "cos"))  # fmt: skip
        self.assertEqual(self.json("blame", "a.txt", "cos", code=0)["node"], "b/cos")
        self.assertEqual(self.json("blame", "a.txt", "a/sin", code=0)["node"], "a/sin")
        self.assertIn("'y' names several nodes", self.fails("blame", "a.txt", "y"))

    def test_surviving_names(self):
        """PyTorch keeps names when it partitions and prints again; which node is which is found without them."""
        def targets(graph):
            done = self.run_strata("show", f"{COMPILED}#graph={graph}", "--format", "json")
            return {node["name"]: node["target"] for node in json.loads(done.stdout)["nodes"]
                    if node["kind"] == "compute"}

        joint = targets("aot_joint_graph")
        ways = {"post_grad_graph": "aot_forward_graph", "post_grad_graph_backward": "aot_backward_graph"}
        for last, middle in ways.items():
            names = [name for name in targets(last) if name in joint]
            self.assertGreater(len(names), 100)
            for name in names[3::29]:
                report = self.json("blame", f"{COMPILED}#graph={last}", name, code=0)
                self.assertEqual([(e["graph"], e["node"]) for e in report["events"][:3]],
                                 [("aot_joint_graph", name), (middle, name), (last, name)])

    def test_saved_activations_stand_for_what_the_forward_graph_computes(self):
        for name in ["embedding", "rsqrt", "view", "getitem_1", "mm_3", "permute_14"]:
            event = self.json("blame", f"{COMPILED}#graph=aot_backward_graph", name, code=0)["events"][0]
            self.assertEqual((event["graph"], event["from"]), ("aot_backward_graph", [name]))


class BlameTest(RunsCase):
    def blame(self, ref, node, *flags):
        report = self.json("blame", ref, node, *flags, code=0)
        self.assertEqual(report["schema"], "strata.blame/1")
        for event in report["events"]:
            self.assertEqual(self.run_strata("show", event["ref"]).returncode, 0, event["ref"])
        return [(event["pass"], event["what"]) for event in report["events"]]

    def test_life_in_a_log(self):
        self.write("a.log", log(pipeline(LAYERS)))
        self.assertEqual(self.blame("a.log", "si"), [
            (None, "given"), (1, "changed operands[0]: de → mm"),
            (2, "changed target: aten.silu.default → aten.relu.default")])
        self.assertEqual(self.blame("a.log", "de"), [(None, "given"), (1, "deleted")])
        self.assertEqual(self.blame("a.log", "x"), [(None, "given")])

    def test_fixture(self):
        self.assertEqual(self.blame(GRAPH_TRAINER, "view_3"), [
            (None, "given"), (5, "changed target: aten.view.default → aten.reshape.default")])

    def test_life_in_a_trace_of_our_own(self):
        self.write("a.txt", graph(LAYERS + ["dead = aten.neg.default(x)", "out = aten.add.Tensor(ou, 1)"]))
        done = self.run_strata("opt", "a.txt", "--passes", "dce", "-o", "t.strata")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.blame("t.strata", "dead"), [(None, "given"), (0, "deleted")])
        listing = json.loads(self.run_strata("show", "t.strata", "--format", "json").stdout)
        self.assertEqual(self.blame("t.strata", "mm"), [(None, "given")])
        self.assertTrue(listing["nodes"])

    def test_births_tell_ancestors_exactly(self):
        lines = ["a = aten.mul.Tensor(x, x)", "b = aten.add.Tensor(a, x)", "c = aten.mm.default(b, w)",
                 "d = aten.mul.Tensor(c, c)", "e = aten.add.Tensor(d, x)"]
        self.write("a.txt", graph(lines).replace('f32[8, 8]"', 'f32[8, 8][8, 1]cpu"'))
        done = self.run_strata("opt", "a.txt", "--passes", "fuse", "-o", "t.strata")
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(self.run_strata("blame", "t.strata#pass=fuse:before", "a", "--json", "--follow").stdout)
        self.assertEqual([event["what"].split(":")[0] for event in report["events"]], ["given", "deleted"])
        heirs = report["events"][1]["to"]
        self.assertTrue(heirs)
        born = {life["node"]: life["events"][0] for life in report["relatives"]
                if life["events"][0]["what"] != "given"}
        for heir in heirs:
            self.assertEqual(born[heir]["from"], ["a", "b"], born[heir])
        diff = json.loads(self.run_strata("diff", "t.strata#pass=fuse:before", "t.strata#pass=fuse:after",
                                          "--format", "json").stdout)
        self.assertIn(["a", "b"], [relation["before"] for relation in diff["relations"]])

    def test_errors(self):
        self.write("a.log", log(pipeline(LAYERS)))
        self.assertEqual(self.fails("blame", "a.log", "nope"),
                         "no node 'nope': a.log: give a name, '#' and a stable id, or a module path; "
                         "'strata show' lists the nodes of a graph")
        self.assertIn("'silu' names several nodes", self.fails("blame", TWO_RANKS, "silu"))


if __name__ == "__main__":
    main()
