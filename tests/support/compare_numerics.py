"""Compares a training by Strata with a numerics fixture made by PyTorch.

    compare_numerics.py FIXTURE METRICS GRADS FINAL

FIXTURE is a folder of tests/data/numerics; the others are the outputs of `strata train --metrics --dump-grads --save`.
Prints the measured difference and the tolerance of each metric. Exits 1 if a difference exceeds its tolerance, or a
value is missing or not finite. Gradients and final parameters are compared with digests: tensor_digest.py says how a
difference is measured. Standard library only.
"""

import array
import json
import math
import os
import struct
import sys

from tensor_digest import distance, read_digests


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


def same_tensors(what, ours, reference):
    """Raises Mismatch unless both have tensors of the same names and sizes."""
    if ours.keys() != reference.keys():
        missing, extra = sorted(reference.keys() - ours.keys()), sorted(ours.keys() - reference.keys())
        raise Mismatch(f"{what}: missing {missing}, unexpected {extra}")
    for name, digest in reference.items():
        if len(ours[name]) != digest["elements"]:
            raise Mismatch(f"{what}: {name} has {len(ours[name])} elements, not {digest['elements']}")


def worst(values):
    """The largest; NaN wins over all, since max() would hide it."""
    values = list(values)
    return math.nan if any(math.isnan(v) for v in values) else max(values)


def ratio(difference, scale):
    return 0.0 if difference == 0 else difference / scale if scale else math.inf


def measure(fixture, metrics_path, grads_path, final_path):
    """metric -> difference, for the metrics of the fixtures' tolerance tables; and these tolerances."""
    return measure_values(fixture, read_steps(metrics_path), read_safetensors(grads_path), read_safetensors(final_path))


def measure_values(fixture, ours, grads, final):
    """As measure, of steps and fp32 values in memory."""
    with open(os.path.join(fixture, "reference.json"), encoding="utf-8") as file:
        reference = json.load(file)
    steps = reference["steps"]
    if [s["step"] for s in ours] != [s["step"] for s in steps]:
        raise Mismatch(f"metrics: steps {[s['step'] for s in ours]}, not 1 to {len(steps)}")
    for step in ours:
        if step["loss"] is None or step["grad_norm"] is None:
            raise Mismatch(f"metrics: step {step['step']} is not finite")

    ref_grads = read_digests(os.path.join(fixture, "grads_step1.json"))
    ref_final = read_digests(os.path.join(fixture, "final.json"))
    same_tensors("gradients", grads, ref_grads)
    same_tensors("final parameters", final, ref_final)

    losses = [abs(a["loss"] - b["loss"]) for a, b in zip(ours, steps)]
    grad_gaps = {n: distance(n, digest, grads[n]) for n, digest in ref_grads.items()}
    final_gaps = {n: distance(n, digest, final[n]) for n, digest in ref_final.items()}
    measured = {
        "loss_step1_abs": losses[0],
        "loss_max_abs": worst(losses),
        "gradnorm_max_rel": worst(abs(a["grad_norm"] - b["grad_norm"]) / b["grad_norm"] for a, b in zip(ours, steps)),
        "grad1_max_abs": worst(largest for largest, _ in grad_gaps.values()),
        "grad1_max_tensor_rel": worst(ratio(gap, ref_grads[n]["norm"]) for n, (_, gap) in grad_gaps.items()),
        "param_max_abs": worst(largest for largest, _ in final_gaps.values()),
        "param_max_tensor_rel_to_update": worst(ratio(gap, ref_final[n]["update"]) for n, (_, gap) in final_gaps.items()),
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
