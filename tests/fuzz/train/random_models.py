#!/usr/bin/env python3
"""Trains random models of every family with Strata and with plain PyTorch, and compares.

    random_models.py STRATA [COUNT] [SEED]

Needs `pip install torch==2.11.0`. Draws dims, ratios of heads, rotary embeddings, latent ranks, router settings,
precision, optimizer constants, and ways to make the graph that change no number: chunked loss, open sizes, experts one
by one. Trains 20 steps by tests/data/numerics/make_reference.py and by `strata train` from the same parameters and
tokens, and compares losses, gradient norms, the first gradients and the final parameters. What rounding explains is
measured for each model, as for the fixtures: trainings with another attention kernel and with weights moved by half an
ulp. Models in which a token nearly chose another expert, or that rounding alone drives apart, are drawn anew. Prints
each model that differs by more than four times its rounding; exits 1 if there is one.
"""

import json
import math
import os
import random
import struct
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, "tests", "data", "numerics"))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))

import torch  # noqa: E402

from torch.nn.attention import SDPBackend  # noqa: E402

import compare_numerics  # noqa: E402
import make_reference as reference  # noqa: E402

STEPS = 20
# Least tolerances, as of the fixtures; the smallest mistake that those know, a wrong eps, moves gradients by 2e-5.
FLOORS = {"loss": 4e-6, "grad_norm": 2e-6, "gradient": 1e-5, "final": 1e-4}
# Beyond these a training is too chaotic to tell anything.
USEFUL = {"loss": 1e-3, "grad_norm": 1e-2, "gradient": 1e-3, "final": 2e-2}
BF16_FACTOR = 2**14  # of the epsilons, less a little


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


def draw(chance):
    family = chance.choice(["llama3", "qwen3", "deepseek_v3"])
    heads = chance.choice([1, 2, 3, 4, 6, 8])
    seq_len = chance.choice([1, 2, 5, 16, 33])
    c = {"model": family, "steps": STEPS, "init": "torchtitan_sharpened", "norm_eps": chance.choice([1e-5, 1e-6]),
         "qk_norm": family == "qwen3", "dim": chance.choice([8, 16, 22, 24, 48]) if family == "deepseek_v3" else
         heads * chance.choice([4, 6, 8, 10]), "n_layers": chance.randint(1, 3), "n_heads": heads,
         "vocab_size": chance.choice([11, 32, 57]), "enable_weight_tying": chance.random() < 0.3,
         "seq_len": seq_len, "batch_size": chance.choice([1, 2, 3]), "seed": chance.randint(0, 10**6), "moe": None,
         "mla": None, "optimizer": {**reference.ADAMW, "lr": chance.choice([1e-4, 1e-3, 1e-2]),
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


def write_safetensors(path, tensors):
    header, data = {}, b""
    for name, tensor in tensors.items():
        letter, dtype = ("q", "I64") if tensor.dtype == torch.int64 else ("f", "F32")
        blob = struct.pack(f"<{tensor.numel()}{letter}", *tensor.flatten().tolist())
        header[name] = {"dtype": dtype, "shape": list(tensor.shape), "data_offsets": [len(data), len(data) + len(blob)]}
        data += blob
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def largest(ours, theirs, scales):
    """Relative to the scale's norm, as compare_numerics does, but not to less than a thousandth of that of all: where
    a gradient is zero but for rounding (queries and keys of rows of one token), there is nothing to be relative to."""
    worst = 0.0
    least = 1e-3 * math.sqrt(sum(float(tensor.norm()) ** 2 for tensor in scales.values()))
    for name, tensor in theirs.items():
        gap = float((ours[name].flatten() - tensor.flatten()).norm())
        worst = max(worst, gap / max(float(scales[name].norm()), least, 1e-30))
    return worst


def differences(run, other, init):
    """Of (steps, first gradients, final tensors)."""
    (steps, grads, final), (other_steps, other_grads, other_final) = run[:3], other[:3]
    measured = {
        "loss": max(abs(a["loss"] - b["loss"]) / max(1.0, abs(b["loss"])) for a, b in zip(steps, other_steps)),
        "grad_norm": max(abs(a["grad_norm"] - b["grad_norm"]) / b["grad_norm"] for a, b in zip(steps, other_steps)),
        "gradient": largest(grads, other_grads, other_grads),
        "final": largest(final, other_final, {name: t - init[name] for name, t in other_final.items()})}
    return measured


def tolerances(config, init, tokens, expected):
    """None when rounding alone drives the training apart."""
    noise = {metric: 0.0 for metric in FLOORS}
    runs = [reference.train(config, init, tokens, attention=SDPBackend.MATH)]
    for seed in (1, 2):
        generator = torch.Generator().manual_seed(seed)
        moved = {n: t * (1 + 2.0**-24 * torch.sign(torch.randn(t.shape, generator=generator))) for n, t in init.items()}
        runs.append(reference.train(config, moved, tokens))
    for run in runs:
        for metric, value in differences(run, expected, init).items():
            noise[metric] = max(noise[metric], value)
    factor = BF16_FACTOR if "training" in config else 1
    if any(value > USEFUL[metric] * (100 if factor > 1 else 1) for metric, value in noise.items()):
        return None
    return {metric: max(4 * value, FLOORS[metric] * factor) for metric, value in noise.items()}


def read(path, like):
    return {name: torch.tensor(list(values)).view(like[name].shape)
            for name, values in compare_numerics.read_safetensors(path).items()}


def compare(strata, config, ways, folder):
    """None when the model is of no use, else what differs."""
    torch.manual_seed(config["seed"])
    c = reference.derived(config)
    init = reference.initial_parameters(c)
    tokens = torch.randint(0, c["vocab_size"], (STEPS, c["batch_size"], c["seq_len"] + 1))
    expected = reference.train(config, init, tokens)
    if expected[3] < (1e-2 if "training" in config else 1e-4):
        return None
    tolerance = tolerances(config, init, tokens, expected)
    if tolerance is None:
        return None
    paths = {name: os.path.join(folder, name) for name in ("config.json", "init", "tokens", "m", "g", "p")}
    with open(paths["config.json"], "w", encoding="utf-8") as file:
        json.dump(config, file)
    write_safetensors(paths["init"], init)
    write_safetensors(paths["tokens"], {"tokens": tokens})
    command = [strata, "train", paths["config.json"], "--init", paths["init"], "--tokens", paths["tokens"], "--metrics",
               paths["m"], "--dump-grads", paths["g"], "--save", paths["p"]]
    for way in ways:
        command += ["--set", way]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if result.returncode != 0:
        return result.stderr.strip()
    ours = compare_numerics.read_steps(paths["m"]), read(paths["g"], init), read(paths["p"], init)
    measured = differences(ours, expected, init)
    if c["seq_len"] == 1:
        del measured["final"]  # AdamW makes whole steps of gradients that are zero but for rounding
    bad = {k: f"{v:.1e} > {tolerance[k]:.1e}" for k, v in measured.items() if not v <= tolerance[k]}
    return str(bad) if bad else ""


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
    strata, count, seed = sys.argv[1], int((sys.argv + ["50"])[2]), int((sys.argv + ["50", "1"])[3])
    torch.set_num_threads(1)
    chance = random.Random(seed)
    compared = failed = 0
    while compared < count:
        config = draw(chance)
        if chance.random() < 0.2:
            config["training"] = reference.BF16
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
