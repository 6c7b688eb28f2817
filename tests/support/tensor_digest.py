"""Digests of reference tensors: enough to judge another tensor by, in a fraction of the bytes.

    digest(name, values)            what a fixture stores of a tensor
    distance(name, digest, values)  how far `values` is from the tensor of a digest

A tensor of at most WHOLE elements is stored whole. The digest of a larger one holds

    sample           SAMPLES elements at random positions
    sketch           BUCKETS signed sums, in fp64: each element is added, with a random sign, to one random sum
    sum, abs, norm   of all elements: their sum, the sum of their absolute values, their L2 norm
    min, max

The norm of the difference of two sketches estimates the norm of the difference of their tensors, whatever the
difference is, with a standard deviation of 12 % (CountSketch: Charikar, Chen, Farach-Colton, 2002). A difference twice as
large as measured has a probability below 1e-5. The other statistics are lower bounds of that norm.

Python's Mersenne Twister, which is the same in every version, generates positions, sums and signs from the name of the
tensor. Tensors that changed places therefore differ in their digests even if their statistics do not. Standard library
only.
"""

import array
import json
import math
import random

SAMPLES = 64
BUCKETS = 32
WHOLE = SAMPLES + BUCKETS


def norm(values):
    return math.sqrt(math.fsum(v * v for v in values))


def as_text(value, digits):
    """The float rounded to `digits` digits, for JSON."""
    return float(f"{value:.{digits}g}")


def sample(name, values):
    positions = random.Random(f"sample {name}").sample(range(len(values)), SAMPLES)
    return [values[position] for position in sorted(positions)]


def sketch(name, values):
    draws = random.Random(f"sketch {name}").randbytes(len(values))
    sums = [0.0] * 256
    for draw, value in zip(draws, values):
        sums[draw] += value
    # A byte draws the bucket with its low bits and the sign with its high bit.
    return [math.fsum(sums[bucket:128:BUCKETS]) - math.fsum(sums[bucket + 128::BUCKETS]) for bucket in range(BUCKETS)]


def statistics(values):
    return {"sum": math.fsum(values), "abs": math.fsum(map(abs, values)), "norm": norm(values)}


def fp32(values):
    """The fp32 values nearest to those of a JSON text, which 9 digits identify."""
    return array.array("f", values)


def digest(name, values):
    """Of fp32 values. The 10 digits of a sum are far below the tightest tolerance, 3e-6 of a norm."""
    values = fp32(values)
    if len(values) <= WHOLE:
        return {"elements": len(values), "whole": [as_text(v, 9) for v in values], "norm": as_text(norm(values), 10)}
    return {"elements": len(values),
            **{key: as_text(value, 10) for key, value in statistics(values).items()},
            "min": as_text(min(values), 9), "max": as_text(max(values), 9),
            "sketch": [as_text(v, 10) for v in sketch(name, values)],
            "sample": [as_text(v, 9) for v in sample(name, values)]}


def distance(name, reference, values):
    """The largest difference of elements that are stored, and the norm of the difference of the tensors.

    Both are exact for a tensor that is stored whole, and NaN if one of `values` is not finite.
    REQUIRES: `values` are as many as the digest counts.
    """
    if not all(map(math.isfinite, values)):
        return math.nan, math.nan
    if "whole" in reference:
        gaps = [a - b for a, b in zip(values, fp32(reference["whole"]))]
        return max(map(abs, gaps)), norm(gaps)
    known = fp32([*reference["sample"], reference["min"], reference["max"]])
    gaps = [a - b for a, b in zip([*sample(name, values), min(values), max(values)], known)]
    ours, root = statistics(values), math.sqrt(len(values))
    length = max(norm(a - b for a, b in zip(sketch(name, values), reference["sketch"])),
                 norm(gaps[:SAMPLES]),
                 abs(ours["sum"] - reference["sum"]) / root,  # |x . 1| <= |x| |1|
                 abs(ours["abs"] - reference["abs"]) / root,
                 abs(ours["norm"] - reference["norm"]))
    return max(map(abs, gaps)), length


def read_digests(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def write_digests(path, digests):
    """Writes name -> digest, one tensor a line."""
    lines = [f"{json.dumps(name)}: {json.dumps(digests[name], separators=(',', ':'))}" for name in sorted(digests)]
    with open(path, "w", encoding="utf-8") as file:
        file.write("{\n" + ",\n".join(lines) + "\n}\n")
