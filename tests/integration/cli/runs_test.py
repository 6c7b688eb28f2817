"""`strata ranks`, `bisect`, `blame` and `merge` as scripts use them, over logs made by hand and edited fixtures.

    runs_test.py STRATA
"""

import hashlib
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))

from strata_case import LOGS, StrataCase, main, read_log  # noqa: E402

GRAPH_TRAINER = os.path.join(LOGS, "graph_trainer_2layer_torch2.14.1.log.zst")
TWO_RANKS = os.path.join(LOGS, "llama3_fsdp2_2ranks")
COMPILED = os.path.join(LOGS, "llama3_compile_torch2.11.log.zst")


def record(name, text, rank, **keys):
    """A record of TORCH_TRACE with a graph as its payload."""
    envelope = {"artifact": {"name": name, "encoding": "string"}, "rank": rank, **keys,
                "has_payload": hashlib.md5(text.encode()).hexdigest()}
    lines = "".join(f"\t{line}\n" for line in text.split("\n"))
    return f"V1120 18:32:38.396000 14073 torch/x.py:10] {json.dumps(envelope)}\n{lines}"


def graph(lines):
    """FX text of a graph with two inputs; each line `name = call`."""
    text = ('class GraphModule(torch.nn.Module):\n'
            '    def forward(self, x: "f32[8, 8]", w: "f32[8, 8]"):\n')
    for line in lines:
        name, call = line.split(" = ", 1)
        prefix = "" if "[" in call.split("(")[0] else "torch.ops."
        text += f'        {name}: "f32[8, 8]" = {prefix}{call}\n'
    return text + f'        return ({lines[-1].split(" = ")[0]},)'


LAYERS = [
    "ag = _c10d_functional.all_gather_into_tensor.default(w, 4, 'fsdp')",
    "wt = _c10d_functional.wait_tensor.default(ag)",
    "sl = aten.slice.Tensor(wt, 0, 0, 8)",
    "mm = aten.mm.default(x, sl)",
    "de = aten.detach.default(mm)",
    "si = aten.silu.default(de)",
    "ar = _c10d_functional.all_reduce.default(si, 'sum', 'tp')",
    "wa = _c10d_functional.wait_tensor.default(ar)",
    "rs = _c10d_functional.reduce_scatter_tensor.default(wa, 'sum', 4, 'tp')",
    "wr = _c10d_functional.wait_tensor.default(rs)",
    "ou = aten.mul.Tensor(wr, 2)",
]


def without_detach(lines):
    return [line.replace("(de)", "(mm)") for line in lines if not line.startswith("de ")]


def with_relu(lines):
    return [line.replace("aten.silu", "aten.relu") for line in lines]


def log(passes, rank=0):
    """A log of a run: (name, lines) per graph, each pass from one to the next."""
    (_, last), *rest = passes
    text = record("make_fx_graph_traced", graph(last), rank)
    for name, lines in rest:
        text += record(f"before_{name}", graph(last), rank) + record(f"after_{name}", graph(lines), rank)
        last = lines
    return text


def pipeline(lines):
    return [("", lines), ("noop", lines), ("remove_detach", without_detach(lines)),
            ("fuse", with_relu(without_detach(lines)))]


class RunsCase(StrataCase):
    def json(self, *arguments, code):
        done = self.run_strata(*arguments, "--json")
        self.assertEqual(done.returncode, code, done.stderr + done.stdout)
        return json.loads(done.stdout)

    def nodes_of(self, ref):
        done = self.run_strata("show", ref, "--format", "json")
        self.assertEqual(done.returncode, 0, f"{ref}: {done.stderr}")
        return [node["name"] for node in json.loads(done.stdout)["nodes"]]


class RanksTest(RunsCase):
    def ranks(self, lines_of_rank, code):
        for rank, lines in enumerate(lines_of_rank):
            self.write(f"logs/dedicated_log_torch_trace_rank_{rank}_x.log", log(pipeline(lines), rank))
        return self.json("ranks", "logs", code=code)

    def test_equal_ranks_are_one_class(self):
        report = self.ranks([LAYERS] * 4, 0)
        self.assertEqual(report["schema"], "strata.ranks/1")
        self.assertEqual(report["classes"], [[0, 1, 2, 3]])
        self.assertIsNone(report["first_difference"])
        self.assertEqual((report["collectives"], report["constants"]), ([], []))

    def test_a_log_from_standard_input(self):
        text = log(pipeline(LAYERS))
        self.write("a.log", text)
        for words in (["ranks", "-"], ["bisect", "-", "a.log"], ["blame", "-", "si"]):
            done = self.run_strata(*words, stdin=text)
            self.assertEqual((done.returncode, done.stderr), (0, ""), words)

    def test_fixture_of_two_ranks(self):
        self.assertEqual(self.json("ranks", TWO_RANKS, code=0)["classes"], [[0, 1]])

    def test_one_rank_that_computes_something_else(self):
        odd = [line.replace("aten.mul.Tensor(wr, 2)", "aten.mul.Tensor(wr, 3)") for line in LAYERS]
        report = self.ranks([LAYERS, LAYERS, odd, LAYERS], 1)
        self.assertEqual(report["classes"], [[0, 1, 3], [2]])
        first = report["first_difference"]
        self.assertEqual((first["pass"], first["node"], first["ranks"]), (None, "ou", [2]))
        self.assertEqual(first["what"], "change args[1] of aten.mul.Tensor: 2 → 3")
        for ref in first["refs"]:
            self.assertIn("ou", self.nodes_of(ref))

    def test_the_pass_at_which_a_rank_parts(self):
        for rank in range(4):
            steps = pipeline(LAYERS)
            if rank == 1:
                steps[3] = ("fuse", without_detach(LAYERS))
            self.write(f"logs/rank_{rank}.log", log(steps, rank))
        first = self.json("ranks", "logs", code=1)["first_difference"]
        self.assertEqual((first["pass"], first["pass_name"], first["node"], first["ranks"]),
                         (2, "fuse", "si", [1]))

    def test_values_that_follow_the_rank_are_constants(self):
        report = self.ranks([[line.replace("wt, 0, 0, 8", f"wt, 0, {2 * rank}, {2 * rank + 2}")
                              for line in LAYERS] for rank in range(4)], 0)
        self.assertEqual(report["classes"], [[0, 1, 2, 3]])
        constants = {(c["node"], c["path"]): c["formula"] for c in report["constants"]}
        self.assertEqual(constants, {("sl", "args[2]"): "2·rank", ("sl", "args[3]"): "2·rank + 2"})

    def test_a_value_that_no_rule_explains_parts_ranks(self):
        report = self.ranks([[line.replace("wt, 0, 0, 8", f"wt, 0, 0, {8 if rank != 2 else 7}")
                              for line in LAYERS] for rank in range(4)], 1)
        self.assertEqual(report["classes"], [[0, 1, 3], [2]])
        self.assertEqual(report["first_difference"]["node"], "sl")
        self.assertEqual(report["first_difference"]["what"], "args[3]: 7 on rank 2, 8 on ranks 0, 1, 3")
        self.assertEqual([ref.split("#")[0][-12:] for ref in report["first_difference"]["refs"]],
                         ["rank_0_x.log", "rank_2_x.log"])
        for ref in report["first_difference"]["refs"]:
            self.assertIn("sl", self.nodes_of(ref))

    def test_an_offset_that_is_0_on_one_of_two_ranks(self):
        def ranks(offset, code):
            return self.ranks([[line.replace("wt, 0, 0, 8", f"wt, 0, {rank * offset}, 64") for line in LAYERS]
                               for rank in range(2)], code)

        # Tensors have 8 rows. None has a size of 5.
        self.assertEqual([(c["node"], c["path"], c["formula"]) for c in ranks(8, 0)["constants"]],
                         [("sl", "args[2]", "8·rank")])
        report = ranks(5, 1)
        self.assertEqual((report["classes"], report["first_difference"]["what"]),
                         ([[0], [1]], "args[2]: 0 on rank 0, 5 on rank 1"))

    def test_a_group_of_another_name_on_one_rank(self):
        odd = [line.replace("'tp'", "'pt'") for line in LAYERS]
        report = self.ranks([LAYERS, LAYERS, odd, LAYERS], 1)
        self.assertEqual(report["classes"], [[0, 1, 2, 3]])
        self.assertEqual([(e["kind"], e["group"], e["ranks"], e["what"]) for e in report["collectives"]],
                         [("group", "pt", [2], "group: all_reduce f32[8, 8] in 'pt', on the other ranks in 'tp'")])

    def test_two_collectives_in_another_order(self):
        swapped = [line.replace("(si, 'sum', 'tp')", "(wr, 'sum', 'tp')").replace("(wa, 'sum'", "(si, 'sum'")
                   for line in LAYERS]
        swapped = swapped[:6] + swapped[8:10] + swapped[6:8] + [LAYERS[10].replace("wr", "wa")]
        report = self.ranks([LAYERS, LAYERS, LAYERS, swapped], 1)
        self.assertEqual(len(report["collectives"]), 1, report["collectives"])
        entry = report["collectives"][0]
        self.assertEqual((entry["index"], entry["ranks"], entry["kind"], entry["group"]),
                         (0, [3], "order", "tp"))

    def test_kinds_of_mismatches(self):
        def kinds(change):
            report = self.ranks([LAYERS, LAYERS, [change(line) for line in LAYERS]], 1)
            return [(e["kind"], e["group"], e["index"], e["ranks"]) for e in report["collectives"]]

        self.assertEqual(kinds(lambda line: line.replace("all_reduce.default(si, 'sum', 'tp')",
                                                         "all_reduce.default(si, 'sum', 'fsdp')")),
                         [("group", "tp", 0, [2])])
        self.assertEqual(kinds(lambda line: line.replace("all_reduce.default", "broadcast.default")),
                         [("op", "tp", 0, [2])])
        self.assertEqual(kinds(lambda line: line.replace("_c10d_functional.all_reduce.default(si, 'sum', 'tp')",
                                                         "aten.neg.default(si)")),
                         [("missing", "tp", 0, [2])])
        self.assertEqual(kinds(lambda line: line.replace("wait_tensor.default(ar)", "neg.default(ar)")),
                         [("wait", "tp", 0, [2])])

    def test_shapes_of_collectives(self):
        text = log(pipeline(LAYERS), 1).replace('si: "f32[8, 8]"', 'si: "bf16[8, 8]"')
        self.write("a.log", log(pipeline(LAYERS), 0))
        self.write("b.log", text)
        report = self.json("ranks", "a.log", "b.log", code=1)
        self.assertEqual([(e["kind"], e["index"]) for e in report["collectives"]], [("dtype", 0)])

    def test_traces_and_merged_traces(self):
        odd = [line.replace("aten.mul.Tensor(wr, 2)", "aten.mul.Tensor(wr, 3)") for line in LAYERS]
        for rank, lines in enumerate([LAYERS, LAYERS, odd]):
            self.write(f"{rank}.log", log(pipeline(lines), rank))
            self.assertEqual(self.run_strata("import", f"{rank}.log", "-o", f"{rank}.strata").returncode, 0)
        report = self.json("ranks", "0.strata", "1.strata", "2.strata", code=1)
        self.assertEqual(report["classes"], [[0, 1], [2]])
        self.assertEqual(self.run_strata("merge", "0.strata", "1.strata", "2.strata", "-o", "all.strata").returncode, 0)
        self.assertEqual(self.run_strata("check", "all.strata").returncode, 0)
        merged = self.json("ranks", "all.strata", code=1)
        self.assertEqual(merged["classes"], [[0, 1], [2]])
        self.assertEqual(merged["first_difference"]["node"], "ou")
        listing, parts = json.loads(self.run_strata("ls", "all.strata", "--json").stdout), []
        for rank in range(3):
            parts += json.loads(self.run_strata("ls", f"{rank}.strata", "--json").stdout)["runs"]
        self.assertEqual([run["rank"] for run in listing["runs"]], [0, 1, 2])
        for run, part in zip(listing["runs"], parts):
            for key in ("graphs", "passes"):
                strip = [{k: v for k, v in item.items() if k != "ref"} for item in run[key]]
                self.assertEqual(strip, [{k: v for k, v in item.items() if k != "ref"} for item in part[key]])
            self.assertEqual(run["artifacts"], part["artifacts"])

    def test_merge_of_one_rank_twice(self):
        self.write("0.log", log(pipeline(LAYERS), 0))
        for name in ("a", "b"):
            self.run_strata("import", "0.log", "-o", f"{name}.strata")
        self.assertEqual(self.fails("merge", "a.strata", "b.strata", "-o", "c.strata"),
                         "two traces of rank 0: a.strata and b.strata: give one trace per rank, or number "
                         "them with --renumber")
        self.assertIn("two traces of rank 0: a.strata and a.strata: ",
                      self.fails("merge", "a.strata", "a.strata", "-o", "c.strata"))
        self.assertFalse(os.path.exists(self.path("c.strata")))
        self.assertEqual(self.run_strata("merge", "a.strata", "b.strata", "-o", "c.strata", "--renumber").returncode, 0)
        self.assertEqual(self.json("ranks", "c.strata", code=0)["classes"], [[0, 1]])

    def test_other_passes_that_leave_the_same(self):
        self.write("a.log", log(pipeline(LAYERS), 0))
        self.write("b.log", log([("", LAYERS), ("remove_detach", without_detach(LAYERS)),
                                 ("fuse", with_relu(without_detach(LAYERS)))], 1))
        self.assertEqual(self.json("ranks", "a.log", "b.log", code=0)["classes"], [[0, 1]])

    def test_same_input_same_bytes(self):
        self.ranks([LAYERS, with_relu(LAYERS), LAYERS], 1)
        outputs = {self.run_strata("ranks", "logs", *json_).stdout for json_ in ((), (), ("--json",), ("--json",))}
        self.assertEqual(len(outputs), 2)

    def test_errors(self):
        os.mkdir(self.path("empty"))
        self.assertEqual(self.fails("ranks", "empty"), "no logs: empty: the folder has no file '*.log'")
        self.assertEqual(self.fails("ranks", "missing"), "no such file: missing: check the path")


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


def compiled(name, inputs, lines, result, compilation=0):
    """A graph of a compilation: `name = call` per line."""
    arguments = "".join(f', {i}: "f32[8, 8]"' for i in inputs)
    text = f"class GraphModule(torch.nn.Module):\n    def forward(self{arguments}):\n"
    for line in lines:
        text += '        {}: "f32[8, 8]" = torch.ops.aten.{}\n'.format(*line.split(" = ", 1))
    return record(name, text + f"        return ({', '.join(result)},)", 0, frame_id=0, frame_compile_id=compilation,
                  attempt=0)


FORWARD = ["sin = sin.default(primals_1)", "exp = exp.default(sin)"]
BACKWARD = ["neg = neg.default(tangents_1)", "mul = mul.Tensor(neg, exp)", "cos = cos.default(primals_1)",
            "mul_1 = mul.Tensor(mul, cos)"]


def partitioned(compilation=0):
    """A joint graph, cut in two, and what post-grad passes make of the parts. Nothing needs `dead`."""
    at = {"compilation": compilation}
    fused = [BACKWARD[0], "fma = addcmul.default(neg, exp, neg)", BACKWARD[2], "mul_1 = mul.Tensor(fma, cos)"]
    backward_inputs = ["primals_1", "exp", "tangents_1"]
    return (compiled("aot_joint_graph", ["primals_1", "tangents_1"], FORWARD + ["dead = tan.default(sin)"] + BACKWARD,
                     ["exp", "mul_1"], **at) +
            compiled("aot_forward_graph", ["primals_1"], FORWARD, ["exp", "primals_1"], **at) +
            compiled("aot_backward_graph", backward_inputs, BACKWARD, ["mul_1"], **at) +
            compiled("before_post_grad_graph", ["primals_1"], FORWARD, ["exp", "primals_1"], **at) +
            compiled("inductor_post_grad_graph", ["primals_1"], FORWARD, ["exp", "primals_1"], **at) +
            compiled("before_post_grad_graph", backward_inputs, BACKWARD, ["mul_1"], **at) +
            compiled("inductor_post_grad_graph", backward_inputs, fused, ["mul_1"], **at))


def event(name, rank=0, compilation=0):
    """An artifact of a compilation, without a graph."""
    return record(name, '{"key": "f"}', rank, frame_id=0, frame_compile_id=compilation, attempt=0)


def inference(is_cached, rank=0, lines=FORWARD):
    """A compilation for inference, and another one; of what PyTorch takes from its cache it logs the results alone."""
    text = ""
    for at in (0, 1):
        def part(name, changed=False):
            some = [line.replace("exp.default", "exp2.default") for line in lines] if changed else lines
            return compiled(name, ["primals_1"], some, ["exp"], at).replace('"rank": 0', f'"rank": {rank}')

        text += part("aot_inference_graph")
        if not is_cached:
            text += event("aotautograd_cache_miss", rank, at) + part("before_joint_graph") + part("after_joint_graph", True)
            text += part("before_post_grad_graph", True)
        text += part("inductor_post_grad_graph", True)
        text += event("fx_graph_cache_hit" if is_cached else "fx_graph_cache_miss", rank, at)
        if is_cached:
            text += event("aotautograd_cache_hit", rank, at)
    return text


def vocabulary_shard(rank, rows=8, low=None):
    """An embedding cut along the vocabulary, and the rank's part of a tensor that all have."""
    low = rows * rank if low is None else low
    parts = "sh, ze" if rank == 0 else "ze, sh"
    return graph([
        f"lt = aten.lt.Scalar(x, {low})", f"ge = aten.ge.Scalar(x, {low + rows})", f"su = aten.sub.Tensor(x, {low})",
        "sp = aten.split.Tensor(su, 4)", f"sh = sp[{rank}]",
        "ze = aten.zeros.default([4, 8])", f"ca = aten.cat.default([{parts}])",
        f"ar = _c10d_functional.all_reduce.default(ca, 'sum', '{'tp' if rank == 0 else 'tp_1'}')",
        "wa = _c10d_functional.wait_tensor.default(ar)"])


class RanksOfOneProgramTest(RunsCase):
    def test_what_follows_from_the_rank_is_no_difference(self):
        for rank in (0, 1):
            self.write(f"r/rank_{rank}.log", record("aot_forward_graph", vocabulary_shard(rank), rank))
        self.assertEqual(self.json("ranks", "r", code=0)["classes"], [[0, 1]])
        self.assertTrue(self.json("bisect", "r/rank_0.log", "r/rank_1.log", code=0)["equal"])
        self.assertTrue(self.json("bisect", "r/rank_1.log", "r/rank_0.log", code=0)["equal"])

    def test_a_bound_that_no_size_explains_is_a_difference(self):
        for rank in (0, 1):
            self.write(f"r/rank_{rank}.log",
                       record("aot_forward_graph", vocabulary_shard(rank, low=rank * 7), rank))
        self.json("ranks", "r", code=1)
        found = self.json("bisect", "r/rank_0.log", "r/rank_1.log", code=1)
        self.assertEqual((found["node"], found["graph"]), ("lt", "aot_forward_graph"))

    def test_runs_of_one_rank_are_compared_exactly(self):
        for rank in (0, 1):
            self.write(f"{rank}.log", record("aot_forward_graph", vocabulary_shard(rank), 0))
        self.json("bisect", "0.log", "1.log", code=1)


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
