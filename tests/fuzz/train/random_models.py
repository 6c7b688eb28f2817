#!/usr/bin/env python3
"""Trains random models of every family with Strata and with plain PyTorch, and compares.

    random_models.py STRATA [COUNT] [SEED] [FAMILY]

Needs `pip install torch==2.11.0`. Draws dims, ratios of heads, rotary embeddings, latent ranks, router settings,
precision, optimizer constants, and ways to make the graph that change no number: chunked loss, dynamic shapes, experts one
by one. Makes a numbers fixture of each as tests/data/numerics/make_reference.py does, with the tolerances that rounding
alone explains, and judges `strata train` by it as the tests do. Models in which a token nearly chose another expert, or
that rounding alone drives apart, are drawn anew. Prints each model that differs; exits 1 if there is one.
"""

import json
import math
import os
import random
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, "tests", "data", "numerics"))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))

import torch  # noqa: E402

import compare_numerics  # noqa: E402
import make_reference  # noqa: E402
from variants import ADAMW, BF16, STEPS  # noqa: E402


def draw_rope(chance, seq_len, dims):
    rope = {"theta": chance.choice([100.0, 10000.0, 5e5, 1e6]), "backend": chance.choice(["complex", "cos_sin"]),
            "scaling": chance.choice(dims), "max_seq_len": seq_len + chance.choice([0, 0, 5, 40])}
    if rope["scaling"] == "llama":
        rope |= {"scaling_factor": chance.choice([2.0, 8.0, 32.0]), "low_freq_factor": 1.0,
                 "high_freq_factor": chance.choice([1.5, 4.0]),
                 "original_max_position_embeddings": chance.choice([16, 64, 8192])}
    if rope["scaling"] == "yarn":
        # YaRN where both ways of saying when it applies agree.
        applies = chance.random() < 0.7
        rope |= {"rope_factor": chance.choice([2.0, 40.0]) if applies else 1.0, "beta_fast": chance.choice([8.0, 32.0]),
                 "beta_slow": 1.0, "original_seq_len": max(1, rope["max_seq_len"] // 2) if applies else 4096}
    return rope


def draw_moe(chance):
    experts = chance.choice([2, 3, 4, 6, 8, 12, 16])
    moe = {"num_experts": experts, "top_k": chance.randint(1, min(4, experts)),
           "moe_hidden_dim": chance.choice([4, 7, 8, 12, 20]), "num_shared_experts": chance.randint(0, 2),
           "score_func": chance.choice(["softmax", "sigmoid"]), "route_norm": chance.random() < 0.5,
           "route_scale": chance.choice([1.0, 2.5, 16.0]), "num_expert_groups": None, "num_limited_groups": None,
           "score_before_experts": chance.random() < 0.3,
           "load_balance_coeff": chance.choice([None, 1e-3, 1e-2])}
    groups = [g for g in (2, 3, 4) if experts % g == 0 and experts // g >= 2]
    if groups and chance.random() < 0.4:
        moe["num_expert_groups"] = chance.choice(groups)
        moe["num_limited_groups"] = chance.randint(1, moe["num_expert_groups"])
        moe["top_k"] = min(moe["top_k"], moe["num_limited_groups"] * experts // moe["num_expert_groups"])
    return moe


def draw(chance, family):
    heads = chance.choice([1, 2, 3, 4, 6, 8])
    seq_len = chance.choice([1, 2, 5, 16, 33])
    c = {"model": family, "steps": STEPS, "init": "torchtitan_sharpened", "norm_eps": chance.choice([1e-5, 1e-6]),
         "qk_norm": family == "qwen3", "dim": chance.choice([8, 16, 22, 24, 48]) if family == "deepseek_v3" else
         heads * chance.choice([4, 6, 8, 10]), "n_layers": chance.randint(1, 3), "n_heads": heads,
         "vocab_size": chance.choice([11, 32, 57]), "enable_weight_tying": chance.random() < 0.3,
         "seq_len": seq_len, "batch_size": chance.choice([1, 2, 3]), "seed": chance.randint(0, 10**6), "moe": None,
         "mla": None, "optimizer": {**ADAMW, "lr": chance.choice([1e-4, 1e-3, 1e-2]),
                                    "weight_decay": chance.choice([0.0, 0.1]),
                                    "max_grad_norm": chance.choice([None, 0.1, 1.0, 100.0])}}
    if family == "deepseek_v3":
        nope, rope = chance.choice([4, 5, 8, 16]), chance.choice([2, 4, 8])
        c["mla"] = {"q_lora_rank": chance.choice([0, 6, 10]), "kv_lora_rank": chance.choice([6, 12, 16]),
                    "qk_nope_head_dim": nope, "qk_rope_head_dim": rope,
                    "v_head_dim": chance.choice([4, 8, nope + rope, 20]), "mscale": chance.choice([0.0, 0.7, 1.0])}
        c |= {"hidden_dim": chance.choice([12, 20]), "n_dense_layers": chance.randint(0, c["n_layers"])}
        if c["n_dense_layers"] < c["n_layers"]:
            c["moe"] = draw_moe(chance)
    else:
        c["n_kv_heads"] = chance.choice([k for k in range(1, heads + 1) if heads % k == 0])
        c["head_dim"] = chance.choice([c["dim"] // heads, 6, 12])
        if family == "llama3":
            c |= {"multiple_of": chance.choice([1, 8]), "ffn_dim_multiplier": chance.choice([None, 0.5, 1.3])}
        else:
            c["hidden_dim"] = chance.choice([12, 20, 31])
            if chance.random() < 0.5:
                c["moe"] = draw_moe(chance)
    c["rope"] = draw_rope(chance, seq_len, ["none", "yarn"] if family == "deepseek_v3" else ["none", "llama"])
    return c


def train(strata, folder, ways):
    """Paths of metrics, gradients and parameters, or what was said instead."""
    fixture = {name: os.path.join(folder, name) for name in ("config.json", "init.safetensors", "tokens.safetensors")}
    out = [os.path.join(folder, name) for name in ("m.jsonl", "g.safetensors", "p.safetensors")]
    command = [strata, "train", fixture["config.json"], "--init", fixture["init.safetensors"],
               "--tokens", fixture["tokens.safetensors"], "--metrics", out[0], "--dump-grads", out[1], "--save", out[2]]
    for way in ways:
        command += ["--set", way]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    return (out, "") if result.returncode == 0 else (None, result.stderr.strip())


def compare(strata, config, ways, folder):
    """None when the model is of no use, else what differs."""
    try:
        make_reference.make(folder, config)
    except make_reference.Unusable:
        return None
    with open(os.path.join(folder, "reference.json"), encoding="utf-8") as file:
        margin = json.load(file).get("routing_margin_min", math.inf)
    if margin < (1e-2 if "training" in config else 1e-4):
        return None
    paths, complaint = train(strata, folder, ways)
    if paths is None:
        return complaint
    try:
        measured, tolerance = compare_numerics.measure(folder, *paths)
    except compare_numerics.Mismatch as mismatch:
        return str(mismatch)
    if config["seq_len"] == 1:
        # Queries and keys have no gradient: a kernel that gets rounding instead of zeros makes AdamW take whole steps.
        measured = {k: v for k, v in measured.items() if k.startswith(("loss", "gradnorm", "grad1_max_abs"))}
    return ", ".join(f"{k} {v:.1e} > {tolerance[k]:.1e}" for k, v in measured.items() if not v <= tolerance[k])


def draw_ways(chance, config):
    """Ways to make the graph of a step."""
    ways = []
    if chance.random() < 0.3:
        ways.append(f"compile.symbolic_dims={chance.choice(['batch', 'seq', 'batch_and_seq'])}")
    if config["moe"] and chance.random() < 0.4:
        ways.append("moe.use_grouped_mm=false")
    chunks = [n for n in (2, 4, 8, 11) if config["seq_len"] % n == 0]
    if chunks and chance.random() < 0.3:
        ways += ["loss.name=chunked_cross_entropy", f"loss.num_chunks={chance.choice(chunks)}"]
    return ways


def main():
    strata, count, seed, family, *_ = sys.argv[1:] + ["50", "1", ""][len(sys.argv) - 2:]
    count = int(count)
    torch.set_num_threads(1)
    chance = random.Random(int(seed))
    compared = failed = 0
    while compared < count:
        config = draw(chance, family or chance.choice(["llama3", "qwen3", "deepseek_v3"]))
        if chance.random() < 0.2:
            config["training"] = BF16
        ways = draw_ways(chance, config)
        with tempfile.TemporaryDirectory() as folder:
            difference = compare(strata, config, ways, folder)
        if difference is None:
            continue
        compared += 1
        if difference:
            failed += 1
            print(f"{difference}\n  {' '.join(ways)}\n  {json.dumps(config)}", flush=True)
    print(f"{compared} models compared, {failed} differ")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
