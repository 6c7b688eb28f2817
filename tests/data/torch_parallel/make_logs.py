#!/usr/bin/env python3
"""Writes the logs of this folder with PyTorch 2.11 itself, over Gloo: `make_logs.py [NAME…]`.

Each program of `programs/` runs on one device and on ranks; `NAME/one_device.log.zst` and `NAME/ranks.log.zst`, the logs
of all ranks one after the other, are what it logged, without records of times, guards and single tensors.
`NAME/BUG.log.zst`: the ranks of a program with an error in it, which it reads from the environment variable BUG. Run by
a Python in which `import torch` works.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent

LEFT_OUT = re.compile(rb'"(chromium_event|describe_\w+|dynamo_cpp_guards_str|(bwd_)?compilation_metrics)": |'
                      rb'"name": "torch._functorch.config"')

# Ranks, and errors.
PROGRAMS = {
    "tensor_parallel": (2, []),
    "sequence_parallel": (2, []),
    "vocabulary_parallel": (2, []),
    "fsdp": (2, []),
    "ddp": (2, []),
    "token_mean": (2, ["local_count"]),
    "two_axes": (4, []),
    "by_hand": (2, ["norm_gradient", "loss_twice", "no_sum", "no_offset"]),
    "buckets": (2, ["exchanged"]),
    "grid": (4, ["wrong_group"]),
    "encoder": (2, []),
    "ddp_buckets": (2, ["half"]),
    "accumulation": (2, ["no_division"]),
    "local_gradients": (2, ["replicated"]),
    "inductor": (2, []),
    "uneven_batch": (2, ["own_mean"]),
    "uneven_columns": (4, []),
    "uneven_vocabulary": (2, []),
    "gated_mlp": (2, ["bias_early", "norm", "gate"]),
    "grouped_queries": (2, ["repeat", "scale", "causal"]),
    "accumulated_tokens": (2, ["own_tokens", "all_labels", "no_ranks"]),
}


def shortened(log):
    """A log without the records of LEFT_OUT and their payloads, which are the lines after a tab."""
    lines, keeps = [], True
    for line in log.splitlines(keepends=True):
        if not line.startswith(b"\t"):
            keeps = not LEFT_OUT.search(line)
        if keeps:
            lines.append(line)
    return b"".join(lines)


def run(name, ranks, target, bug=""):
    with tempfile.TemporaryDirectory() as folder:
        logs = pathlib.Path(folder) / "logs"
        environment = dict(os.environ, TORCH_TRACE=str(logs), TORCHINDUCTOR_FORCE_DISABLE_CACHES="1", BUG=bug)
        environment["OMP_NUM_THREADS"] = "1"
        command = [sys.executable, "-W", "ignore"]
        if ranks > 1:
            command += ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
        subprocess.run([*command, f"{name}.py"], cwd=HERE / "programs", env=environment, check=True)
        texts = [shortened(log.read_bytes()) for log in sorted(logs.iterdir())]
    target.parent.mkdir(exist_ok=True)
    subprocess.run(["zstd", "-19", "--long", "-q", "-f", "-", "-o", target], input=b"".join(texts), check=True)


def main():
    for name in sys.argv[1:] or PROGRAMS:
        ranks, bugs = PROGRAMS[name]
        run(name, 1, HERE / name / "one_device.log.zst")
        run(name, ranks, HERE / name / "ranks.log.zst")
        for bug in bugs:
            run(name, ranks, HERE / name / f"{bug}.log.zst", bug)


if __name__ == "__main__":
    main()
