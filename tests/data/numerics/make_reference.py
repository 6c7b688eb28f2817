#!/usr/bin/env python3
"""Makes the numbers fixtures of this folder: short trainings of small models in plain PyTorch.

    python make_reference.py make [NAME…]    writes the folders of VARIANTS, or those named
    python make_reference.py verify DIR…   repeats the training of a fixture (also one that torchtitan
                                           made) and prints the differences beside its tolerances

Needs `pip install torch==2.11.0`. The model is written from torchtitan's formulas with plain PyTorch and
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

The configurations are in variants.py, the models in reference_model.py, their training in reference_training.py.
"""

import ctypes
import json
import os
import struct
import sys

import torch

from reference_model import derived, initial_parameters
from reference_training import differences, noise, tolerances, train
from variants import VARIANTS


class Unusable(Exception):
    """A seed whose training rounding alone drives apart."""


def write_safetensors(path, tensors):
    names = {torch.float32: "F32", torch.int64: "I64"}
    header, data = {}, b""
    for name in sorted(tensors):
        tensor = tensors[name].contiguous()
        blob = ctypes.string_at(tensor.data_ptr(), tensor.nbytes)
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
    """Writes a fixture; returns a line about it. Raises Unusable."""
    os.makedirs(folder, exist_ok=True)
    c = derived(config)
    init = initial_parameters(c)
    generator = torch.Generator().manual_seed(c["seed"] + 1)
    shape = (c["steps"], c["batch_size"], c["seq_len"] + 1)
    tokens = torch.randint(0, c["vocab_size"], shape, generator=generator)
    reference = train(config, init, tokens)
    steps, grads, final, margin = reference
    floors = noise(config, init, tokens, reference)
    tolerance, worst = tolerances(floors)
    if worst["loss_max_abs"] > (1e-2 if "training" in config else 1e-5):
        raise Unusable(f"{folder}: noise moves the loss by {worst['loss_max_abs']:.1e}, the smallest margin of a "
                       f"choice is {margin:.1e}: take another seed")
    write_json(os.path.join(folder, "config.json"), config)
    write_safetensors(os.path.join(folder, "init.safetensors"), init)
    write_safetensors(os.path.join(folder, "tokens.safetensors"), {"tokens": tokens})
    write_safetensors(os.path.join(folder, "grads_step1.safetensors"), grads)
    write_safetensors(os.path.join(folder, "final.safetensors"), final)
    write_json(os.path.join(folder, "reference.json"), {
        "torch": torch.__version__.split("+")[0], "device": "cpu", "threads": 1, "steps": steps,
        "dtype": "bfloat16 (FSDP2's mixed precision)" if "training" in config else "float32",
        **({"routing_margin_min": margin} if c["moe"] else {}),
        "noise_floor": floors, "noise_floor_worst": worst, "tolerance": tolerance})
    return (f"{folder}: loss {steps[0]['loss']:.6f} -> {steps[-1]['loss']:.6f}, "
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
            try:
                print(make(os.path.join(here, name), VARIANTS[name]))
            except Unusable as why:
                sys.exit(str(why))
    elif len(arguments) > 1 and arguments[0] == "verify":
        for folder in arguments[1:]:
            verify(folder)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
