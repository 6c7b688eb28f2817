"""Passes of Inductor, of its configuration and of pass lists: which are recorded, and with which identity."""

import functools
import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import torch_python  # noqa: E402

torch_python.need()

import torch  # noqa: E402
import torch._inductor.config as inductor  # noqa: E402
from functorch.compile import make_boxed_func  # noqa: E402
from torch._dynamo.backends.common import aot_autograd  # noqa: E402
from torch._inductor.fx_passes.joint_graph import joint_graph_passes  # noqa: E402
from torch._inductor.fx_passes.post_grad import post_grad_passes  # noqa: E402
from torch._inductor.virtualized import V  # noqa: E402
from torch._subclasses import FakeTensorMode  # noqa: E402
from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402

import strata  # noqa: E402

aten = torch.ops.aten


def model(x, w):
    return torch.relu(x @ w + 0.0).sum(1) * 2


def traced():
    """The graph with fake values, and their mode."""
    mode = FakeTensorMode()
    with mode:
        inputs = torch.randn(4, 8), torch.randn(8, 8)
    return make_fx(model)(*inputs), mode


def relu_to_clamp(graph):
    for node in list(graph.nodes):
        if node.target is aten.relu.default:
            with graph.inserting_after(node):
                new = graph.call_function(aten.clamp_min.default, (node.args[0], 0))
                new.meta = dict(node.meta)
            node.replace_all_uses_with(new)
            graph.erase_node(node)


def look_only(graph):
    return None


class InductorTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.trace = os.path.join(folder.name, "run.strata")

    def strata(self, *words):
        done = subprocess.run([STRATA, *words], capture_output=True, text=True, check=False, timeout=120)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        return done.stdout

    def passes(self):
        [run] = json.loads(self.strata("ls", self.trace, "--json"))["runs"]
        return run["passes"]

    def diff(self, selector):
        return json.loads(self.strata("diff", f"{self.trace}#{selector}:before", f"{self.trace}#{selector}:after", "--json"))

    def test_custom_passes_of_the_configuration(self):  # PY-11, PY-12
        gm, mode = traced()
        with V.set_fake_mode(mode), inductor.patch(joint_custom_pre_pass=look_only, post_grad_custom_post_pass=relu_to_clamp):
            with strata.record(self.trace):
                self.assertIs(inductor.post_grad_custom_post_pass, relu_to_clamp)
                joint_graph_passes(gm)
                before = {node: node.name for node in gm.graph.nodes}
                post_grad_passes(gm, is_inference=True)
        passes = {stored["name"]: stored for stored in self.passes()}
        self.assertEqual(passes["joint_custom_pre_pass:look_only"]["status"], "unchanged")
        self.assertEqual(passes["joint_custom_pre_pass:look_only"]["graph"], "joint")
        name = "post_grad_custom_post_pass:relu_to_clamp"
        self.assertEqual(passes[name]["status"], "ok")
        self.assertGreater(len(passes), 5)
        found = self.diff(f"pass={passes[name]['index']}")
        self.assertEqual((found["deleted"], found["inserted"]), (["relu"], ["clamp_min_default"]))
        self.assertEqual([r["kind"] for r in found["relations"]], ["replace"])
        # All other nodes are the objects from before, whatever their names are.
        after = {node: node.name for node in gm.graph.nodes}
        self.assertEqual(len(found["pairs"]), sum(1 for node in after if node in before))

    def test_the_partitioner_gives_each_node_its_source(self):  # PY-7
        seen = []

        def compiler(gm, inputs):
            seen.append(gm)
            return make_boxed_func(strata.watch(lambda gm: gm, name="compile")(gm).forward)

        backend = aot_autograd(fw_compiler=compiler, bw_compiler=compiler,
                               partition_fn=lambda *a, **k: partitioners().min_cut_rematerialization_partition(*a, **k))
        with strata.record(self.trace):
            w = torch.randn(8, 8, requires_grad=True)
            torch.compile(model, backend=strata.backend(backend))(torch.randn(4, 8), w).sum().backward()
        self.assertEqual(len(seen), 2)
        split = [stored for stored in self.passes() if stored["name"] == "min_cut_rematerialization_partition"]
        self.assertEqual([stored["graph"] for stored in split][-2:], ["forward", "backward"])
        # The compilers got the graphs that the partitioner made, or copies of them: their history goes on.
        self.assertEqual({stored["graph"] for stored in self.passes() if stored["name"] == "compile"},
                         {"forward", "backward"})
        found = self.diff("graph=forward,pass=min_cut_rematerialization_partition")
        self.assertIn("relu", [pair["after"] for pair in found["pairs"]])
        self.assertEqual({pair["via"] for pair in found["pairs"]}, {"id"})
        # Only the return is new: the forward graph also returns what the backward graph reads.
        computed = [name for name in found["inserted"] if name != "output"]
        self.assertEqual(computed, [])

    def test_a_pass_list_as_graph_trainers_run_it(self):  # PY-15
        def set_scale(gm, example_inputs, *, factor):
            for node in gm.graph.nodes:
                if node.target is aten.mul.Tensor:
                    node.args = (node.args[0], factor)
            return gm

        def rebuilt(gm, example_inputs):
            return torch.fx.GraphModule(gm, copy_of(gm.graph))

        def disabled(gm, example_inputs):
            raise AssertionError("disabled passes are not called")

        def copy_of(graph):
            new = torch.fx.Graph()
            result = new.graph_copy(graph, {})
            new.output(result)
            return new

        def apply_graph_passes(gm, example_inputs, passes, disable_passes=()):
            for fn in passes:
                name = fn.func.__name__ if isinstance(fn, functools.partial) else fn.__name__
                if name in disable_passes:
                    continue
                gm = fn(gm, example_inputs)
                assert isinstance(gm, torch.fx.GraphModule), name
            return gm

        gm, _ = traced()
        passes = strata.watch_list([functools.partial(set_scale, factor=3), rebuilt, disabled])
        with strata.record(self.trace):
            apply_graph_passes(gm, [None], passes, disable_passes=["disabled"])
        self.assertEqual([(stored["name"], sum(stored["counts"].values())) for stored in self.passes()],
                         [("set_scale", 1), ("rebuilt", 0)])
        found = self.diff("pass=set_scale")
        self.assertEqual([(pair["after"], [field["path"] for field in pair["fields"]]) for pair in found["pairs"]
                          if pair["status"] != "same"], [("mul", ["args[1]"])])


def partitioners():
    import torch._functorch.partitioners as module

    return module


if __name__ == "__main__":
    STRATA = os.path.abspath(sys.argv.pop(1))
    os.environ["STRATA_BIN"] = STRATA
    unittest.main()
