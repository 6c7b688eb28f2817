#!/usr/bin/env python3
"""Makes the numerics fixtures of this folder: short trainings of small models in plain PyTorch.

    python make_reference.py make [NAME…]   writes the folders of VARIANTS, or the named ones
    python make_reference.py verify DIR…    repeats the training of a fixture, including those that torchtitan made,
                                            and prints the differences next to the tolerances

Needs `pip install torch==2.11.0`. The model is written from torchtitan's formulas with plain PyTorch and
autograd, apart from Strata's code; fp32, CPU, one thread. Fixtures with training.mixed_precision_param = bfloat16 are
trained by FSDP2 on one rank, fully_shard with MixedPrecisionPolicy(param_dtype=bfloat16, reduce_dtype=float32), which
is how torchtitan trains. A fixture holds

    config.json          the configuration for `strata train`
    init.safetensors     parameters before step 1, and expert biases; tied models have one tensor, lm_head.weight
    tokens.safetensors   tokens, int64 [steps, batch, seq + 1]
    grads_step1.json     digests of the gradients of step 1, before clipping (tests/support/tensor_digest.py)
    final.json           digests of the parameters after the last step; `update` is the norm of their change
    reference.json       loss and grad_norm (before clipping) per step, the noise floor and the tolerances

Noise floor: the largest change that two threads, another attention kernel, another AdamW kernel, or weights moved by
half an ulp (of fp32, also in mixed precision, where it reverses some roundings to bf16) made. It is measured with whole
tensors. Tolerance: four times the noise floor, at least FLOORS. Where the noise sends a token to another expert, the
losses diverge by orders of magnitude: `make` rejects such a seed.

The configurations are in variants.py, the models in reference_model.py, their training in reference_training.py.
"""

import array
import ctypes
import json
import os
import struct
import sys

import torch

from make_digests import write_reference  # adds tests/support to the path
from compare_numerics import measure_values
from reference_model import derived, initial_parameters
from reference_training import noise, tolerances, train
from variants import VARIANTS


class Unusable(Exception):
    """Rounding alone makes trainings with this seed diverge."""


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


def values_of(tensor):
    """The fp32 elements, in order."""
    return array.array("f", tensor.detach().flatten().tolist())


def values_by_name(tensors):
    return {name: values_of(tensor) for name, tensor in tensors.items()}


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
    write_reference(folder, *map(values_by_name, (init, grads, final)))
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
    init, tokens = (read_safetensors(os.path.join(folder, f"{name}.safetensors")) for name in ("init", "tokens"))
    steps, grads, final, _ = train(config, init, tokens["tokens"])
    measured, tolerance = measure_values(folder, steps, values_by_name(grads), values_by_name(final))
    print(folder)
    for metric, value in measured.items():
        print(f"  {metric:32} {value:.2e}  tolerance {tolerance[metric]:.2e}")


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
