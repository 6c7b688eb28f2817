#!/usr/bin/env python3
"""Makes the numbers fixtures of this folder: short trainings of small models in plain PyTorch.

    python make_reference.py make [NAME…]    writes the folders of VARIANTS, or those named
    python make_reference.py verify DIR…   repeats the training of a fixture (also one that torchtitan
                                           made) and prints the differences beside its tolerances

Needs `pip install torch==2.11.0 numpy`. The model is written from torchtitan's formulas with plain PyTorch and
autograd, apart from Strata's code; fp32, CPU, one thread. Fixtures with training.mixed_precision_param = bfloat16 are
trained by FSDP2 on one rank, fully_shard with MixedPrecisionPolicy(param_dtype=bfloat16, reduce_dtype=float32), which
is how torchtitan trains. A fixture holds

    config.json          what `strata train` is given
    init.safetensors     parameters before step 1; tied models have one tensor, lm_head.weight. Expert biases too
    tokens.safetensors   tokens, int64 [steps, batch, seq + 1]
    grads_step1.safetensors, final.safetensors
    reference.json       loss and grad_norm (before clipping) per step, the noise floor and the tolerances

Noise floor: the largest change that two threads, another attention kernel, another AdamW kernel, or weights moved by
half an ulp (of fp32, also in mixed precision, where it turns some roundings to bf16 around) made. Tolerance: four
times that, at least FLOORS. Where that noise sends a token to another expert, losses
part by orders of magnitude, and the seed is of no use: `make` refuses it.
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

BF16 = {"mixed_precision_param": "bfloat16", "mixed_precision_reduce": "float32"}

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
    # Three query heads on each key/value head, heads wider than dim / n_heads, odd widths, embedding and head apart.
    "qwen3_gqa": {
        "model": "qwen3", "steps": STEPS, "init": "torchtitan_sharpened", "norm_eps": 1e-6, "qk_norm": True,
        "dim": 20, "n_layers": 2, "n_heads": 6, "n_kv_heads": 2, "head_dim": 10, "hidden_dim": 27, "vocab_size": 45,
        "enable_weight_tying": False, "moe": None, "mla": None,
        "rope": {"theta": 5000000.0, "backend": "cos_sin", "scaling": "none", "max_seq_len": 40},
        "seq_len": 17, "batch_size": 2, "seed": 404, "optimizer": {**ADAMW, "max_grad_norm": 0.5},
    },
    # Experts in every layer and none shared, softmax scores made to sum to 1; tied.
    "qwen3_moe": {
        "model": "qwen3", "steps": STEPS, "init": "torchtitan_sharpened", "norm_eps": 1e-6, "qk_norm": True,
        "dim": 24, "n_layers": 2, "n_heads": 4, "n_kv_heads": 1, "head_dim": 8, "vocab_size": 40,
        "enable_weight_tying": True, "mla": None,
        "moe": {"num_experts": 6, "top_k": 2, "moe_hidden_dim": 12, "num_shared_experts": 0, "score_func": "softmax",
                "route_norm": True, "route_scale": 1.0, "num_expert_groups": None, "num_limited_groups": None,
                "score_before_experts": False, "load_balance_coeff": 1e-3},
        "rope": {"theta": 1000000.0, "backend": "cos_sin", "scaling": "none", "max_seq_len": 12},
        "seq_len": 12, "batch_size": 2, "seed": 505, "optimizer": ADAMW,
    },
    # The router of the 671B: sigmoid, groups, normed and scaled scores; compressed queries; values wider than keys.
    "deepseek_v3_groups": {
        "model": "deepseek_v3", "steps": STEPS, "init": "torchtitan_sharpened", "norm_eps": 1e-5, "dim": 24,
        "n_layers": 3, "n_dense_layers": 1, "n_heads": 3, "hidden_dim": 32, "vocab_size": 40,
        "enable_weight_tying": False,
        "mla": {"q_lora_rank": 14, "kv_lora_rank": 10, "qk_nope_head_dim": 6, "qk_rope_head_dim": 4, "v_head_dim": 12,
                "mscale": 1.0},
        "moe": {"num_experts": 8, "top_k": 3, "moe_hidden_dim": 8, "num_shared_experts": 1, "score_func": "sigmoid",
                "route_norm": True, "route_scale": 2.5, "num_expert_groups": 4, "num_limited_groups": 2,
                "score_before_experts": False, "load_balance_coeff": 1e-2},
        "rope": {"theta": 10000.0, "backend": "complex", "scaling": "yarn", "max_seq_len": 13, "rope_factor": 40.0,
                 "beta_fast": 32.0, "beta_slow": 1.0, "original_seq_len": 8},
        "seq_len": 13, "batch_size": 2, "seed": 606, "optimizer": {**ADAMW, "lr": 2e-3},
    },
    # Scores applied before the experts, no biases, nothing shared, nothing dense, more experts than some steps use;
    # no width is a multiple of four.
    "deepseek_v3_before": {
        "model": "deepseek_v3", "steps": STEPS, "init": "torchtitan_sharpened", "norm_eps": 1e-5, "dim": 18,
        "n_layers": 2, "n_dense_layers": 0, "n_heads": 2, "hidden_dim": None, "vocab_size": 30,
        "enable_weight_tying": False,
        "mla": {"q_lora_rank": 0, "kv_lora_rank": 7, "qk_nope_head_dim": 10, "qk_rope_head_dim": 6, "v_head_dim": 9,
                "mscale": 1.0},
        "moe": {"num_experts": 16, "top_k": 2, "moe_hidden_dim": 5, "num_shared_experts": 0, "score_func": "softmax",
                "route_norm": False, "route_scale": 4.0, "num_expert_groups": None, "num_limited_groups": None,
                "score_before_experts": True, "load_balance_coeff": None},
        "rope": {"theta": 10000.0, "backend": "complex", "scaling": "none", "max_seq_len": 9},
        "seq_len": 9, "batch_size": 1, "seed": 707, "optimizer": {**ADAMW, "max_grad_norm": 0.1},
    },
    # Mixed precision, one of each family.
    "llama3_bf16": {
        "model": "llama3", "steps": STEPS, "init": "torchtitan_sharpened", "norm_eps": 1e-5, "qk_norm": False,
        "head_dim": 8, "moe": None, "mla": None, "dim": 32, "n_layers": 2, "n_heads": 4, "n_kv_heads": 2,
        "vocab_size": 40, "multiple_of": 8, "ffn_dim_multiplier": None, "enable_weight_tying": False,
        "rope": {"theta": 500000.0, "backend": "complex", "scaling": "llama", "max_seq_len": 16,
                 "scaling_factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                 "original_max_position_embeddings": 64},
        "seq_len": 16, "batch_size": 3, "seed": 808, "optimizer": ADAMW, "training": BF16,
    },
    "qwen3_bf16": {
        "model": "qwen3", "steps": STEPS, "init": "torchtitan_sharpened", "norm_eps": 1e-6, "qk_norm": True,
        "dim": 32, "n_layers": 2, "n_heads": 4, "n_kv_heads": 2, "head_dim": 8, "hidden_dim": 40, "vocab_size": 40,
        "enable_weight_tying": True, "moe": None, "mla": None,
        "rope": {"theta": 1000000.0, "backend": "cos_sin", "scaling": "none", "max_seq_len": 16},
        "seq_len": 16, "batch_size": 2, "seed": 909, "optimizer": ADAMW, "training": BF16,
    },
    "deepseek_v3_bf16": {
        "model": "deepseek_v3", "steps": STEPS, "init": "torchtitan_sharpened", "norm_eps": 1e-5, "dim": 32,
        "n_layers": 2, "n_dense_layers": 1, "n_heads": 2, "hidden_dim": 40, "vocab_size": 40,
        "enable_weight_tying": False,
        "mla": {"q_lora_rank": 0, "kv_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 8, "v_head_dim": 16,
                "mscale": 0.7},
        "moe": {"num_experts": 4, "top_k": 2, "moe_hidden_dim": 16, "num_shared_experts": 1, "score_func": "sigmoid",
                "route_norm": True, "route_scale": 1.0, "num_expert_groups": None, "num_limited_groups": None,
                "score_before_experts": False, "load_balance_coeff": 1e-3},
        "rope": {"theta": 10000.0, "backend": "complex", "scaling": "yarn", "max_seq_len": 8, "rope_factor": 4.0,
                 "beta_fast": 32.0, "beta_slow": 1.0, "original_seq_len": 4},
        "seq_len": 8, "batch_size": 1, "seed": 1010, "optimizer": {**ADAMW, "lr": 1e-4}, "training": BF16,
    },
}

FLOORS = {"loss_step1_abs": 2e-6, "loss_max_abs": 4e-6, "gradnorm_max_rel": 1e-6, "grad1_max_abs": 6e-8,
          "grad1_max_tensor_rel": 3e-6, "param_max_abs": 3e-5, "param_max_tensor_rel_to_update": 1e-4}


# Model: functions over a dictionary of parameters with torchtitan's names.

def derived(config):
    """The configuration with every size filled in."""
    c = {"n_kv_heads": None, "head_dim": None, "n_dense_layers": 0, **config}
    c["n_kv_heads"] = c["n_kv_heads"] or c["n_heads"]
    c["rope_dim"] = c["head_dim"] = c["head_dim"] or c["dim"] // c["n_heads"]
    if c["mla"]:
        c["rope_dim"] = c["mla"]["qk_rope_head_dim"]
        c["head_dim"] = c["mla"]["qk_nope_head_dim"] + c["rope_dim"]
    if c["model"] == "llama3" and not c.get("hidden_dim"):
        hidden = int(2 * 4 * c["dim"] / 3)
        if c["ffn_dim_multiplier"] is not None:
            hidden = int(c["ffn_dim_multiplier"] * hidden)
        multiple = c["multiple_of"]
        c["hidden_dim"] = multiple * ((hidden + multiple - 1) // multiple)
    return c


def has_experts(c, layer):
    return bool(c["moe"]) and layer >= c["n_dense_layers"]


def bias_names(c):
    balanced = c["moe"] and c["moe"]["load_balance_coeff"] is not None
    return [f"layers.{i}.moe.expert_bias" for i in range(c["n_layers"]) if balanced and has_experts(c, i)]


def initial_parameters(c):
    """Torchtitan's initialisers, in the order of its named_parameters(); expert biases last."""
    torch.manual_seed(c["seed"])
    dim = c["dim"]
    p = {}

    def trunc(*shape, std=0.02, cut=2.0):
        return torch.nn.init.trunc_normal_(torch.empty(*shape), mean=0.0, std=std, a=-cut, b=cut)

    def grouped_query_attention(at, depth):
        q, kv = c["n_heads"] * c["head_dim"], c["n_kv_heads"] * c["head_dim"]
        p[f"{at}.qkv_linear.wq.weight"] = trunc(q, dim)
        p[f"{at}.qkv_linear.wk.weight"] = trunc(kv, dim)
        p[f"{at}.qkv_linear.wv.weight"] = trunc(kv, dim)
        p[f"{at}.wo.weight"] = trunc(dim, q, std=depth)
        if c["qk_norm"]:
            p[f"{at}.q_norm.weight"] = torch.ones(c["head_dim"])
            p[f"{at}.k_norm.weight"] = torch.ones(c["head_dim"])

    def latent_attention(at, depth):
        m, heads = c["mla"], c["n_heads"]
        if m["q_lora_rank"]:
            p[f"{at}.wq_a.weight"] = trunc(m["q_lora_rank"], dim)
            p[f"{at}.q_norm.weight"] = torch.ones(m["q_lora_rank"])
            p[f"{at}.wq_b.weight"] = trunc(heads * c["head_dim"], m["q_lora_rank"])
        else:
            p[f"{at}.wq.weight"] = trunc(heads * c["head_dim"], dim)
        p[f"{at}.wkv_a.weight"] = trunc(m["kv_lora_rank"] + m["qk_rope_head_dim"], dim)
        p[f"{at}.kv_norm.weight"] = torch.ones(m["kv_lora_rank"])
        p[f"{at}.wkv_b.weight"] = trunc(heads * (m["qk_nope_head_dim"] + m["v_head_dim"]), m["kv_lora_rank"])
        p[f"{at}.wo.weight"] = trunc(dim, heads * m["v_head_dim"], std=depth)

    def feed_forward(at, hidden, depth):
        p[f"{at}.w1.weight"] = trunc(hidden, dim)
        p[f"{at}.w2.weight"] = trunc(dim, hidden, std=depth)
        p[f"{at}.w3.weight"] = trunc(hidden, dim, std=depth)

    def experts(at, depth):
        m = c["moe"]
        count, hidden = m["num_experts"], m["moe_hidden_dim"]
        p[f"{at}.router.gate.weight"] = trunc(count, dim, std=depth)
        p[f"{at}.experts.w1"] = trunc(count, hidden, dim)
        p[f"{at}.experts.w2"] = trunc(count, dim, hidden, std=depth)
        p[f"{at}.experts.w3"] = trunc(count, hidden, dim, std=depth)
        if m["num_shared_experts"]:
            feed_forward(f"{at}.shared_experts", m["num_shared_experts"] * hidden, depth)

    if not c["enable_weight_tying"]:
        p["tok_embeddings.weight"] = torch.randn(c["vocab_size"], dim)
    for i in range(c["n_layers"]):
        depth = 0.02 / math.sqrt(2 * (i + 1))
        (latent_attention if c["mla"] else grouped_query_attention)(f"layers.{i}.attention", depth)
        if has_experts(c, i):
            experts(f"layers.{i}.moe", depth)
        else:
            feed_forward(f"layers.{i}.feed_forward", c["hidden_dim"], depth)
        p[f"layers.{i}.attention_norm.weight"] = torch.ones(dim)
        p[f"layers.{i}.ffn_norm.weight"] = torch.ones(dim)
    p["norm.weight"] = torch.ones(dim)
    p["lm_head.weight"] = trunc(c["vocab_size"], dim, std=dim**-0.5, cut=3 * dim**-0.5)
    for name in bias_names(c):
        p[name] = torch.zeros(c["moe"]["num_experts"])
    if c["init"] == "torchtitan_sharpened":
        for name, tensor in p.items():
            if "norm" in name:
                tensor += 0.1 * torch.randn_like(tensor)
            elif name.endswith("expert_bias"):
                tensor += 0.05 * torch.randn_like(tensor)
            elif name not in ("tok_embeddings.weight", "lm_head.weight"):
                tensor *= 4
    return p


def yarn_applies(c):
    rope = c["rope"]
    return rope["scaling"] == "yarn" and rope["max_seq_len"] > rope["original_seq_len"]


def yarn_frequencies(inv, rope, dim):
    def correction(rotations):
        return dim * math.log(rope["original_seq_len"] / (rotations * 2 * math.pi)) / (2 * math.log(rope["theta"]))

    low = max(math.floor(correction(rope["beta_fast"])), 0)
    high = min(math.ceil(correction(rope["beta_slow"])), dim - 1)
    if low == high:
        high += 0.001
    ramp = torch.clamp((torch.arange(dim // 2, dtype=torch.float32) - low) / (high - low), 0, 1)
    return inv / rope["rope_factor"] * ramp + inv * (1 - ramp)


def inverse_frequencies(c):
    rope = c["rope"]
    inv = 1.0 / (rope["theta"] ** (torch.arange(0, c["rope_dim"], 2).float() / c["rope_dim"]))
    if rope["scaling"] == "yarn":
        return yarn_frequencies(inv, rope, c["rope_dim"]) if yarn_applies(c) else inv
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
        pairs = torch.view_as_complex(x.float().contiguous().reshape(*x.shape[:-1], -1, 2))
        return torch.view_as_real(pairs * table).flatten(-2).type_as(x)
    cos, sin = table.type_as(x).chunk(2, dim=-1)
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-second, first], dim=-1) * sin


class Model:
    def __init__(self, c, p):
        self.c, self.p, self.table = c, p, rope_table(c)
        self.counts = {}  # of the last step: module of a layer's experts -> rows per expert
        self.margin = math.inf  # smallest gap between the last expert chosen and the first that was not

    def norm(self, name, x):
        weight = self.p[f"{name}.weight"]
        return F.rms_norm(x, weight.shape, weight, self.c["norm_eps"])

    def linear(self, name, x):
        return F.linear(x, self.p[f"{name}.weight"])

    def grouped_query_attention(self, at, x):
        c = self.c
        q, k, v = (self.linear(f"{at}.qkv_linear.{w}", x).view(*x.shape[:2], -1, c["head_dim"])
                   for w in ("wq", "wk", "wv"))
        if c["qk_norm"]:
            q, k = self.norm(f"{at}.q_norm", q), self.norm(f"{at}.k_norm", k)
        q, k = rotate(c, self.table, q), rotate(c, self.table, k)
        out = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=True,
                                             enable_gqa=c["n_kv_heads"] < c["n_heads"])
        return self.linear(f"{at}.wo", out.transpose(1, 2).reshape(*x.shape[:2], -1))

    def latent_attention(self, at, x):
        c, m = self.c, self.c["mla"]
        if m["q_lora_rank"]:
            q = self.linear(f"{at}.wq_b", self.norm(f"{at}.q_norm", self.linear(f"{at}.wq_a", x)))
        else:
            q = self.linear(f"{at}.wq", x)
        q = q.view(*x.shape[:2], c["n_heads"], -1)
        q_nope, q_pe = q.split([m["qk_nope_head_dim"], m["qk_rope_head_dim"]], dim=-1)
        q = torch.cat([q_nope, rotate(c, self.table, q_pe)], dim=-1)
        latent, k_pe = self.linear(f"{at}.wkv_a", x).split([m["kv_lora_rank"], m["qk_rope_head_dim"]], dim=-1)
        k_pe = rotate(c, self.table, k_pe.unsqueeze(2))
        kv = self.linear(f"{at}.wkv_b", self.norm(f"{at}.kv_norm", latent)).view(*x.shape[:2], c["n_heads"], -1)
        k_nope, v = kv.split([m["qk_nope_head_dim"], m["v_head_dim"]], dim=-1)
        k = torch.cat([k_nope, k_pe.expand(-1, -1, c["n_heads"], -1)], dim=-1)
        scale = c["head_dim"] ** -0.5
        if yarn_applies(c):
            scale *= (0.1 * m["mscale"] * math.log(c["rope"]["rope_factor"]) + 1) ** 2
        out = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=True,
                                             scale=scale)
        return self.linear(f"{at}.wo", out.transpose(1, 2).reshape(*x.shape[:2], -1))

    def feed_forward(self, at, x):
        return self.linear(f"{at}.w2", F.silu(self.linear(f"{at}.w1", x)) * self.linear(f"{at}.w3", x))

    def route(self, at, x):
        m = self.c["moe"]
        logit = F.linear(x.float(), self.p[f"{at}.router.gate.weight"].float())
        scores = logit.softmax(dim=-1) if m["score_func"] == "softmax" else logit.sigmoid()
        choice = scores.detach() + self.p.get(f"{at}.expert_bias", 0.0)
        if m["num_expert_groups"]:
            groups = choice.view(len(x), m["num_expert_groups"], -1)
            group_scores = groups.topk(2, dim=-1).values.sum(dim=-1)
            self.note_margin(group_scores, m["num_limited_groups"])
            best = group_scores.topk(m["num_limited_groups"], dim=-1).indices
            allowed = torch.zeros_like(group_scores, dtype=torch.bool).scatter(1, best, True)
            choice = torch.where(allowed.unsqueeze(-1), groups, -math.inf).flatten(1)
        self.note_margin(choice, m["top_k"])
        chosen = choice.topk(m["top_k"], dim=-1).indices
        weights = scores.gather(1, chosen)
        if m["route_norm"]:
            weights = weights / (weights.sum(dim=-1, keepdim=True) + 1e-20)
        return weights * m["route_scale"], chosen

    def note_margin(self, scores, k):
        if k < scores.shape[1]:
            best = scores.topk(k + 1, dim=-1).values
            self.margin = min(self.margin, float((best[:, k - 1] - best[:, k]).min()))

    def experts(self, at, x):
        """One expert after the other, each on its tokens."""
        m, shape = self.c["moe"], x.shape
        x = x.flatten(0, 1)
        weights, chosen = self.route(at, x)
        out = self.feed_forward(f"{at}.shared_experts", x) if m["num_shared_experts"] else torch.zeros_like(x)
        counts = []
        for e in range(m["num_experts"]):
            token, slot = (chosen == e).nonzero(as_tuple=True)
            counts.append(len(token))
            w1, w2, w3 = (self.p[f"{at}.experts.{w}"][e] for w in ("w1", "w2", "w3"))
            weight, rows = weights[token, slot].unsqueeze(1), x[token]
            if m["score_before_experts"]:
                rows = (rows * weight).type_as(x)
            rows = F.linear(F.silu(F.linear(rows, w1)) * F.linear(rows, w3), w2)
            if not m["score_before_experts"]:
                rows = (rows * weight).type_as(x)
            out = out.index_add(0, token, rows)
        self.counts[at] = torch.tensor(counts, dtype=torch.float32)
        return out.view(shape)

    def logits(self, tokens):
        c = self.c
        h = F.embedding(tokens, self.p.get("tok_embeddings.weight", self.p["lm_head.weight"]))
        for i in range(c["n_layers"]):
            layer = f"layers.{i}"
            attention = self.latent_attention if c["mla"] else self.grouped_query_attention
            h = h + attention(f"{layer}.attention", self.norm(f"{layer}.attention_norm", h))
            x = self.norm(f"{layer}.ffn_norm", h)
            h = h + (self.experts(f"{layer}.moe", x) if has_experts(c, i) else
                     self.feed_forward(f"{layer}.feed_forward", x))
        return self.linear("lm_head", self.norm("norm", h))

    def balance(self):
        for name in bias_names(self.c):
            counts = self.counts[name.removesuffix(".expert_bias")]
            delta = self.c["moe"]["load_balance_coeff"] * torch.sign(counts.mean() - counts)
            self.p[name] += delta - delta.mean()


class Sharded(torch.nn.Module):
    """A model whose parameters FSDP2 keeps: in fp32, and while the model computes in bf16."""

    def __init__(self, c, everything, trained):
        super().__init__()
        self.c, self.names, self.buffers_by_name = c, list(trained), everything
        for i, tensor in enumerate(trained.values()):
            self.register_parameter(f"p{i}", torch.nn.Parameter(tensor.detach()))
        self.model = None

    def forward(self, tokens):
        current = {name: getattr(self, f"p{i}") for i, name in enumerate(self.names)}
        buffers = {name: tensor for name, tensor in self.buffers_by_name.items() if name not in current}
        self.model = Model(self.c, {**buffers, **current})
        return self.model.logits(tokens)


def shard(c, everything, trained):
    """The model, and its fp32 parameters by name."""
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    if not torch.distributed.is_initialized():
        torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    mesh = torch.distributed.init_device_mesh("cpu", (1,))
    module = Sharded(c, everything, trained)
    fully_shard(module, mesh=mesh, mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16,
                                                                  reduce_dtype=torch.float32))
    return module, {name: getattr(module, f"p{i}") for i, name in enumerate(trained)}


def train(config, init, tokens, attention=None, adamw="for-loop"):
    if config.get("training", {}).get("mixed_precision_param") == "bfloat16":
        return train_sharded(config, init, tokens, attention, adamw)
    return train_plainly(config, init, tokens, attention, adamw)


def train_sharded(config, init, tokens, attention, adamw):
    """As train_plainly. Tensors that the optimizer reads are local: there is one rank."""
    c = derived(config)
    everything = {name: tensor.clone() for name, tensor in init.items()}
    trained = {name: tensor for name, tensor in everything.items() if name not in bias_names(c)}
    module, p = shard(c, everything, trained)
    o = c["optimizer"]
    optimizer = torch.optim.AdamW(p.values(), lr=o["lr"], betas=(o["beta1"], o["beta2"]), eps=o["eps"],
                                  weight_decay=o["weight_decay"], foreach=False, fused=adamw == "fused")
    steps, grads, margin = [], None, math.inf
    with sdpa_kernel(attention) if attention else contextlib.nullcontext():
        for batch in tokens:
            optimizer.zero_grad(set_to_none=True)
            labels = batch[:, 1:]
            scores = module(batch[:, :-1])
            assert scores.dtype == torch.bfloat16
            total = F.cross_entropy(scores.float().flatten(0, 1), labels.flatten(), reduction="sum", ignore_index=-100)
            loss = total / torch.tensor(float((labels != -100).sum()))
            loss.backward()
            local = {name: tensor.grad.to_local() for name, tensor in p.items()}
            assert all(tensor.dtype == torch.float32 for tensor in local.values())
            grads = grads or {name: tensor.clone() for name, tensor in local.items()}
            norm = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(t) for t in local.values()]))
            coefficient = 1.0
            if o["max_grad_norm"] is not None:
                coefficient = torch.clamp(o["max_grad_norm"] / (norm + 1e-6), max=1.0)
                for tensor in local.values():
                    tensor *= coefficient
            module.model.balance()
            margin = min(margin, module.model.margin)
            optimizer.step()
            steps.append({"step": len(steps) + 1, "loss": loss.item(), "grad_norm": norm.item(),
                          "clip_coef": float(coefficient)})
    final = {name: p[name].detach().to_local() if name in p else tensor for name, tensor in everything.items()}
    return steps, grads, final, margin


def train_plainly(config, init, tokens, attention, adamw):
    """Returns steps (loss, grad_norm), the gradients of step 1, the final tensors and the routing margin."""
    c = derived(config)
    everything = {name: tensor.clone() for name, tensor in init.items()}
    p = {name: tensor.requires_grad_() for name, tensor in everything.items() if name not in bias_names(c)}
    model = Model(c, everything)
    o = c["optimizer"]
    optimizer = torch.optim.AdamW(p.values(), lr=o["lr"], betas=(o["beta1"], o["beta2"]), eps=o["eps"],
                                  weight_decay=o["weight_decay"], foreach=False, fused=adamw == "fused")
    steps, grads = [], None
    with sdpa_kernel(attention) if attention else contextlib.nullcontext():
        for batch in tokens:
            optimizer.zero_grad(set_to_none=True)
            inputs, labels = batch[:, :-1], batch[:, 1:]
            scores = model.logits(inputs).float().flatten(0, 1)
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
            model.balance()
            optimizer.step()
            steps.append({"step": len(steps) + 1, "loss": loss.item(), "grad_norm": norm.item(),
                          "clip_coef": float(coefficient)})
    return steps, grads, {name: tensor.detach() for name, tensor in everything.items()}, model.margin


# Differences, as the table of tolerances names them.

def differences(run, reference, init):
    steps, grads, final = run[:3]
    ref_steps, ref_grads, ref_final = reference[:3]
    losses = [abs(a["loss"] - b["loss"]) for a, b in zip(steps, ref_steps)]

    def worst(values):
        return max(float(v) for v in values)

    def relative(difference, scale):
        return 0.0 if difference == 0 else difference / scale

    return {
        "loss_step1_abs": losses[0],
        "loss_max_abs": max(losses),
        "gradnorm_max_rel": max(abs(a["grad_norm"] - b["grad_norm"]) / b["grad_norm"]
                                for a, b in zip(steps, ref_steps)),
        "grad1_max_abs": worst((grads[n] - g).abs().max() for n, g in ref_grads.items()),
        "grad1_max_tensor_rel": worst(relative((grads[n] - g).norm(), g.norm()) for n, g in ref_grads.items()),
        "param_max_abs": worst((final[n] - t).abs().max() for n, t in ref_final.items()),
        "param_max_tensor_rel_to_update": worst(relative((final[n] - t).norm(), (t - init[n]).norm())
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
    steps, grads, final, margin = reference
    floors = noise(config, init, tokens, reference)
    worst = {metric: max(floor[metric] for floor in floors.values()) for metric in FLOORS}
    if worst["loss_max_abs"] > (1e-2 if "training" in config else 1e-5):
        sys.exit(f"{folder}: noise moves the loss by {worst['loss_max_abs']:.1e}, the smallest margin of a choice is "
                 f"{margin:.1e}: take another seed")
    write_json(os.path.join(folder, "config.json"), config)
    write_safetensors(os.path.join(folder, "init.safetensors"), init)
    write_safetensors(os.path.join(folder, "tokens.safetensors"), {"tokens": tokens})
    write_safetensors(os.path.join(folder, "grads_step1.safetensors"), grads)
    write_safetensors(os.path.join(folder, "final.safetensors"), final)
    write_json(os.path.join(folder, "reference.json"), {
        "torch": torch.__version__.split("+")[0], "device": "cpu", "threads": 1, "steps": steps,
        "dtype": "bfloat16 (FSDP2's mixed precision)" if "training" in config else "float32",
        **({"routing_margin_min": margin} if c["moe"] else {}),
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
    if arguments[:1] == ["make"]:
        for name in arguments[1:] or VARIANTS:
            make(os.path.join(here, name), VARIANTS[name])
    elif len(arguments) > 1 and arguments[0] == "verify":
        for folder in arguments[1:]:
            verify(folder)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
