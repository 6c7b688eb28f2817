"""The passes of a graph trainer over a sharded training step, recorded end to end through its own runner."""

import functools
import json
import os
import subprocess
import sys
import tempfile
import types
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import torch_python  # noqa: E402

torch_python.need()

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

import fx_zoo  # noqa: E402
import graph_trainer as trainer  # noqa: E402
import strata  # noqa: E402


class Unshard(torch.autograd.Function):
    """What a sharded module reads of a parameter; the gradient goes back to the shards."""

    group = ""

    @staticmethod
    def forward(ctx, parameter):
        return torch.ops._c10d_functional.wait_tensor(
            torch.ops._c10d_functional.all_gather_into_tensor(parameter, 1, Unshard.group))

    @staticmethod
    def backward(ctx, gradient):
        return torch.ops._c10d_functional.wait_tensor(
            torch.ops._c10d_functional.reduce_scatter_tensor(gradient, "sum", 1, Unshard.group))


def read(parameter):
    """Vectors are gathered twice, as a tracer that reads a parameter twice does."""
    whole = Unshard.apply(parameter)
    return whole if parameter.dim() > 1 else (whole + Unshard.apply(parameter)) / 2


def nodes_of(gm):
    """{node: name} of a module, and of the regions that were taken out of it."""
    nodes = {node: node.name for node in gm.graph.nodes}
    for path, region in gm.named_children():
        if isinstance(region, torch.fx.GraphModule):
            nodes.update({node: f"{path}/{node.name}" for node in region.graph.nodes})
    return nodes


def of_kind(nodes, kind):
    return [node for node, name in nodes.items() if node.op == kind and "/" not in name]


class Seen:
    """What a pass did to the objects."""

    def __init__(self, before, after, in_place):
        self.before, self.after = before, after
        if in_place:
            same = [(node, node) for node in before if node in after]
        else:
            numbers = {node.meta["oracle"]: node for node in before}
            same = [(numbers[node.meta["oracle"]], node) for node in after
                    if "oracle" in node.meta and node.op == "call_function"]
            # Inputs of a region have the metadata of what they stand for.
            for kind in ("placeholder", "output"):
                same += zip(of_kind(before, kind), of_kind(after, kind))
        self.pairs = {(before[old], after[new]) for old, new in same}
        found = {new for _, new in same}
        self.inserted = {name for node, name in after.items() if node not in found}


class GraphTrainerTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
        cls.addClassCleanup(dist.destroy_process_group)
        Unshard.group = dist.group.WORLD.group_name
        cls.extra = dist.new_group([0]).group_name
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.trace = os.path.join(folder.name, "run.strata")
        cls.copies = []
        cls.record()

    @classmethod
    def record(cls):
        """Runs the list as the trainer does; notes what each pass did to the objects."""
        cls.seen = {}
        gm, cls.inputs = fx_zoo.step_graph("llama", read)
        cls.expected = gm(*cls.inputs)
        passes = trainer.default_passes(cls.extra)
        passes[5] = functools.partial(passes[5], told=lambda old, new: cls.copies.append((old.name, new.name)))
        # Modules of the trainer import its runner by name.
        module = types.ModuleType("torchtitan.experiments.graph_trainer.trainer")
        module.apply_graph_passes = trainer.apply_graph_passes
        sys.modules[module.__name__] = module
        cls.addClassCleanup(sys.modules.pop, module.__name__)
        cls.names = [(fn.func if isinstance(fn, functools.partial) else fn).__name__ for fn in passes]
        with strata.record(cls.trace):
            cls.gm = module.apply_graph_passes(gm, cls.inputs, [cls.spied(fn) for fn in passes],
                                               disable_passes=["cudagraph_pass"])
        cls.was_put_back = module.apply_graph_passes is trainer.apply_graph_passes

    @classmethod
    def spied(cls, fn):
        inner = fn.func if isinstance(fn, functools.partial) else fn

        @functools.wraps(inner)
        def spy(gm, inputs, **options):
            graph, before = gm.graph, nodes_of(gm)
            if inner is trainer.regional_compilation_pass:  # makes a new graph, of copies: these keep a number
                for number, node in enumerate(before):
                    node.meta["oracle"] = number
            new = inner(gm, inputs, **options)
            cls.seen[inner.__name__] = Seen(before, nodes_of(new), new.graph is graph)
            return new

        return functools.partial(spy, *fn.args, **fn.keywords) if isinstance(fn, functools.partial) else spy

    def strata(self, *words):
        done = subprocess.run([STRATA, *words], capture_output=True, text=True, check=False, timeout=120)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        return done.stdout

    def diff(self, name):
        return json.loads(self.strata("diff", f"{self.trace}#pass={name}:before", f"{self.trace}#pass={name}:after", "--json"))

    def test_every_pass_of_the_runner_is_recorded_under_its_name(self):  # PY-15
        [run] = json.loads(self.strata("ls", self.trace, "--json"))["runs"]
        self.assertEqual([stored["name"] for stored in run["passes"]], self.names[:-1])
        status = {stored["name"]: stored["status"] for stored in run["passes"]}
        self.assertEqual({name for name in status if status[name] != "ok"}, {"eliminate_dead_code_pass"})
        self.assertEqual(len(run["graphs"]), 1)
        self.assertTrue(self.was_put_back)
        self.strata("check", self.trace)

    def test_the_passes_compute_what_was_there_before(self):
        for found, expected in zip(self.gm(*self.inputs), self.expected):
            self.assertTrue(torch.equal(found, expected))

    def test_identity_is_that_of_the_objects(self):
        for name in self.names[:-1]:
            seen, found = self.seen[name], self.diff(name)
            with self.subTest(name):
                self.assertEqual({(pair["before"], pair["after"]) for pair in found["pairs"]}, seen.pairs)
                self.assertEqual({pair["via"] for pair in found["pairs"]}, {"id"})
                self.assertEqual(set(found["inserted"]), seen.inserted)
        regions = [pair for pair in self.seen["regional_compilation_pass"].pairs if "/" in pair[1]]
        self.assertGreater(len(regions), 20)

    def test_a_recomputed_node_is_a_clone_of_its_original(self):
        self.assertGreater(len(self.copies), 100)
        relations = self.diff("selective_activation_remat_pass")["relations"]
        clones = {(relation["before"][0], name) for relation in relations if relation["kind"] == "clone"
                  for name in relation["after"]}
        pairs = {(pair["before"], pair["after"]) for pair in self.diff("selective_activation_remat_pass")["pairs"]}
        # An original that no node reads any more has moved: its copy stands for it.
        replaced = {(old, new) for relation in relations if relation["kind"] == "replace"
                    for old in relation["before"] for new in relation["after"]}
        self.assertEqual([pair for pair in self.copies if pair not in clones | pairs | replaced], [])

    def test_buckets_replace_the_collectives_that_they_are_made_of(self):
        name = "joint_transformer_block_bucketing_reordering_pass"
        relations = [relation for relation in self.diff(name)["relations"] if relation["kind"] == "replace"]
        before, after = self.seen[name].before, self.seen[name].after
        gathered = {before[node] for node in before if node not in after and node.target is trainer.WAIT}
        self.assertGreater(len(gathered), 10)
        self.assertEqual(gathered - {old for relation in relations for old in relation["before"]}, set())

    def test_a_node_of_the_last_graph_is_traced_to_the_first(self):
        text = self.strata("blame", self.trace, self.copies[0][1])
        self.assertIn("selective_activation_remat_pass", text)
        self.assertIn(self.copies[0][0], text)

    def test_what_memory_policies_and_trainers_write_at_nodes_is_kept(self):
        text = self.strata("show", f"{self.trace}#pass=tag_with_memory_policy_pass:after", "--format", "fx")
        for mark in ("recompute: PREFER_RECOMPUTE", "autograd_backward: True", "layers.1.feed_forward.w3"):
            self.assertIn(mark, text)


if __name__ == "__main__":
    STRATA = os.path.abspath(sys.argv.pop(1))
    os.environ["STRATA_BIN"] = STRATA
    unittest.main()
