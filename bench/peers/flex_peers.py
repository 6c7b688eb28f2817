"""Computes flex attention on request, compiled, and reports the time of each call.

    python flex_peers.py REQUEST.json

REQUEST: {"batch", "heads", "seq", "width", "block", "documents": [length, …], "threads", "cache"}.
Orders and answers are those of train_peers.py; the loss is the mean of the result's magnitudes.
"""

import json
import os
import sys
import time

import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from train_peers import processor_seconds, serve


class Peer:

    def __init__(self, c):
        ids = torch.cat([torch.full((length,), i) for i, length in enumerate(c["documents"])])

        def mask(b, h, q, k):
            return (q >= k) & (ids[q] == ids[k])

        def numbers(phase):
            count = c["batch"] * c["seq"] * c["heads"] * c["width"]
            values = (torch.arange(count, dtype=torch.float64) * 0.7310585 + phase).sin().float()
            return values.view(c["batch"], c["seq"], c["heads"], c["width"]).transpose(1, 2)

        self.inputs = numbers(0.0), numbers(1.0), numbers(2.0)
        self.blocks = create_block_mask(mask, None, None, c["seq"], c["seq"], device="cpu",
                                        BLOCK_SIZE=c["block"])
        self.attend = torch.compile(flex_attention, dynamic=False)

    @torch.no_grad()
    def step(self):
        return self.attend(*self.inputs, block_mask=self.blocks)


def begin(request):
    peer = Peer(request)
    wall, cpu = time.perf_counter(), processor_seconds()
    result = peer.step()
    return peer, {
        "first_wall_s": time.perf_counter() - wall,
        "first_cpu_s": processor_seconds() - cpu,
        "peak_bytes": 0,
        "losses": [result.abs().mean().item()]
    }


def run(peer, steps):
    times = []
    for _ in range(steps):
        cpu, wall = time.process_time(), time.perf_counter()
        peer.step()
        times.append([1e3 * (time.process_time() - cpu), 1e3 * (time.perf_counter() - wall)])
    return {"times_ms": times}


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        request = json.load(file)
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = request["cache"]
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    torch.set_num_threads(request["threads"])
    serve(lambda: begin(request), run)


if __name__ == "__main__":
    main()
