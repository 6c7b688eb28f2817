"""What torch.compile and torch.export do is the same with and without a recording, and what they do is recorded."""

import copy
import json
import logging
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
from torch._dynamo.utils import counters  # noqa: E402
from torch._inductor.custom_graph_pass import CustomGraphPass  # noqa: E402
from torch.fx.passes.graph_transform_observer import GraphTransformObserver  # noqa: E402
from torch.fx.passes.infra.pass_base import PassBase, PassResult  # noqa: E402

import strata  # noqa: E402

aten = torch.ops.aten

# One function of an own name for each field of the configuration that takes a pass.
FIELDS = ("pre_grad_custom_pass", "joint_custom_pre_pass", "joint_custom_post_pass", "post_grad_custom_pre_pass",
          "post_grad_custom_post_pass")


def model(x, w):
    return torch.relu(x @ w + 0.0).sum(1) * 2


def branches(x):
    return torch.cond(x.sum() > 0, lambda x: torch.relu(x) + 1, lambda x: torch.sin(x) * 2, (x,))


class OwnPass(CustomGraphPass):
    """Looks at a graph; its uuid makes the caches of Inductor usable."""

    def __init__(self, name):
        self.name, self.__name__, self.calls = name, f"own_{name}", 0

    def __call__(self, graph):
        self.calls += 1

    def uuid(self):
        return self.name


class Case(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder, self.trace = folder.name, os.path.join(folder.name, "run.strata")
        torch._dynamo.reset()
        counters.clear()

    def strata(self, *words):
        done = subprocess.run([STRATA, *words], capture_output=True, text=True, check=False, timeout=120)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        return done.stdout

    def passes(self):
        return [stored for run in json.loads(self.strata("ls", self.trace, "--json"))["runs"] for stored in run["passes"]]


class CompileTest(Case):

    def test_every_custom_pass_is_recorded_once_for_each_graph_in_order(self):  # PY-11
        passes = {field: OwnPass(field) for field in FIELDS}
        w = torch.randn(8, 8, requires_grad=True)
        with inductor.patch(**passes), strata.record(self.trace):
            torch.compile(model)(torch.randn(4, 8), w).sum().backward()
        seen = [stored["name"] for stored in self.passes()]
        # PyTorch 2.9 enters the observer of the first, which has the name of the field alone.
        own = [name for name in seen if "own_" in name or name == FIELDS[0]]
        self.assertEqual(len(own), sum(each.calls for each in passes.values()), seen)
        for field, each in passes.items():
            self.assertEqual(sum(field in name for name in own), each.calls, field)
        first = [next(i for i, name in enumerate(own) if field in name) for field in FIELDS]
        self.assertEqual(first, sorted(first), own)
        # Forward and backward each once; how often before, differs between versions.
        self.assertEqual([passes[field].calls for field in FIELDS[3:]], [2, 2])

    def test_fields_of_the_configuration_stay_the_objects_they_are(self):  # PY-12
        passes = {field: OwnPass(field) for field in FIELDS}
        with inductor.patch(**passes):
            for moment in ("before", "during", "after"):
                with strata.record(self.trace) if moment == "during" else open(os.devnull, encoding="utf-8"):
                    for field, each in passes.items():
                        self.assertIs(getattr(inductor, field), each, (moment, field))

    def test_a_recording_leaves_the_caches_as_they_were(self):  # PY-13
        def compile_once():
            torch._dynamo.reset()
            counters.clear()
            torch.compile(model)(torch.randn(4, 8), torch.randn(8, 8))
            found = counters["inductor"]
            return found["fxgraph_cache_hit"], found["fxgraph_cache_miss"]

        with inductor.patch(fx_graph_cache=True), torch._functorch.config.patch(enable_autograd_cache=False):
            os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.path.join(self.folder, "cache")
            self.addCleanup(os.environ.pop, "TORCHINDUCTOR_CACHE_DIR")
            self.assertEqual(compile_once(), (0, 1))
            self.assertEqual(compile_once(), (1, 0))
            with strata.record(self.trace):
                self.assertEqual(compile_once()[0], 0, "every pass runs")
            self.assertGreater(len(self.passes()), 5)
            self.assertEqual(compile_once(), (1, 0), "the entry from before the recording is hit")
            with strata.record(self.trace + "2", cache="keep"):
                self.assertEqual(compile_once(), (1, 0))

    def test_guards_breaks_and_recompiles_are_those_without_a_recording(self):  # PY-17
        def program(x, n):
            y = torch.relu(x) * n
            torch._dynamo.graph_break()
            return y + x.shape[0]

        def guards():
            """What Dynamo writes of its guards, of compilations with a break, a new size and a new number."""
            torch._dynamo.reset()
            counters.clear()
            lines, handler = [], logging.Handler()
            handler.emit = lambda record: lines.append(record.getMessage())
            logger = logging.getLogger("torch._dynamo.guards.__guards")
            torch._logging.set_logs(guards=True)
            logger.addHandler(handler)
            logger.propagate = False
            try:
                compiled = torch.compile(program, backend=strata.backend("eager"), dynamic=None)
                for rows, n in ((4, 2), (6, 2), (6, 3)):
                    compiled(torch.ones(rows, 3), n)
            finally:
                logger.removeHandler(handler)
                logger.propagate = True
                torch._logging.set_logs()
            return [line for text in lines for line in text.split("\n") if line.lstrip().startswith(("+-", "|", "- "))
                    and "ID_MATCH" not in line], dict(counters["frames"]), dict(counters["graph_break"])

        without = guards()
        with strata.record(self.trace):
            recorded = guards()
        self.assertGreater(len(without[0]), 5)
        self.assertEqual(recorded, without)

    def test_bodies_of_operators_of_higher_order_are_part_of_their_graph(self):  # PY-18
        gm = torch.fx.experimental.proxy_tensor.make_fx(branches, tracing_mode="symbolic")(torch.ones(3))

        def relu_to_tanh(gm):
            for inner in gm.modules():
                for node in inner.graph.nodes if isinstance(inner, torch.fx.GraphModule) else ():
                    if node.target is aten.relu.default:
                        node.target = aten.tanh.default

        with strata.record(self.trace):
            strata.watch(relu_to_tanh)(gm)
        text = self.strata("diff", f"{self.trace}#pass=relu_to_tanh:before", f"{self.trace}#pass=relu_to_tanh:after")
        self.assertIn("aten.relu.default → aten.tanh.default", text)
        self.assertIn("true_graph", text)

    def test_a_compiled_program_with_branches_is_recorded(self):  # PY-18
        with strata.record(self.trace):
            out = torch.compile(branches, backend=strata.backend("inductor"))(torch.ones(3))
        self.assertTrue(torch.equal(out, torch.full((3,), 2.0)))
        self.assertEqual({stored["status"] for stored in self.passes()} - {"ok", "unchanged"}, set())
        shown = [self.strata("show", f"{self.trace}#pass={stored['index']}:before") for stored in self.passes()
                 if stored["name"] == "reorder_for_locality"]
        self.assertEqual(sum("true_graph" in text for text in shown), 1)


class ExportTest(Case):

    def test_passes_over_an_exported_program(self):  # PY-16
        class ReluToTanh(PassBase):
            def call(self, gm):
                for node in gm.graph.nodes:
                    if node.target is aten.relu.default:
                        node.target = aten.tanh.default
                return PassResult(gm, True)

        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = torch.nn.Linear(4, 4)

            def forward(self, x):
                return torch.relu(self.linear(x))

        net = Net()
        program = torch.export.export(net, (torch.randn(2, 4),))
        with strata.record(self.trace):
            changed = program._transform_do_not_use(ReluToTanh())
            lowered = changed.run_decompositions()
        self.assertEqual([stored["name"] for stored in self.passes() if stored["name"] != "run_decompositions"][:1],
                         ["ReluToTanh"])
        self.assertIn("run_decompositions", [stored["name"] for stored in self.passes()])
        # The signature names outputs of the graph: the hooks of PyTorch that rename them ran.
        for each in (changed, lowered):
            outputs = [node.name for node in each.graph.output_node().args[0]]
            self.assertEqual([spec.arg.name for spec in each.graph_signature.output_specs], outputs)
        x = torch.randn(2, 4)
        self.assertTrue(torch.equal(lowered.module()(x), torch.tanh(net.linear(x))))


class WrapsTest(Case):

    def test_recordings_within_recordings_each_see_the_pass_once(self):  # PY-26
        gm = torch.fx.symbolic_trace(lambda x: torch.relu(x) + 1)
        inner = os.path.join(self.folder, "inner.strata")

        @strata.watch
        @strata.watch
        def nothing(gm):
            return gm

        with strata.record(self.trace):
            nothing(gm)
            with strata.record(inner):
                nothing(gm)
            nothing(gm)
        self.assertEqual([stored["name"] for stored in self.passes()], ["nothing"] * 2)
        self.trace = inner
        self.assertEqual([stored["name"] for stored in self.passes()], ["nothing"])

    def test_what_was_copied_within_another_recording_keeps_its_identity(self):  # PY-26
        gm = torch.fx.symbolic_trace(lambda x: torch.relu(x) + 1)

        @strata.watch
        def nothing(gm):
            return gm

        with strata.record(self.trace):
            nothing(gm)
            with strata.record(os.path.join(self.folder, "inner.strata")):
                copied = copy.deepcopy(gm)
            nothing(copied)
        self.assertEqual([(stored["name"], stored["graph"]) for stored in self.passes()], [("nothing", "graph")] * 2)

    def test_the_wrap_of_another_tool_stays(self):  # PY-26, PY-35
        original = GraphTransformObserver.__dict__["apply_graph_pass"]
        self.addCleanup(setattr, GraphTransformObserver, "apply_graph_pass", original)
        calls = []
        recording = strata.record(self.trace)
        recording.__enter__()
        ours = GraphTransformObserver.__dict__["apply_graph_pass"]
        self.assertIsNot(ours, original)

        def theirs(*args, **kwargs):
            calls.append(1)
            return ours(*args, **kwargs)

        GraphTransformObserver.apply_graph_pass = theirs
        gm = torch.fx.symbolic_trace(lambda x: torch.relu(x) + 1)
        GraphTransformObserver(gm, "one").apply_graph_pass(lambda graph: None)
        recording.__exit__(None, None, None)
        self.assertIs(GraphTransformObserver.__dict__["apply_graph_pass"], theirs)
        GraphTransformObserver(gm, "two").apply_graph_pass(lambda graph: None)
        self.assertEqual(len(calls), 2)
        self.assertEqual([stored["name"] for stored in self.passes()], ["one"])

    def test_an_interrupt_passes_through(self):  # PY-27
        def interrupted(gm):
            raise KeyboardInterrupt

        gm = torch.fx.symbolic_trace(lambda x: torch.relu(x) + 1)
        with self.assertRaises(KeyboardInterrupt):
            with strata.record(self.trace):
                strata.watch(interrupted)(gm)
        self.assertEqual([stored["status"] for stored in self.passes()], ["failed"])


if __name__ == "__main__":
    STRATA = os.path.abspath(sys.argv.pop(1))
    os.environ["STRATA_BIN"] = STRATA
    unittest.main()
