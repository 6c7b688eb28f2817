"""The ranks of the graph of graph.py: `torchrun` starts a process for each of them.

A rank holds a part of a tensor. CUTS say which: (dimension, its size, number of ranks, distance of these ranks), one cut
after the other; a dimension that the ranks do not divide evenly is continued by zeros.
"""

import os
import sys

import torch
import torch.distributed as dist

GROUPS = {}  # name -> the ranks of the group that this process belongs to


def start(num_ranks, groups):
    """Joins the processes of the other ranks. `groups`: name -> lists of ranks."""
    if "RANK" not in os.environ or int(os.environ["WORLD_SIZE"]) != num_ranks:
        sys.exit(f"the graph is of {num_ranks} ranks: start it with torchrun --nproc-per-node {num_ranks} {sys.argv[0]} …")
    dist.init_process_group("gloo")
    for name, members in groups.items():
        for ranks in members:
            group = dist.new_group(ranks)
            if dist.get_rank() in ranks:
                GROUPS[name] = ranks
                torch._C._distributed_c10d._register_process_group(name, group)


def end():
    dist.barrier()
    dist.destroy_process_group()


def is_first():
    return dist.get_rank() == 0


def axis_index(axis):
    """strata.axis_index: the place of this rank in a group."""
    return torch.tensor(GROUPS[axis].index(dist.get_rank()))


def axis_shard(x, dim, axis, parts):
    """strata.axis_shard: the part of `x` that belongs to this rank."""
    return x.chunk(parts, dim)[GROUPS[axis].index(dist.get_rank())].clone()


def shard(whole, cuts):
    """What this rank holds of a tensor."""
    part = whole
    for dim, size, ranks, distance in cuts:
        chunk = -(-size // ranks)
        begin = min(dist.get_rank() // distance % ranks * chunk, size)
        end = min(begin + chunk, size)
        missing = list(part.shape)
        missing[dim] = chunk - (end - begin)
        part = torch.cat([part.narrow(dim, begin, end - begin), part.new_zeros(missing)], dim)
    return part.contiguous()


def gather(part, cuts):
    """The whole tensor, on rank 0; None on other ranks."""
    parts = [torch.empty_like(part) for _ in range(dist.get_world_size())] if is_first() else None
    dist.gather(part.contiguous(), parts)
    return join(parts, list(cuts), 0) if is_first() else None


def join(parts, cuts, rank):
    if not cuts:
        return parts[rank]
    dim, size, ranks, distance = cuts[0]
    return torch.cat([join(parts, cuts[1:], rank + i * distance) for i in range(ranks)], dim).narrow(dim, 0, size)
