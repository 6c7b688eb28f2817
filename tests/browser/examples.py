"""Programs and logs that the browser tests look at."""

import hashlib
import json

COND = """class cond(torch.nn.Module):
    def forward(self, x: "f32[4][1]cpu", p: "b8[][]cpu"):
        true_graph_0 = self.true_graph_0
        false_graph_0 = self.false_graph_0
        cond = torch.ops.higher_order.cond(p, true_graph_0, false_graph_0, (x,))
        getitem: "f32[4][1]cpu" = cond[0]
        return (getitem,)

    class true_graph_0(torch.nn.Module):
        def forward(self, x: "f32[4][1]cpu"):
            neg: "f32[4][1]cpu" = torch.ops.aten.neg.default(x)
            return (neg,)

    class false_graph_0(torch.nn.Module):
        def forward(self, x: "f32[4][1]cpu"):
            abs_1: "f32[4][1]cpu" = torch.ops.aten.abs.default(x)
            return (abs_1,)
"""


def training_step(layers=4):
    """A small training step in native text: embedding, equal blocks with attention and feed-forward, loss, backward."""
    lines, backward = [], []
    types = "f32[8, 64][64, 1]cpu"

    def call(name, op, operands, module, type_text=types, into=lines, phase="forward", more=""):
        into.append(f"  {name} = {op}({', '.join(operands)}) : {type_text} {{{phase} module={module}{more}}}")
        return name

    lines.append("graph step")
    lines.append("  tokens = placeholder : i64[8][1]cpu")
    for layer in range(layers):
        for weight in ("wq", "wo", "w1"):
            lines.append(f"  {weight}_{layer} = placeholder : f32[64, 64][64, 1]cpu")
    x = call("embedding", "aten.neg.default", ["tokens"], "tok_embeddings")
    for i in range(layers):
        where = f"layers.{i}.attention"
        seq = f" seq={10 * i + 1} loc=('model.py', {20 + i}, 'forward', 'h = x + self.attention(x)')"
        d = call(f"detach_{i}", "aten.detach.default", [x], where)
        t = call(f"t_{i}", "aten.t.default", [f"wq_{i}"], f"{where}.wq", "f32[64, 64][1, 64]cpu")
        q = call(f"q_{i}", "aten.mm.default", [d, t], f"{where}.wq", more=seq)
        v = call(f"view_{i}", "aten.view.default", [q, "[2, 4, 64]"], where, "f32[2, 4, 64][256, 64, 1]cpu")
        o = call(f"o_{i}", "aten.mm.default", [v, f"wo_{i}"], f"{where}.wo")
        h = call(f"add_{i}", "aten.add.Tensor", [x, o], f"layers.{i}")
        f = call(f"ff_{i}", "aten.mm.default", [h, f"w1_{i}"], f"layers.{i}.feed_forward.w1")
        x = call(f"silu_{i}", "aten.silu.default", [f], f"layers.{i}.feed_forward")
        g = f"grad_{i + 1}" if i + 1 < layers else "loss_grad"
        back = [call(f"g1_{i}", "aten.mm.default", [g, f"w1_{i}"], f"layers.{i}.feed_forward.w1", into=[], phase="backward")]
        mine = []
        call(f"g1_{i}", "aten.mm.default", [g, f"w1_{i}"], f"layers.{i}.feed_forward.w1", into=mine, phase="backward")
        call(f"dead_{i}", "aten.neg.default", [back[0]], f"layers.{i}.feed_forward", into=mine, phase="backward")
        call(f"gq_{i}", "aten.mm.default", [back[0], d], f"{where}.wq", into=mine, phase="backward")
        call(f"grad_{i}", "aten.add.Tensor", [f"gq_{i}", back[0]], f"layers.{i}", into=mine, phase="backward")
        backward = mine + backward
    call("loss", "aten.sum.default", [x], "loss", "f32[][]cpu", phase="loss")
    call("loss_grad", "aten.expand.default", ["loss", "[8, 64]"], "loss", phase="backward")
    return "\n".join(lines + backward + ["  output([loss, grad_0])"]) + "\n"


def rank_log(group, add_pass=False):
    """A log of one rank: a graph with collectives, before and after a pass."""
    def text(op):
        return (
            "class <lambda>(torch.nn.Module):\n"
            "    def forward(self, x: \"f32[4, 8][8, 1]cpu\", w: \"f32[8, 8][8, 1]cpu\"):\n"
            f"        ag: \"f32[8, 8][8, 1]cpu\" = torch.ops._c10d_functional.all_gather_into_tensor.default(w, 2, '{group}')\n"
            "        wait: \"f32[8, 8][8, 1]cpu\" = torch.ops._c10d_functional.wait_tensor.default(ag)\n"
            "        mm: \"f32[4, 8][8, 1]cpu\" = torch.ops.aten.mm.default(x, wait)\n"
            f"        act: \"f32[4, 8][8, 1]cpu\" = torch.ops.aten.{op}.default(mm)\n"
            "        ar: \"f32[4, 8][8, 1]cpu\" = torch.ops._c10d_functional.all_reduce.default(act, 'sum', '0')\n"
            "        out: \"f32[4, 8][8, 1]cpu\" = torch.ops._c10d_functional.wait_tensor.default(ar)\n"
            "        return [out]\n")

    records = []
    for name, op in (("before_fuse_pass", "relu"), ("after_fuse_pass", "silu" if add_pass else "gelu")):
        payload = text(op)
        envelope = {"artifact": {"name": name, "encoding": "string"}, "has_payload": hashlib.md5(payload.encode()).hexdigest()}
        records.append("V1120 18:32:38.396000 14073 torch/x.py:10] " + json.dumps(envelope) + "\n\t" + payload.replace("\n", "\n\t") + "\n")
    return "".join(records)
