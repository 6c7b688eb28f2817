"""Trains the model of a configuration (peer_models.py) with plain PyTorch on request, and reports the time of each step.

    python train_peers.py REQUEST.json

REQUEST: {"config": {model, dim, n_layers, …}, "init": FILE.safetensors, "peer": "eager", "threads": 1, "cache": FOLDER},
and optionally "checkpoint": "full" or "op", activation checkpointing of each layer (op: the results of operators that
are expensive are saved, but of every second matrix product), or "memory_budget": 0.5, of the compiler's partitioner.
The file holds the initial parameters by torchtitan's names and `tokens`, int64 [steps, batch, seq + 1].
Reads orders from stdin and answers each with a line of JSON on stdout:
    begin   makes the model and does three steps: seconds of the first, losses, peak of what a step allocates
    run N   does N steps: [milliseconds of processor time, of wall time] of each
It ends with its orders. What libraries print goes to stderr.
"""

import functools
import json
import os
import resource
import sys
import time

import torch
from peer_models import Decoder, InHalf
from torch._functorch import config as functorch
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts


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


def expensive_operators():
    """Whose results selective checkpointing saves; torchtitan's list, and attention on CPUs."""
    aten = torch.ops.aten
    return {
        aten.mm.default, aten.linear.default, aten.max.default, aten._scaled_dot_product_efficient_attention.default,
        aten._scaled_dot_product_flash_attention.default, aten._scaled_dot_product_flash_attention_for_cpu.default,
        torch.ops._c10d_functional.reduce_scatter_tensor.default
    }


def selective_contexts():
    """For one layer and step: forward and its repetition count their matrix products apart."""
    products, saved = {}, expensive_operators()

    def policy(context, op, *args, **kwargs):
        if op == torch.ops.aten.mm.default:
            products[context.is_recompute] = products.get(context.is_recompute, 0) + 1
            if products[context.is_recompute] % 2 == 0:
                return CheckpointPolicy.PREFER_RECOMPUTE
        return CheckpointPolicy.MUST_SAVE if op in saved else CheckpointPolicy.PREFER_RECOMPUTE

    return create_selective_checkpoint_contexts(policy)


def checkpoint_layers(decoder, mode):
    options = {"use_reentrant": False, "preserve_rng_state": False}
    if mode == "op":
        options["context_fn"] = selective_contexts
    for layer in decoder.layers.values():
        layer.forward = functools.partial(checkpoint, layer.forward, **options)


class Peer:

    def __init__(self, request, tensors):
        name, c = request["peer"], request["config"]
        self.device = c["device"]
        self.tokens = tensors["tokens"].to(self.device)
        backend = "inductor" if name.startswith("inductor") else "aot_eager" if name == "aot_eager" else None
        if name == "inductor-sdpa":
            c["attn_type"] = "sdpa"  # what flex attention computes, with a dense mask
        if "memory_budget" in request:
            backend = "inductor"
            functorch.activation_memory_budget = request["memory_budget"]
        if backend and c["moe"]:
            # Data-dependent sizes become symbols of one graph instead of graph breaks.
            torch._dynamo.config.capture_scalar_outputs = True
            # PyTorch 2.11 compiles grouped products of bf16 only.
            c["moe"]["use_grouped_mm"] &= c["precision"] == "bfloat16"
        c["seq"] = self.tokens.shape[-1] - 1
        model = self.decoder = Decoder(c)
        model.load_state_dict({k: v.clone() for k, v in tensors.items() if k != "tokens"})
        if "checkpoint" in request:
            checkpoint_layers(self.decoder, request["checkpoint"])
        model = model.to(self.device)
        self.parameters = list(model.parameters())
        if c["precision"] == "bfloat16":
            model = InHalf(model)
        o = c["optimizer"]
        self.optimizer = torch.optim.AdamW(self.parameters, lr=o["lr"], betas=(o["beta1"], o["beta2"]), eps=o["eps"],
                                           weight_decay=o["weight_decay"], fused=name != "eager-loop")
        self.max_norm = o["max_grad_norm"]
        self.has_graphs = name == "inductor-graphs"
        modes = {"inductor-graphs": "reduce-overhead", "inductor-autotune": "max-autotune-no-cudagraphs"}
        mode = modes.get(name)
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
        self.decoder.balance()
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
    peer = Peer(request, tensors)
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


def serve(begin, run):
    """Answers orders until they end."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    peer = None
    for order in sys.stdin:
        if order.startswith("begin"):
            peer, answer = begin()
        else:
            answer = run(peer, int(order.split()[1]))
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        request = json.load(file)
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = request["cache"]
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"  # no pool of processes that stays
    torch.set_num_threads(request["threads"])
    serve(lambda: begin(request), run)


if __name__ == "__main__":
    main()
