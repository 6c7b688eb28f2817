#!/usr/bin/env python3
"""Replaces the reference tensors of numerics fixtures by their digests (tests/support/tensor_digest.py).

    make_digests.py FOLDER…

Reads init.safetensors, grads_step1.safetensors and final.safetensors of each folder; writes grads_step1.json and
final.json, and removes the two files that they replace. Standard library only.
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))

from compare_numerics import read_safetensors  # noqa: E402
from tensor_digest import as_text, digest, norm, write_digests  # noqa: E402


def write_reference(folder, init, grads, final):
    """Of fp32 values by name. `update` of a final tensor is the norm of its change since `init`."""
    write_digests(os.path.join(folder, "grads_step1.json"), {name: digest(name, v) for name, v in grads.items()})
    updates = {name: norm([a - b for a, b in zip(v, init[name])]) for name, v in final.items()}
    write_digests(os.path.join(folder, "final.json"),
                  {name: {**digest(name, v), "update": as_text(updates[name], 10)} for name, v in final.items()})


def main(folders):
    if not folders:
        sys.exit(__doc__)
    for folder in folders:
        paths = [os.path.join(folder, f"{name}.safetensors") for name in ("init", "grads_step1", "final")]
        write_reference(folder, *map(read_safetensors, paths))
        for path in paths[1:]:
            os.remove(path)


if __name__ == "__main__":
    main(sys.argv[1:])
