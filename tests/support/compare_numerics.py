"""Compares a training of ours with a numbers fixture made by PyTorch.

    compare_numerics.py FIXTURE METRICS GRADS FINAL

FIXTURE is a folder as tests/data/numerics holds them; the others are what `strata train --metrics --dump-grads --save`
wrote. Prints measured difference and tolerance per metric; exits 1 if one is exceeded, or a value is missing or no
number. Standard library only.
"""

import array
import json
import math
import os
import struct
import sys


class Mismatch(Exception):
    """The files cannot be compared: other steps, other tensors."""


def read_safetensors(path):
    """name -> array of fp32."""
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header, data = json.loads(file.read(length)), file.read()
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        if entry["dtype"] != "F32":
            raise Mismatch(f"{path}: {name} is {entry['dtype']}, not F32")
        values = array.array("f")
        values.frombytes(data[slice(*entry["data_offsets"])])
        tensors[name] = values
    return tensors


def read_steps(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def norm(values):
    return math.sqrt(math.fsum(v * v for v in values))


def same_names(what, ours, reference):
    if ours.keys() != reference.keys():
        missing, extra = sorted(reference.keys() - ours.keys()), sorted(ours.keys() - reference.keys())
        raise Mismatch(f"{what}: missing {missing}, unexpected {extra}")
    for name, values in reference.items():
        if len(ours[name]) != len(values):
            raise Mismatch(f"{what}: {name} has {len(ours[name])} elements, not {len(values)}")


def worst(values):
    """The largest; NaN wins over all, since max() would hide it."""
    values = list(values)
    return math.nan if any(math.isnan(v) for v in values) else max(values)


def ratio(difference, scale):
    return 0.0 if difference == 0 else difference / scale if scale else math.inf


def measure(fixture, metrics_path, grads_path, final_path):
    """metric -> difference, for the metrics of the fixtures' tolerance tables."""
    with open(os.path.join(fixture, "reference.json"), encoding="utf-8") as file:
        reference = json.load(file)
    steps, ours = reference["steps"], read_steps(metrics_path)
    if [s["step"] for s in ours] != [s["step"] for s in steps]:
        raise Mismatch(f"{metrics_path}: steps {[s['step'] for s in ours]}")
    for step in ours:
        if step["loss"] is None or step["grad_norm"] is None:
            raise Mismatch(f"{metrics_path}: step {step['step']} is not finite")

    init = read_safetensors(os.path.join(fixture, "init.safetensors"))
    ref_grads = read_safetensors(os.path.join(fixture, "grads_step1.safetensors"))
    ref_final = read_safetensors(os.path.join(fixture, "final.safetensors"))
    grads, final = read_safetensors(grads_path), read_safetensors(final_path)
    same_names("gradients", grads, ref_grads)
    same_names("final parameters", final, ref_final)

    losses = [abs(a["loss"] - b["loss"]) for a, b in zip(ours, steps)]
    grad_gaps = {n: [a - b for a, b in zip(grads[n], g)] for n, g in ref_grads.items()}
    final_gaps = {n: [a - b for a, b in zip(final[n], t)] for n, t in ref_final.items()}
    updates = {n: norm([a - b for a, b in zip(t, init[n])]) if n in init else 0.0 for n, t in ref_final.items()}
    measured = {
        "loss_step1_abs": losses[0],
        "loss_max_abs": worst(losses),
        "gradnorm_max_rel": worst(abs(a["grad_norm"] - b["grad_norm"]) / b["grad_norm"] for a, b in zip(ours, steps)),
        "grad1_max_abs": worst(abs(v) for gaps in grad_gaps.values() for v in gaps),
        "grad1_max_tensor_rel": worst(ratio(norm(gaps), norm(ref_grads[n])) for n, gaps in grad_gaps.items()),
        "param_max_abs": worst(abs(v) for gaps in final_gaps.values() for v in gaps),
        "param_max_tensor_rel_to_update": worst(ratio(norm(gaps), updates[n]) for n, gaps in final_gaps.items()),
    }
    return measured, reference["tolerance"]


def compare(fixture, metrics_path, grads_path, final_path):
    """Prints the table; True if every metric is within its tolerance."""
    try:
        measured, tolerance = measure(fixture, metrics_path, grads_path, final_path)
    except Mismatch as mismatch:
        print(mismatch)
        return False
    within = True
    print(f"{os.path.basename(os.path.normpath(fixture)):32} {'measured':>9} {'tolerance':>9}")
    for metric, value in measured.items():
        fits = value <= tolerance[metric]  # false for NaN
        within = within and fits
        print(f"  {metric:30} {value:9.1e} {tolerance[metric]:9.1e}{'' if fits else '  EXCEEDED'}")
    return within


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    sys.exit(0 if compare(*sys.argv[1:]) else 1)
