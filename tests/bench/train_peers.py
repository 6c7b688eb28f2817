"""Trains the Llama3 of a configuration with plain PyTorch, when it is told to, and tells what a step costs.

    python train_peers.py REQUEST.json

REQUEST: {"config": {dim, n_layers, …}, "init": FILE.safetensors, "peer": "eager", "threads": 1, "cache": FOLDER}.
The file holds the initial parameters by torchtitan's names and `tokens`, int64 [steps, batch, seq + 1].
Reads orders from stdin and answers each with a line of JSON on stdout:
    begin   makes the model and does three steps: seconds of the first, losses, peak of what a step allocates
    run N   does N steps: [milliseconds of processor time, of wall time] of each
It ends with its orders. What libraries print goes to stderr.
"""

import json
import math
import os
import resource
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn


def read_safetensors(path):
    dtypes = {"F32": torch.float32, "I64": torch.int64}
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        data = bytearray(file.read())
    tensors = {}
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            tensors[name] = torch.frombuffer(data[begin:end], dtype=dtypes[entry["dtype"]]).reshape(entry["shape"])
    return tensors


class Attention(nn.Module):

    def __init__(self, c):
        super().__init__()
        self.head_dim = c["head_dim"]
        self.qkv_linear = nn.ModuleDict({
            "wq": nn.Linear(c["dim"], c["n_heads"] * c["head_dim"], bias=False),
            "wk": nn.Linear(c["dim"], c["n_kv_heads"] * c["head_dim"], bias=False),
            "wv": nn.Linear(c["dim"], c["n_kv_heads"] * c["head_dim"], bias=False),
        })
        self.wo = nn.Linear(c["n_heads"] * c["head_dim"], c["dim"], bias=False)

    def rotate(self, x, table):
        pairs = torch.view_as_complex(x.float().unflatten(-1, (-1, 2)))
        return torch.view_as_real(pairs * table[None, :x.shape[1], None, :]).flatten(3).type_as(x)

    def forward(self, x, table):
        q, k, v = (self.qkv_linear[name](x).unflatten(-1, (-1, self.head_dim)) for name in ("wq", "wk", "wv"))
        q, k = self.rotate(q, table), self.rotate(k, table)
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=q.shape[1] != k.shape[1])
        return self.wo(out.transpose(1, 2).flatten(2))


class FeedForward(nn.Module):

    def __init__(self, c):
        super().__init__()
        self.w1 = nn.Linear(c["dim"], c["hidden_dim"], bias=False)
        self.w2 = nn.Linear(c["hidden_dim"], c["dim"], bias=False)
        self.w3 = nn.Linear(c["dim"], c["hidden_dim"], bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class Block(nn.Module):

    def __init__(self, c):
        super().__init__()
        self.attention = Attention(c)
        self.feed_forward = FeedForward(c)
        self.attention_norm = nn.RMSNorm(c["dim"], eps=c["norm_eps"])
        self.ffn_norm = nn.RMSNorm(c["dim"], eps=c["norm_eps"])

    def forward(self, x, table):
        h = x + self.attention(self.attention_norm(x), table)
        return h + self.feed_forward(self.ffn_norm(h))


class Llama3(nn.Module):

    def __init__(self, c):
        super().__init__()
        self.tok_embeddings = nn.Embedding(c["vocab_size"], c["dim"])
        self.layers = nn.ModuleDict({str(i): Block(c) for i in range(c["n_layers"])})
        self.norm = nn.RMSNorm(c["dim"], eps=c["norm_eps"])
        self.lm_head = nn.Linear(c["dim"], c["vocab_size"], bias=False)
        self.register_buffer("table", rope_table(c), persistent=False)

    def forward(self, tokens, labels):
        x = self.tok_embeddings(tokens)
        for layer in self.layers.values():
            x = layer(x, self.table)
        logits = self.lm_head(self.norm(x))
        return F.cross_entropy(logits.flatten(0, 1).float(), labels.flatten(0, 1))


def rope_table(c):
    """Llama 3.1's: long wavelengths stretched."""
    r, dim = c["rope"], c["head_dim"]
    inv = 1.0 / (r["theta"]**(torch.arange(0, dim, 2).float() / dim))
    wave = 2 * math.pi / inv
    low, high = r["low_freq_factor"], r["high_freq_factor"]
    context = r["original_max_position_embeddings"]
    stretched = torch.where(wave > context / low, inv / r["scaling_factor"], inv)
    smooth = (context / wave - low) / (high - low)
    between = (1 - smooth) * stretched / r["scaling_factor"] + smooth * stretched
    inv = torch.where((wave >= context / high) & (wave <= context / low), between, stretched)
    angle = torch.outer(torch.arange(c["seq_len"]).float(), inv)
    return torch.polar(torch.ones_like(angle), angle)


class InHalf(nn.Module):
    """Computes with copies of the fp32 parameters in bf16."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, tokens, labels):
        half = {name: p.bfloat16() for name, p in self.model.named_parameters()}
        return torch.func.functional_call(self.model, half, (tokens, labels))


class Peer:

    def __init__(self, name, c, tensors):
        self.device = c["device"]
        self.tokens = tensors["tokens"].to(self.device)
        model = Llama3(c)
        model.load_state_dict({k: v.clone() for k, v in tensors.items() if k != "tokens"})
        model = model.to(self.device)
        self.parameters = list(model.parameters())
        if c["precision"] == "bfloat16":
            model = InHalf(model)
        o = c["optimizer"]
        self.optimizer = torch.optim.AdamW(self.parameters, lr=o["lr"], betas=(o["beta1"], o["beta2"]), eps=o["eps"],
                                           weight_decay=o["weight_decay"], fused=name != "eager-loop")
        self.max_norm = o["max_grad_norm"]
        backend = {"aot_eager": "aot_eager", "inductor": "inductor", "inductor-graphs": "inductor"}.get(name)
        self.has_graphs = name == "inductor-graphs"
        mode = "reduce-overhead" if self.has_graphs else None
        self.model = torch.compile(model, backend=backend, mode=mode, dynamic=False) if backend else model

    def step(self, index):
        if self.has_graphs:
            torch.compiler.cudagraph_mark_step_begin()
        batch = self.tokens[index % len(self.tokens)]
        loss = self.model(batch[:, :-1].contiguous(), batch[:, 1:].contiguous())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.parameters, self.max_norm)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return loss.item()


def peak_bytes(work, device):
    """Most bytes that live at once of what `work` allocates."""
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        work()
        return torch.cuda.max_memory_allocated() - before
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        work()
    events = [e for e in profile.profiler.kineto_results.events() if e.name() == "[memory]"]
    live = peak = 0
    for event in sorted(events, key=lambda e: e.start_ns()):
        live += event.nbytes()
        peak = max(peak, live)
    return peak


def processor_seconds():
    """Of this process and of the compilers that it ran."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in usages)


def begin(request):
    tensors = read_safetensors(request["init"])
    peer = Peer(request["peer"], request["config"], tensors)
    wall, cpu = time.perf_counter(), processor_seconds()
    losses = [peer.step(0)]
    first = {"first_wall_s": time.perf_counter() - wall, "first_cpu_s": processor_seconds() - cpu}
    losses += [peer.step(i) for i in range(1, 3)]
    return peer, {**first, "losses": losses, "peak_bytes": peak_bytes(lambda: peer.step(0), peer.device)}


def run(peer, steps):
    times = []
    for i in range(steps):
        cpu, wall = time.process_time(), time.perf_counter()
        peer.step(i)
        times.append([1e3 * (time.process_time() - cpu), 1e3 * (time.perf_counter() - wall)])
    return {"times_ms": times}


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        request = json.load(file)
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = request["cache"]
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"  # no pool of processes that stays
    torch.set_num_threads(request["threads"])
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    peer = None
    for order in sys.stdin:
        if order.startswith("begin"):
            peer, answer = begin(request)
        else:
            answer = run(peer, int(order.split()[1]))
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
