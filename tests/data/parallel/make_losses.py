"""Losses and gradient norms of trainings in PyTorch on several ranks, over Gloo: FSDP2, HSDP and tensor parallelism.

    make_losses.py [OUT.json]

Trains the model of tests/data/numerics/llama3_tiny for 10 steps on each layout, one process for each rank, and writes
losses.json beside this file or OUT. Needs a Python with PyTorch: `./dev setup bench`, then
.venv-bench/bin/python tests/data/parallel/make_losses.py.
"""

import json
import os
import socket
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
FIXTURE = os.path.join(ROOT, "tests", "data", "numerics", "llama3_tiny")
STEPS = 10
# Sizes of dp_replicate, fsdp and tp. The batch has four sequences.
LAYOUTS = {
    "fsdp=2": (1, 2, 1),
    "fsdp=4": (1, 4, 1),
    "dp_replicate=2,fsdp=2": (2, 2, 1),
    "tp=2": (1, 1, 2),
    "fsdp=2,tp=2": (1, 2, 2),
}


def train(sizes):
    """In the process of a rank: prints a loss and a norm for each step."""
    sys.path.insert(0, os.path.join(ROOT, "bench", "peers"))
    import torch
    import torch.distributed as dist
    from parallel_peers import ShardedPeer
    from train_peers import read_safetensors

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    with open(os.path.join(FIXTURE, "config.json"), encoding="utf-8") as file:
        config = {**json.load(file), "n_dense_layers": 0, "device": "cpu", "precision": "float32"}
    tensors = {}
    for name in ("init", "tokens"):
        tensors.update(read_safetensors(os.path.join(FIXTURE, name + ".safetensors")))
    peer = ShardedPeer(dict(zip(("dp_replicate", "fsdp", "tp"), sizes)), config, tensors)
    steps = [(peer.step(step), peer.norm) for step in range(STEPS)]
    if dist.get_rank() == 0:
        print(json.dumps(steps))
    dist.destroy_process_group()


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def measure(sizes):
    """[[loss, gradient norm] of each step] of a layout."""
    ranks, port = sizes[0] * sizes[1] * sizes[2], free_port()
    processes = []
    for rank in range(ranks):
        variables = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": ranks, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        processes.append(subprocess.Popen([sys.executable, "-B", __file__, "--rank", *map(str, sizes)],
                                          env={**os.environ, **{name: str(value) for name, value in variables.items()}},
                                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    outputs = [process.communicate(timeout=300) for process in processes]
    if any(process.returncode != 0 for process in processes):
        raise RuntimeError("\n".join(errors for _, errors in outputs))
    return json.loads(outputs[0][0])


def main():
    if sys.argv[1:2] == ["--rank"]:
        train(tuple(map(int, sys.argv[2:])))
        return
    layouts = {name: measure(sizes) for name, sizes in LAYOUTS.items()}
    with open(sys.argv[1] if sys.argv[1:] else os.path.join(HERE, "losses.json"), "w", encoding="utf-8") as file:
        lines = [f'  {json.dumps(name)}: {json.dumps(steps)}' for name, steps in layouts.items()]
        file.write("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
