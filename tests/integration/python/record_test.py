"""Passes recorded in the process that runs them: the identity of nodes is that of the objects."""

import copy
import gc
import json
import operator
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import unittest
import warnings
import weakref

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import torch_python  # noqa: E402

torch_python.need()

import torch  # noqa: E402
from torch import fx  # noqa: E402

import strata  # noqa: E402


class Mlp(torch.nn.Module):

    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(4, 8), torch.nn.Linear(8, 4)

    def forward(self, x):
        y = torch.relu(self.first(x)) + 0
        return self.second(y) * 2 + x


def replace_relu(gm):
    for node in list(gm.graph.nodes):
        if node.target is torch.relu:
            with gm.graph.inserting_after(node):
                new = gm.graph.call_function(torch.nn.functional.gelu, node.args)
            node.replace_all_uses_with(new)
            gm.graph.erase_node(node)
    gm.recompile()


def drop_add_zero(gm):
    for node in list(gm.graph.nodes):
        if node.target is operator.add and node.args[1] == 0:
            node.replace_all_uses_with(node.args[0])
            gm.graph.erase_node(node)
    return gm


def rename_and_move(gm):
    nodes = list(gm.graph.nodes)
    nodes[1].name = "another_name"
    nodes[1].prepend(gm.graph.call_function(torch.neg, (nodes[0],)))
    nodes[-1].args = (nodes[-2],)


class Upper(fx.Transformer):

    def call_function(self, target, args, kwargs):
        return super().call_function(torch.sigmoid if target is torch.relu else target, args, kwargs)


class RecordTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.trace = os.path.join(self.folder, "run.strata")

    def strata(self, *words, ok=(0, 1)):
        done = subprocess.run([STRATA, *words], capture_output=True, text=True, cwd=self.folder, check=False, timeout=120)
        self.assertIn(done.returncode, ok, done.stderr)
        return done.stdout

    def passes(self, trace=None):
        [run] = json.loads(self.strata("ls", trace or self.trace, "--json"))["runs"]
        return run["passes"]

    def diff(self, name):
        return json.loads(self.strata("diff", f"{self.trace}#pass={name}:before", f"{self.trace}#pass={name}:after", "--json"))

    def record_in_place(self, gm, fn):
        """Records `fn` and compares what the trace says with what the objects say."""
        before = {node: node.name for node in gm.graph.nodes}
        with strata.record(self.trace):
            strata.watch(fn)(gm)
        after = {node: node.name for node in gm.graph.nodes}
        content = self.diff(fn.__name__)
        self.assertEqual({(pair["before"], pair["after"]) for pair in content["pairs"]},
                         {(name, after[node]) for node, name in before.items() if node in after})
        self.assertEqual(set(content["inserted"]), {name for node, name in after.items() if node not in before})
        self.assertEqual(set(content["deleted"]), {name for node, name in before.items() if node not in after})
        self.assertEqual({pair["via"] for pair in content["pairs"]}, {"id"})
        return content

    def test_a_pass_in_place_has_the_identity_of_the_objects(self):  # PY-3, PY-4
        for fn in (replace_relu, drop_add_zero, rename_and_move):
            with self.subTest(fn.__name__):
                self.record_in_place(fx.symbolic_trace(Mlp()), fn)

    def test_modules_of_a_list_are_nodes_too(self):
        class Layers(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(3))
                self.layers[1].weight.requires_grad = False

            def forward(self, x):
                for layer in self.layers:
                    x = torch.relu(layer(x)) + self.layers[1].weight
                return x

        for fn in (replace_relu, rename_and_move):
            with self.subTest(fn.__name__):
                self.record_in_place(fx.symbolic_trace(Layers()), fn)

    def test_results_of_a_node_that_move_away_from_it_stay_what_they_are(self):
        def part(gm):
            relu = next(node for node in gm.graph.nodes if node.target is torch.relu)
            relu.append(next(node for node in gm.graph.nodes if node.target is operator.getitem))

        def join(gm):
            split = next(node for node in gm.graph.nodes if node.target is torch.split)
            for node in reversed([node for node in gm.graph.nodes if node.target is operator.getitem]):
                split.append(node)

        gm = self.unpacked()
        for fn in (part, join):
            with self.subTest(fn.__name__):
                self.record_in_place(gm, fn)

    @staticmethod
    def unpacked():
        graph = fx.Graph()
        x = graph.placeholder("x")
        split = graph.call_function(torch.split, (x, 2))
        halves = [graph.call_function(operator.getitem, (split, i)) for i in range(2)]
        relu = graph.call_function(torch.relu, (x,))
        graph.output((relu, graph.call_function(torch.add, tuple(halves))))
        return fx.GraphModule(torch.nn.Module(), graph)

    def test_a_replacement_is_told(self):
        content = self.record_in_place(fx.symbolic_trace(Mlp()), replace_relu)
        self.assertEqual([(r["kind"], r["before"], r["after"]) for r in content["relations"]],
                         [("replace", ["relu"], ["gelu"])])

    def test_a_chain_of_passes_is_one_history(self):
        gm = fx.symbolic_trace(Mlp())
        with strata.record(self.trace):
            for fn in (replace_relu, drop_add_zero):
                strata.watch(fn)(gm)
        self.assertEqual([(p["name"], p["status"]) for p in self.passes()],
                         [("replace_relu", "ok"), ("drop_add_zero", "ok")])
        self.assertIn("replace_relu", self.strata("blame", self.trace, "gelu"))

    def test_what_changes_between_passes_is_a_pass(self):
        gm = fx.symbolic_trace(Mlp())
        with strata.record(self.trace):
            strata.watch(replace_relu)(gm)
            drop_add_zero(gm)
            strata.watch(rename_and_move)(gm)
        self.assertEqual([p["name"] for p in self.passes()],
                         ["replace_relu", "(between replace_relu and rename_and_move)", "rename_and_move"])

    def test_a_pass_that_returns_a_new_module_keeps_nodes(self):  # PY-5
        gm = fx.symbolic_trace(Mlp())

        @strata.watch
        def transform(module):
            return Upper(module).transform()

        with strata.record(self.trace):
            new = transform(gm)
        self.assertEqual(len(new.graph.nodes), len(gm.graph.nodes))
        content = self.diff("transform")
        # Equal operators are the same nodes; relu became another operator.
        self.assertEqual(len(content["pairs"]), len(gm.graph.nodes) - 1)
        self.assertEqual((content["deleted"], content["inserted"]), (["relu"], ["sigmoid"]))

    def test_a_copy_continues_its_original(self):
        gm = fx.symbolic_trace(Mlp())

        @strata.watch
        def copied(module):
            new = copy.deepcopy(module)
            drop_add_zero(new)
            return new

        with strata.record(self.trace):
            copied(gm)
        content = self.diff("copied")
        self.assertEqual((content["inserted"], content["deleted"]), ([], ["add"]))

    def test_a_program_that_is_traced_again_is_matched_by_structure(self):  # PY-6
        @strata.watch
        def traced_again(module):
            new = fx.symbolic_trace(copy.deepcopy(module))
            drop_add_zero(new)
            return new

        with strata.record(self.trace):
            traced_again(fx.symbolic_trace(Mlp()))
        content = self.diff("traced_again")
        self.assertEqual((content["inserted"], content["deleted"]), ([], ["add"]))
        self.assertNotIn("id", {pair["via"] for pair in content["pairs"]})
        [stored] = self.passes()
        self.assertEqual((stored["counts"]["inserted"], stored["counts"]["deleted"]), (0, 1))

    def test_an_unchanged_pass_and_a_pass_manager(self):  # PY-14
        from torch.fx.passes.infra.pass_base import PassResult
        from torch.fx.passes.infra.pass_manager import PassManager, this_before_that_pass_constraint

        def first(gm):
            drop_add_zero(gm)
            return PassResult(gm, True)

        def second(gm):
            return PassResult(gm, False)

        gm = fx.symbolic_trace(Mlp())
        manager = PassManager(passes=[second, first], constraints=[this_before_that_pass_constraint(first, second)])
        with strata.record(self.trace):
            manager(gm)
        self.assertEqual([(p["name"], p["status"]) for p in self.passes()], [("first", "ok"), ("second", "unchanged")])
        self.assertEqual([fn.__name__ for fn in manager.passes], ["first", "second"])

    def test_the_users_exception_passes_and_the_failed_graph_is_kept(self):  # PY-27
        gm = fx.symbolic_trace(Mlp())
        error = ValueError("no such node")

        @strata.watch
        def failing(module):
            drop_add_zero(module)
            raise error

        with self.assertRaises(ValueError) as caught, strata.record(self.trace):
            failing(gm)
        self.assertIs(caught.exception, error)
        [stored] = self.passes()
        self.assertEqual((stored["status"], stored["error"]), ("failed", "ValueError: no such node"))
        self.assertEqual(self.diff("failing")["deleted"], ["add"])

    def test_without_a_recording_a_pass_is_called_as_it_is(self):
        gm = fx.symbolic_trace(Mlp())
        self.assertIs(strata.watch(drop_add_zero)(gm), gm)
        self.assertFalse(os.path.exists(self.trace))

    def test_the_functions_of_pytorch_are_put_back(self):  # PY-35
        from torch.fx.passes.graph_transform_observer import GraphTransformObserver
        from torch.fx.passes.infra.pass_manager import PassManager

        def functions():
            return [owner.__dict__[name] for owner, name in (
                (fx.Graph, "create_node"), (fx.Graph, "node_copy"), (fx.Node, "replace_all_uses_with"),
                (fx.Node, "replace_input_with"), (fx.Interpreter, "run_node"), (PassManager, "__call__"),
                (GraphTransformObserver, "apply_gm_pass"), (GraphTransformObserver, "apply_graph_pass"))]

        before = functions()
        with strata.record(self.trace), strata.record(self.trace + "2"):
            strata.watch(drop_add_zero)(fx.symbolic_trace(Mlp()))
            self.assertNotEqual(functions(), before)
        self.assertEqual(functions(), before)

    def test_a_folder_that_cannot_be_written_is_a_warning(self):  # PY-25
        gm = fx.symbolic_trace(Mlp())
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with strata.record("/proc/nowhere/run.strata"):
                strata.watch(drop_add_zero)(gm)
        self.assertEqual([w.category for w in caught], [strata.RecordingWarning])
        self.assertIn("strata: warning: cannot record: /proc/nowhere/run.strata.d", str(caught[0].message))
        self.assertNotIn("add", [node.name for node in gm.graph.nodes if node.args[1:] == (0,)])

    def test_no_node_lives_on(self):  # PY-21
        gm = fx.symbolic_trace(Mlp())
        with strata.record(self.trace):
            strata.watch(replace_relu)(gm)
            graphs = [weakref.ref(gm.graph)]
            del gm
        gc.collect()
        self.assertEqual([ref() for ref in graphs], [None])

    def test_a_killed_process_leaves_the_passes_before(self):  # PY-22
        script = textwrap.dedent("""
            import os, signal, sys, torch
            import strata
            from torch import fx
            def f(x):
                return torch.relu(x) + 1
            gm = fx.symbolic_trace(f)
            @strata.watch
            def one(gm):
                for node in gm.graph.nodes:
                    if node.target is torch.relu:
                        node.target = torch.sigmoid
            @strata.watch
            def two(gm):
                os.kill(os.getpid(), signal.SIGKILL)
            with strata.record("killed.strata"):
                one(gm)
                two(gm)
            """)
        done = subprocess.run([sys.executable, "-c", script], cwd=self.folder, check=False, capture_output=True,
                              env={**os.environ, "STRATA_BIN": STRATA})
        self.assertEqual(done.returncode, -signal.SIGKILL)
        self.strata("import", "killed.strata.d", "-o", "killed.strata")
        self.assertEqual([(p["name"], p["status"]) for p in self.passes(os.path.join(self.folder, "killed.strata"))],
                         [("one", "ok"), ("two", "failed")])

    def test_hostile_names_and_values(self):  # PY-24
        class Evil:
            def __repr__(self):
                raise RuntimeError("repr")

            def __eq__(self, other):
                raise RuntimeError("eq")

            __hash__ = None

        gm = fx.symbolic_trace(Mlp())
        node = list(gm.graph.nodes)[2]
        node.meta["custom"] = Evil()
        node.meta["self"] = node.meta
        node.meta["stack_trace"] = 'File "\udc80x", line 1, in f\n    code\n' + "x" * 1_000_000
        node.meta["val"] = Evil()
        list(gm.graph.nodes)[1].name = "a\nb; rm -rf \ud800"
        node.kwargs = {"text": "a\nb\"' \ud800", "nan": float("nan"), "big": 10 ** 5000}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with strata.record(self.trace):
                strata.watch(drop_add_zero)(gm)
        self.assertEqual([str(warning.message) for warning in caught], [])
        self.assertEqual(self.passes()[0]["status"], "ok")
        self.assertEqual(self.passes()[0]["before"]["nodes"], len(gm.graph.nodes) + 1)
        self.strata("check", self.trace, ok=(0,))

    def test_graphs_of_this_process_are_compared_and_shown(self):  # PY-29
        gm = fx.symbolic_trace(Mlp())
        new = copy.deepcopy(gm)
        replace_relu(new)
        found = strata.diff(gm, new)
        self.assertTrue(found.differs)
        self.assertIn("gelu", repr(found))
        self.assertIn("gelu", found.to_markdown())
        page = found._repr_html_()
        self.assertIn("<table>", page)
        self.assertLess(len(page), 500_000)
        self.assertFalse(strata.diff(gm, copy.deepcopy(gm)).differs)
        self.assertIn("relu", str(strata.show(gm)))
        self.assertFalse(strata.diff(gm, str(strata.show(gm, format="fx"))).differs)
        with self.assertRaisesRegex(strata.Error, "no graph: int"):
            strata.diff(gm, 3)


if __name__ == "__main__":
    STRATA = os.path.abspath(sys.argv.pop(1))
    os.environ["STRATA_BIN"] = STRATA
    unittest.main()
