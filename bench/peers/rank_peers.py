"""What the peers with several ranks share: a process is one rank over Gloo."""

import json
import sys
import time

import torch
import torch.distributed as dist
from train_peers import processor_seconds, run, serve


def memory(name):
    with open("/proc/self/status", encoding="utf-8") as file:
        return next(1024 * int(line.split()[1]) for line in file if line.startswith(name + ":"))


def begin(peer, before):
    wall, cpu = time.perf_counter(), processor_seconds()
    losses = [peer.step(0)]
    first = {"first_wall_s": time.perf_counter() - wall, "first_cpu_s": processor_seconds() - cpu}
    losses += [peer.step(i) for i in range(1, 3)]
    with open("/proc/self/clear_refs", "w", encoding="utf-8") as file:
        file.write("5")  # the peak from here on
    peer.step(3)
    return peer, {**first, "losses": losses, "peak_bytes": memory("VmHWM") - before}


def serve_rank(make_peer):
    """Measures the first steps of `make_peer(request)`, whose steps then answer requests."""
    with open(sys.argv[1], encoding="utf-8") as file:
        request = json.load(file)
    torch.set_num_threads(request["threads"])
    dist.init_process_group("gloo")
    dist.all_reduce(torch.zeros(1))
    before = memory("VmRSS")
    serve(lambda: begin(make_peer(request), before), run)
    dist.destroy_process_group()
