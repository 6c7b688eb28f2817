"""Logs made by hand for the tests of runs: graphs as records of TORCH_TRACE, passes, compilations and ranks."""

import hashlib
import json
import os

from strata_case import LOGS, StrataCase

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
