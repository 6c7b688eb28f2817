"""Twenty passes over the training graphs of eight models: the recorded lineage is that of the objects.

The oracle is independent of the recorder. A pass in place: the nodes themselves. A pass that makes a new graph: a number in
the metadata of every node, which copies keep; or the order of the nodes, where one is made for each. What a pass replaces
and copies it states itself. The matcher, which sees the texts of both graphs alone, is compared with the same truth.
"""

import copy
import json
import operator
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import torch_python  # noqa: E402

torch_python.need()

import torch  # noqa: E402
from torch import fx  # noqa: E402
from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402
from torch.fx.passes.infra.pass_base import PassBase, PassResult  # noqa: E402
from torch.fx.passes.infra.pass_manager import PassManager  # noqa: E402

import fx_zoo  # noqa: E402
import graph_trainer as trainer  # noqa: E402
import strata  # noqa: E402

aten = torch.ops.aten
POINTWISE = (aten.add.Tensor, aten.mul.Tensor, aten.sub.Tensor, aten.div.Tensor, aten.tanh.default, aten.relu.default,
             aten.sigmoid.default, aten.silu.default, aten.gelu.default, aten.rsqrt.default)


class Truth:
    """What a pass did, in its own words."""

    def __init__(self):
        self.same = None        # pairs of nodes, where the objects do not say it
        self.replaced = []      # (old nodes, new nodes)
        self.copied = []        # (original, copy)


def put(graph, before, target, args, like):
    with graph.inserting_before(before):
        node = graph.call_function(target, args)
    node.meta = dict(like.meta)
    return node


def exchange(graph, truth, old, new, *more):
    """`old`, and `more` that only it used, become `new` nodes; the last of them has the value."""
    old.replace_all_uses_with(new[-1])
    for node in (old, *more):
        graph.erase_node(node)
    truth.replaced.append(([old, *more], list(new)))


# --- Passes in place --------------------------------------------------------------------------------------------------


def forward_alone(gm, truth):
    """The gradients are not returned: what computes them is dead."""
    output = next(iter(reversed(gm.graph.nodes)))
    output.args = ([output.args[0][0]],)
    gm.graph.eliminate_dead_code()


def detach(gm, truth):
    trainer.remove_detach_pass(gm)


def views_of_views(gm, truth):
    for node in trainer.calls(gm):
        if node.target in (aten.view.default, aten._unsafe_view.default):
            source = node.args[0]
            if source.target in (aten.view.default, aten._unsafe_view.default):
                node.args = (source.args[0], node.args[1])
                if not source.users:
                    gm.graph.erase_node(source)


def double_transposes(gm, truth):
    trainer.remove_double_transpose_pass(gm)


def spelling_of_views(gm, truth):
    trainer.normalize_views_pass(gm)


def scale_constants(gm, truth):
    for node in trainer.calls(gm):
        if node.target is aten.mul.Scalar:
            node.args = (node.args[0], node.args[1] * 2)


def fuse_addcmul(gm, truth):
    for node in trainer.calls(gm):
        for place in (0, 1):
            other = node.args[place] if node.target is aten.add.Tensor else None
            if isinstance(other, fx.Node) and other.target is aten.mul.Tensor and len(other.users) == 1 \
                    and all(isinstance(arg, fx.Node) for arg in (*other.args, node.args[1 - place])):
                new = put(gm.graph, node, aten.addcmul.default, (node.args[1 - place], *other.args), node)
                exchange(gm.graph, truth, node, [new], other)
                break


def split_addmm(gm, truth):
    for node in trainer.calls(gm):
        if node.target is aten.addmm.default:
            product = put(gm.graph, node, aten.mm.default, node.args[1:], node)
            exchange(gm.graph, truth, node, [product, put(gm.graph, node, aten.add.Tensor, (product, node.args[0]), node)])


def relu_to_clamp(gm, truth):
    for node in trainer.calls(gm):
        if node.target is aten.relu.default:
            exchange(gm.graph, truth, node, [put(gm.graph, node, aten.clamp_min.default, (node.args[0], 0), node)])


def decompose_sigmoid(gm, truth):
    for node in trainer.calls(gm):
        if node.target in (aten.sigmoid.default, aten.silu.default):
            negated = put(gm.graph, node, aten.neg.default, (node.args[0],), node)
            power = put(gm.graph, node, aten.exp.default, (negated,), node)
            one = put(gm.graph, node, aten.add.Scalar, (power, 1), node)
            over = node.args[0] if node.target is aten.silu.default else 1
            form = aten.div.Tensor if over != 1 else aten.reciprocal.default
            args = (over, one) if over != 1 else (one,)
            exchange(gm.graph, truth, node, [negated, power, one, put(gm.graph, node, form, args, node)])


def cast_operands(gm, truth):
    for node in trainer.calls(gm):
        if node.target is aten.mm.default:
            low = [put(gm.graph, node, aten.to.dtype, (arg, torch.bfloat16), arg) for arg in node.args]
            node.args = tuple(low)


def copy_cheap_nodes(gm, truth):
    """Each cheap node of the forward pass that the backward pass reads, too, is computed there again."""
    for node in trainer.calls(gm):
        late = [user for user in node.users if trainer.is_backward(user)]
        if node.target in POINTWISE and not trainer.is_backward(node) and late and len(late) < len(node.users):
            with gm.graph.inserting_before(min(late)):
                again = gm.graph.node_copy(node)
            for user in late:
                user.replace_input_with(node, again)
            truth.copied.append((node, again))


def sink(gm, truth):
    for node in trainer.calls(gm):
        users = [user for user in node.users]
        if node.target in POINTWISE and users and min(users) is not node.next:
            min(users).prepend(node)


def rename(gm, truth):
    for number, node in enumerate(trainer.calls(gm)):
        if number % 3 == 0:
            node.name = f"value_{number}"


def join_products(gm, truth):
    """Products of views of one left side become one, whose parts are taken out again."""
    groups = {}
    for node in trainer.calls(gm):
        left = node.args[0] if node.target is aten.mm.default else None
        if left is not None and left.target is aten.view.default and node.args[1].target is aten.t.default:
            groups.setdefault((left.args[0], tuple(left.args[1])), []).append(node)
    for nodes in groups.values():
        first = nodes[0]
        if len(nodes) < 2 or not all(node.args[1].args[0] < first for node in nodes):
            continue
        for node in nodes[1:]:
            first.prepend(node.args[1])
        sides = put(gm.graph, first, aten.cat.default, ([node.args[1] for node in nodes], 1), first)
        product = put(gm.graph, first, aten.mm.default, (first.args[0], sides), first)
        sizes = [node.meta["val"].shape[1] for node in nodes]
        parts = put(gm.graph, first, aten.split_with_sizes.default, (product, sizes, 1), first)
        new = [put(gm.graph, first, operator.getitem, (parts, number), node) for number, node in enumerate(nodes)]
        for node, part in zip(nodes, new):
            node.replace_all_uses_with(part)
            gm.graph.erase_node(node)
        truth.replaced.append((nodes, [sides, product, parts, *new]))


def pattern_of_torch(gm, truth):
    """x * y + z, found and replaced by torch.fx."""
    def pattern(x, y, z):
        return aten.add.Tensor(aten.mul.Tensor(x, y), z)

    def replacement(x, y, z):
        return aten.addcmul.default(z, x, y)

    for match in torch.fx.subgraph_rewriter.replace_pattern_with_filters(gm, pattern, replacement):
        inside = [node for at, node in match.nodes_map.items() if at.op == "call_function"]
        truth.replaced.append((inside, list(match.replacements)))


class Half(PassBase):

    def __init__(self, target, by):
        super().__init__()
        self.target, self.by = target, by

    def call(self, gm):
        changed = False
        for node in trainer.calls(gm):
            if node.target is self.target:
                node.target, changed = self.by, True
        return PassResult(gm, changed)


def two_in_a_manager(gm, truth):
    manager = PassManager([Half(aten.tanh.default, aten.atan.default), Half(aten._unsafe_view.default, aten.view.default)])
    manager(gm)


# --- Passes that make a new graph -------------------------------------------------------------------------------------


def numbered(gm):
    for number, node in enumerate(gm.graph.nodes):
        node.meta["oracle"] = number
    return {number: node for number, node in enumerate(gm.graph.nodes)}


def equal_numbers(old, new):
    return [(old[node.meta["oracle"]], node) for node in new.graph.nodes if "oracle" in node.meta]


def common_subexpressions(gm, truth):
    from torch._functorch.compile_utils import fx_graph_cse

    numbers = numbered(gm)
    new = fx.GraphModule(gm, fx_graph_cse(gm.graph))
    truth.same = equal_numbers(numbers, new) + [(list(gm.graph.nodes)[-1], list(new.graph.nodes)[-1])]
    return new


def deep_copy(gm, truth):
    numbers = numbered(gm)
    new = copy.deepcopy(gm)
    truth.same = list({**dict(equal_numbers(numbers, new)),
                       list(gm.graph.nodes)[-1]: list(new.graph.nodes)[-1]}.items())
    for node in trainer.calls(new):
        if node.target is aten.relu.default:
            node.target = aten.sigmoid.default
    return new


class Other(fx.Transformer):

    def call_function(self, target, args, kwargs):
        return super().call_function(aten.sigmoid.default if target is aten.relu.default else target, args, kwargs)


def transformer(gm, truth):
    new = Other(gm).transform()
    truth.same = in_order(gm, new)
    return new


def in_order(gm, new):
    """One node was made for each: of the same operator they are the same."""
    assert len(gm.graph.nodes) == len(new.graph.nodes)
    return [(a, b) for a, b in zip(gm.graph.nodes, new.graph.nodes) if a.op == b.op and (
        a.target is b.target or a.op in ("placeholder", "output"))]


def retraced(gm, truth):
    for number, node in enumerate(gm.graph.nodes):
        node.meta["custom"] = {"oracle": number}
    values = [node.meta["val"] for node in gm.graph.nodes if node.op == "placeholder"]
    with values[0].fake_mode, torch.fx.traceback.preserve_node_meta():
        new = make_fx(lambda *inputs: fx.Interpreter(gm).run(*inputs))(*values)
    made = {}
    for node in new.graph.nodes:
        if node.op == "call_function":
            made.setdefault(node.meta["custom"]["oracle"], []).append(node)
    truth.same = [(a, b) for a, b in zip(gm.graph.nodes, new.graph.nodes) if a.op == b.op == "placeholder"]
    for number, node in enumerate(gm.graph.nodes):
        if len(made.get(number, ())) == 1 and made[number][0].target is node.target:
            truth.same.append((node, made[number][0]))
    truth.same.append((list(gm.graph.nodes)[-1], list(new.graph.nodes)[-1]))
    return new


PASSES = [forward_alone, detach, views_of_views, double_transposes, spelling_of_views, scale_constants, fuse_addcmul, split_addmm,
          relu_to_clamp, decompose_sigmoid, cast_operands, copy_cheap_nodes, sink, rename, join_products, pattern_of_torch,
          two_in_a_manager, common_subexpressions, deep_copy, transformer, retraced]


class Score:
    def __init__(self):
        self.right = self.found = self.true = 0

    def add(self, pairs, truth):
        self.right += len(pairs & truth)
        self.found += len(pairs)
        self.true += len(truth)

    def f1(self):
        return 2 * self.right / (self.found + self.true)


class LineageTest(unittest.TestCase):
    maxDiff = 2000

    def strata(self, *words):
        done = subprocess.run([STRATA, *words], capture_output=True, text=True, check=False, timeout=120)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        return done.stdout

    def run_pass(self, fn, model, folder):
        """(pairs of the trace, pairs of the matcher, true pairs); checks the relations of the trace."""
        gm, _ = fx_zoo.step_graph(model)
        truth, trace = Truth(), os.path.join(folder, "run.strata")
        before = {node: node.name for node in gm.graph.nodes}

        @strata.watch(name="the_pass")
        def watched(gm):
            new = fn(gm, truth)
            (new or gm).recompile()
            return new

        with strata.record(trace):
            new = watched(gm) or gm
        after = {node: node.name for node in new.graph.nodes}
        same = truth.same if truth.same is not None else [(node, node) for node in before if node in after]
        pairs = {(before[old], after[new]) for old, new in same if new in after}
        refs = [f"{trace}#pass=the_pass:{when}" for when in ("before", "after")]
        found = json.loads(self.strata("diff", *refs, "--json"))
        self.check_relations(found, truth, before, after)
        self.assertEqual({name for pair in found["pairs"] for name in (pair["after"],)} | set(found["inserted"]),
                         set(after.values()))
        texts = []
        for ref, when in zip(refs, ("before", "after")):
            texts.append(os.path.join(folder, when + ".txt"))
            self.strata("show", ref, "--format", "fx", "-o", texts[-1])
        guessed = json.loads(self.strata("diff", *texts, "--json"))
        as_set = [{(pair["before"], pair["after"]) for pair in content["pairs"]} for content in (found, guessed)]
        return (*as_set, pairs)

    def check_relations(self, found, truth, before, after):
        relations = {"clone": [], "replace": [], "merge": []}
        for relation in found["relations"]:
            relations.setdefault(relation["kind"], []).append((set(relation["before"]), set(relation["after"])))
        for original, again in truth.copied:
            self.assertTrue(any(before[original] in old and after[again] in new for old, new in relations["clone"]),
                            f"{before[original]} → {after[again]}: no clone: {relations['clone'][:5]}")
        for olds, news in truth.replaced:
            olds = {before[node] for node in olds if node in before}
            news = {after[node] for node in news if node in after}
            self.assertTrue(any(olds <= old and news <= new for old, new in relations["replace"]),
                            f"{olds} → {news}: no replacement: {relations['replace'][:5]}")

    def test_lineage_is_that_of_the_objects(self):  # PY-10
        identity, matcher, changed = Score(), Score(), 0
        for model in fx_zoo.MODELS:
            for fn in PASSES:
                with self.subTest(model=model, fn=fn.__name__), tempfile.TemporaryDirectory() as folder:
                    recorded, guessed, truth = self.run_pass(fn, model, folder)
                    identity.add(recorded, truth)
                    matcher.add(guessed, truth)
                    self.assertEqual(recorded, truth)
        print(f"{len(PASSES)} passes over {len(fx_zoo.MODELS)} models, {identity.true} true pairs: F1 of the recorded identity "
              f"{identity.f1():.5f}, of the matcher {matcher.f1():.5f}")
        self.assertEqual(identity.f1(), 1)


if __name__ == "__main__":
    STRATA = os.path.abspath(sys.argv.pop(1))
    os.environ["STRATA_BIN"] = STRATA
    unittest.main()
