#!/usr/bin/env python3
"""Makes the numbers fixtures of this folder: short trainings of small Llama3 models in plain PyTorch.

    python make_reference.py make     writes every folder of VARIANTS
    python make_reference.py verify DIR…   repeats the training of a fixture (also one that torchtitan
                                           made) and prints the differences beside its tolerances

Needs `pip install torch==2.11.0 numpy`. The model is written from torchtitan's formulas with plain PyTorch and
autograd, apart from Strata's code; fp32, CPU, one thread. A fixture holds

    config.json          what `strata train` is given
    init.safetensors     parameters before step 1; tied models have one tensor, lm_head.weight
    tokens.safetensors   tokens, int64 [steps, batch, seq + 1]
    grads_step1.safetensors, final.safetensors
    reference.json       loss and grad_norm (before clipping) per step, the noise floor and the tolerances

Noise floor: the largest change that two threads, another attention kernel, another AdamW kernel, or weights moved by
half an ulp made. Tolerance: four times that, at least FLOORS.
"""

import contextlib
import json
import math
import os
import struct
import sys

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

STEPS = 20

ADAMW = {"name": "AdamW", "lr": 1e-3, "beta1": 0.9, "beta2": 0.95, "eps": 1e-8, "weight_decay": 0.1,
         "max_grad_norm": 1.0}

VARIANTS = {
    # Four query heads on one key/value head, unscaled RoPE, a derived feed-forward width, clipping in every step.
    "llama3_mqa": {
        "model": "llama3", "steps": STEPS, "init": "torchtitan_sharpened", "norm_eps": 1e-5, "qk_norm": False,
        "head_dim": 8, "moe": None, "mla": None, "dim": 32, "n_layers": 2, "n_heads": 4, "n_kv_heads": 1,
        "vocab_size": 40, "multiple_of": 8, "ffn_dim_multiplier": 0.5, "enable_weight_tying": False,
        "rope": {"theta": 10000.0, "backend": "complex", "scaling": "none", "max_seq_len": 21},
        "seq_len": 21, "batch_size": 3, "seed": 101,
        "optimizer": {**ADAMW, "lr": 3e-3, "max_grad_norm": 0.25},
    },
    # Every head with keys of its own, wider than dim / n_heads; tied weights, halves layout, strong Llama 3.1 scaling,
    # no clipping, other AdamW constants, a table longer than the sequence.
    "llama3_tied": {
        "model": "llama3", "steps": STEPS, "init": "torchtitan_sharpened", "norm_eps": 1e-6, "qk_norm": False,
        "head_dim": 12, "moe": None, "mla": None, "dim": 24, "n_layers": 3, "n_heads": 3, "n_kv_heads": None,
        "vocab_size": 50, "multiple_of": 4, "ffn_dim_multiplier": None, "enable_weight_tying": True,
        "rope": {"theta": 50000.0, "backend": "cos_sin", "scaling": "llama", "max_seq_len": 64,
                 "scaling_factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 3.0,
                 "original_max_position_embeddings": 40},
        "seq_len": 33, "batch_size": 2, "seed": 202,
        "optimizer": {**ADAMW, "beta1": 0.8, "beta2": 0.99, "eps": 1e-7, "weight_decay": 0.01, "max_grad_norm": None},
    },
    # Odd sizes throughout, one layer, a single row per step, torchtitan's plain initialisation.
    "llama3_small": {
        "model": "llama3", "steps": STEPS, "init": "torchtitan", "norm_eps": 1e-5, "qk_norm": False,
        "head_dim": None, "moe": None, "mla": None, "dim": 18, "n_layers": 1, "n_heads": 3, "n_kv_heads": 3,
        "vocab_size": 31, "multiple_of": 1, "ffn_dim_multiplier": 1.3, "enable_weight_tying": False,
        "rope": {"theta": 500000.0, "backend": "complex", "scaling": "llama", "max_seq_len": 7,
                 "scaling_factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                 "original_max_position_embeddings": 16},
        "seq_len": 7, "batch_size": 1, "seed": 303,
        "optimizer": {**ADAMW, "lr": 1e-2},
    },
}

FLOORS = {"loss_step1_abs": 2e-6, "loss_max_abs": 4e-6, "gradnorm_max_rel": 1e-6, "grad1_max_abs": 6e-8,
          "grad1_max_tensor_rel": 3e-6, "param_max_abs": 3e-5, "param_max_tensor_rel_to_update": 1e-4}


# Model: functions over a dictionary of parameters with torchtitan's names.

def derived(config):
    """The configuration with every size filled in."""
    c = dict(config)
    c["n_kv_heads"] = c["n_kv_heads"] or c["n_heads"]
    c["head_dim"] = c["head_dim"] or c["dim"] // c["n_heads"]
    if not c.get("hidden_dim"):
        hidden = int(2 * 4 * c["dim"] / 3)
        if c["ffn_dim_multiplier"] is not None:
            hidden = int(c["ffn_dim_multiplier"] * hidden)
        multiple = c["multiple_of"]
        c["hidden_dim"] = multiple * ((hidden + multiple - 1) // multiple)
    return c


def initial_parameters(c):
    """Torchtitan's initialisers, in the order of its named_parameters()."""
    torch.manual_seed(c["seed"])
    dim, hidden, q, kv = c["dim"], c["hidden_dim"], c["n_heads"] * c["head_dim"], c["n_kv_heads"] * c["head_dim"]
    p = {}

    def trunc(*shape, std, cut=2.0):
        return torch.nn.init.trunc_normal_(torch.empty(*shape), mean=0.0, std=std, a=-cut, b=cut)

    if not c["enable_weight_tying"]:
        p["tok_embeddings.weight"] = torch.randn(c["vocab_size"], dim)
    for i in range(c["n_layers"]):
        depth = 0.02 / math.sqrt(2 * (i + 1))
        p[f"layers.{i}.attention.qkv_linear.wq.weight"] = trunc(q, dim, std=0.02)
        p[f"layers.{i}.attention.qkv_linear.wk.weight"] = trunc(kv, dim, std=0.02)
        p[f"layers.{i}.attention.qkv_linear.wv.weight"] = trunc(kv, dim, std=0.02)
        p[f"layers.{i}.attention.wo.weight"] = trunc(dim, q, std=depth)
        p[f"layers.{i}.feed_forward.w1.weight"] = trunc(hidden, dim, std=0.02)
        p[f"layers.{i}.feed_forward.w2.weight"] = trunc(dim, hidden, std=depth)
        p[f"layers.{i}.feed_forward.w3.weight"] = trunc(hidden, dim, std=depth)
        p[f"layers.{i}.attention_norm.weight"] = torch.ones(dim)
        p[f"layers.{i}.ffn_norm.weight"] = torch.ones(dim)
    p["norm.weight"] = torch.ones(dim)
    p["lm_head.weight"] = trunc(c["vocab_size"], dim, std=dim**-0.5, cut=3 * dim**-0.5)
    if c["init"] == "torchtitan_sharpened":
        for name, tensor in p.items():
            if "norm" in name:
                tensor += 0.1 * torch.randn_like(tensor)
            elif name not in ("tok_embeddings.weight", "lm_head.weight"):
                tensor *= 4
    return p


def inverse_frequencies(c):
    rope = c["rope"]
    inv = 1.0 / (rope["theta"] ** (torch.arange(0, c["head_dim"], 2).float() / c["head_dim"]))
    if rope["scaling"] == "none":
        return inv
    factor, low, high = rope["scaling_factor"], rope["low_freq_factor"], rope["high_freq_factor"]
    original = rope["original_max_position_embeddings"]
    wavelength = 2 * math.pi / inv
    smooth = (original / wavelength - low) / (high - low)
    blended = (1 - smooth) * inv / factor + smooth * inv
    scaled = torch.where(wavelength > original / low, inv / factor, blended)
    return torch.where(wavelength < original / high, inv, scaled)


def rope_table(c):
    angle = torch.outer(torch.arange(c["rope"]["max_seq_len"]).float(), inverse_frequencies(c))
    if c["rope"]["backend"] == "complex":
        return torch.polar(torch.ones_like(angle), angle)
    angle = torch.cat([angle, angle], dim=-1)
    return torch.cat([angle.cos(), angle.sin()], dim=-1)


def rotate(c, table, x):
    """x [batch, seq, heads, head_dim]"""
    table = table[: x.shape[1]].unsqueeze(1)
    if c["rope"]["backend"] == "complex":
        pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))
        return torch.view_as_real(pairs * table).flatten(-2)
    cos, sin = table.chunk(2, dim=-1)
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-second, first], dim=-1) * sin


def logits(c, p, table, tokens):
    def norm(name, x):
        return F.rms_norm(x, (c["dim"],), p[f"{name}.weight"], c["norm_eps"])

    def linear(name, x):
        return F.linear(x, p[f"{name}.weight"])

    batch, seq = tokens.shape
    h = F.embedding(tokens, p.get("tok_embeddings.weight", p["lm_head.weight"]))
    for i in range(c["n_layers"]):
        layer = f"layers.{i}"
        x = norm(f"{layer}.attention_norm", h)
        q, k, v = (linear(f"{layer}.attention.qkv_linear.{w}", x).view(batch, seq, -1, c["head_dim"])
                   for w in ("wq", "wk", "wv"))
        q, k = rotate(c, table, q), rotate(c, table, k)
        out = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=True,
                                             enable_gqa=c["n_kv_heads"] < c["n_heads"])
        h = h + linear(f"{layer}.attention.wo", out.transpose(1, 2).reshape(batch, seq, -1))
        x = norm(f"{layer}.ffn_norm", h)
        gate = F.silu(linear(f"{layer}.feed_forward.w1", x)) * linear(f"{layer}.feed_forward.w3", x)
        h = h + linear(f"{layer}.feed_forward.w2", gate)
    return linear("lm_head", norm("norm", h))


def train(config, init, tokens, attention=None, adamw="for-loop"):
    """Returns steps (loss, grad_norm), the gradients of step 1 and the final parameters."""
    c = derived(config)
    p = {name: tensor.clone().requires_grad_() for name, tensor in init.items()}
    o = c["optimizer"]
    optimizer = torch.optim.AdamW(p.values(), lr=o["lr"], betas=(o["beta1"], o["beta2"]), eps=o["eps"],
                                  weight_decay=o["weight_decay"], foreach=False, fused=adamw == "fused")
    table = rope_table(c)
    steps, grads = [], None
    with sdpa_kernel(attention) if attention else contextlib.nullcontext():
        for batch in tokens:
            optimizer.zero_grad(set_to_none=True)
            inputs, labels = batch[:, :-1], batch[:, 1:]
            scores = logits(c, p, table, inputs).float().flatten(0, 1)
            total = F.cross_entropy(scores, labels.flatten(), reduction="sum", ignore_index=-100)
            loss = total / torch.tensor(float((labels != -100).sum()))
            loss.backward()
            grads = grads or {name: tensor.grad.clone() for name, tensor in p.items()}
            norm = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(t.grad) for t in p.values()]))
            coefficient = 1.0
            if o["max_grad_norm"] is not None:
                coefficient = torch.clamp(o["max_grad_norm"] / (norm + 1e-6), max=1.0)
                for tensor in p.values():
                    tensor.grad *= coefficient
            optimizer.step()
            steps.append({"step": len(steps) + 1, "loss": loss.item(), "grad_norm": norm.item(),
                          "clip_coef": float(coefficient)})
    return steps, grads, {name: tensor.detach() for name, tensor in p.items()}


# Differences, as the table of tolerances names them.

def differences(run, reference, init):
    steps, grads, final = run
    ref_steps, ref_grads, ref_final = reference
    losses = [abs(a["loss"] - b["loss"]) for a, b in zip(steps, ref_steps)]

    def worst(values):
        return max(float(v) for v in values)

    return {
        "loss_step1_abs": losses[0],
        "loss_max_abs": max(losses),
        "gradnorm_max_rel": max(abs(a["grad_norm"] - b["grad_norm"]) / b["grad_norm"]
                                for a, b in zip(steps, ref_steps)),
        "grad1_max_abs": worst((grads[n] - g).abs().max() for n, g in ref_grads.items()),
        "grad1_max_tensor_rel": worst((grads[n] - g).norm() / g.norm() for n, g in ref_grads.items()),
        "param_max_abs": worst((final[n] - t).abs().max() for n, t in ref_final.items()),
        "param_max_tensor_rel_to_update": worst((final[n] - t).norm() / (t - init[n]).norm()
                                                for n, t in ref_final.items()),
    }


def noise(config, init, tokens, reference):
    floors = {}
    torch.set_num_threads(2)
    floors["threads_2"] = differences(train(config, init, tokens), reference, init)
    torch.set_num_threads(1)
    floors["sdpa_math"] = differences(train(config, init, tokens, attention=SDPBackend.MATH), reference, init)
    floors["fused_adamw"] = differences(train(config, init, tokens, adamw="fused"), reference, init)
    for seed in (1, 2, 3):
        generator = torch.Generator().manual_seed(seed)
        moved = {n: t * (1 + 2.0**-24 * torch.sign(torch.randn(t.shape, generator=generator))) for n, t in init.items()}
        floors[f"half_ulp_{seed}"] = differences(train(config, moved, tokens), reference, init)
    return floors


# Files.

def write_safetensors(path, tensors):
    names = {torch.float32: "F32", torch.int64: "I64"}
    header, data = {}, b""
    for name in sorted(tensors):
        tensor = tensors[name].contiguous()
        blob = tensor.numpy().tobytes()
        header[name] = {"dtype": names[tensor.dtype], "shape": list(tensor.shape),
                        "data_offsets": [len(data), len(data) + len(blob)]}
        data += blob
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def read_safetensors(path):
    dtypes = {"F32": torch.float32, "I64": torch.int64}
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header, data = json.loads(file.read(length)), file.read()
    return {name: torch.frombuffer(bytearray(data[slice(*entry["data_offsets"])]),
                                   dtype=dtypes[entry["dtype"]]).reshape(entry["shape"])
            for name, entry in header.items() if name != "__metadata__"}


def write_json(path, value):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(value, file, indent=1)
        file.write("\n")


def make(folder, config):
    os.makedirs(folder, exist_ok=True)
    c = derived(config)
    init = initial_parameters(c)
    generator = torch.Generator().manual_seed(c["seed"] + 1)
    shape = (c["steps"], c["batch_size"], c["seq_len"] + 1)
    tokens = torch.randint(0, c["vocab_size"], shape, generator=generator)
    reference = train(config, init, tokens)
    steps, grads, final = reference
    floors = noise(config, init, tokens, reference)
    worst = {metric: max(floor[metric] for floor in floors.values()) for metric in FLOORS}
    write_json(os.path.join(folder, "config.json"), config)
    write_safetensors(os.path.join(folder, "init.safetensors"), init)
    write_safetensors(os.path.join(folder, "tokens.safetensors"), {"tokens": tokens})
    write_safetensors(os.path.join(folder, "grads_step1.safetensors"), grads)
    write_safetensors(os.path.join(folder, "final.safetensors"), final)
    write_json(os.path.join(folder, "reference.json"), {
        "torch": torch.__version__.split("+")[0], "device": "cpu", "dtype": "float32", "threads": 1, "steps": steps,
        "noise_floor": floors, "noise_floor_worst": worst,
        "tolerance": {metric: max(4 * worst[metric], floor) for metric, floor in FLOORS.items()}})
    print(f"{folder}: loss {steps[0]['loss']:.6f} -> {steps[-1]['loss']:.6f}, "
          f"clipped in {sum(s['clip_coef'] < 1 for s in steps)} of {len(steps)} steps")


def verify(folder):
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        config = json.load(file)
    with open(os.path.join(folder, "reference.json"), encoding="utf-8") as file:
        reference = json.load(file)
    init, tokens, grads, final = (read_safetensors(os.path.join(folder, f"{name}.safetensors"))
                                  for name in ("init", "tokens", "grads_step1", "final"))
    run = train(config, init, tokens["tokens"])
    print(folder)
    for metric, value in differences(run, (reference["steps"], grads, final), init).items():
        print(f"  {metric:32} {value:.2e}  tolerance {reference['tolerance'][metric]:.2e}")


def main(arguments):
    torch.set_num_threads(1)
    here = os.path.dirname(os.path.abspath(__file__))
    if arguments == ["make"]:
        for name, config in VARIANTS.items():
            make(os.path.join(here, name), config)
    elif len(arguments) > 1 and arguments[0] == "verify":
        for folder in arguments[1:]:
            verify(folder)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
