#!/usr/bin/env python3
"""Prints torch_schedules.txt: a digest of each schedule of torch.distributed.pipelining.

    python3 tests/data/pipeline/torch_schedules.py .venv/lib/python3.11/site-packages > torch_schedules.txt

A line is `KIND RANKS STAGES_PER_RANK MICROBATCHES DIGEST`: FNV-1a of the actions without idle slots, a line per rank.
Only PyTorch's generators run; its tensors are not needed, so that no library of a GPU is.

Of 1F1B the last rank is left out: PyTorch 2.11 prints its forwards one microbatch late (Schedule1F1B runs them right).
"""

import importlib.machinery
import sys
import types
from unittest.mock import MagicMock


class FakeTorch:
    """Gives a mock for every module of torch."""

    def find_spec(self, name, path=None, target=None):
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if name.split(".")[0] == "torch" else None

    def create_module(self, spec):
        module = MagicMock(name=spec.name)
        module.__path__, module.__spec__ = [], spec
        return module

    def exec_module(self, module):
        pass


def load(packages):
    path = f"{packages}/torch/distributed/pipelining/schedules.py"
    module = types.ModuleType("torch.distributed.pipelining.schedules")
    module.__package__ = "torch.distributed.pipelining"
    sys.meta_path.insert(0, FakeTorch())
    sys.modules[module.__name__] = module
    with open(path, encoding="utf-8") as file:
        exec(compile(file.read(), path, "exec"), module.__dict__)
    return module


class Stage:
    def __init__(self, rank, ranks, index, stages, mapping):
        self.group_rank, self.group_size, self.stage_index, self.num_stages = rank, ranks, index, stages
        self.is_first, self.is_last, self.has_backward = index == 0, index == stages - 1, True
        self.submod = self.group = None
        self.stage_index_to_group_rank = mapping


def orders(module, kind, ranks, per_rank, microbatches):
    stages = ranks * per_rank
    is_v = kind in ("ZBVZeroBubble", "DualPipeV")
    mapping = {s: (stages - 1 - s if is_v and s >= ranks else s % ranks) for s in range(stages)}
    rows = []
    module.generate_rank_to_stage_mapping = lambda *_, **__: {
        rank: [s for s in range(stages) if mapping[s] == rank] for rank in range(ranks)}
    schedule = getattr(module, "Schedule" + kind)
    made = schedule.__new__(schedule)
    made.pp_group_size, made.n_local_stages, made._num_stages, made.num_stages = ranks, per_rank, stages, stages
    made._n_microbatches, made.stage_index_to_group_rank = microbatches, mapping
    made.number_of_rounds = max(1, microbatches // ranks)
    made.microbatches_per_round = microbatches // made.number_of_rounds
    if per_rank == 1:
        by_rank = made._get_pipeline_order()
        return [[a for a in by_rank[r] if a is not None and a.computation_type.name != "REDUCE_GRAD"] for r in range(ranks)]
    for rank in range(ranks):
        made.rank = rank
        made._stages = [Stage(rank, ranks, s, stages, mapping) for s in range(stages) if mapping[s] == rank]
        rows.append([a for a in made._calculate_single_rank_operations(rank) if a is not None])
    return rows


def digest(text):
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return f"{value:016x}"


def sizes():
    for ranks in (1, 2, 3, 4, 6, 8):
        for microbatches in range(1, 17):
            yield "GPipe", ranks, 1, microbatches
            if microbatches >= ranks:
                yield "1F1B", ranks, 1, microbatches
            for per_rank in (2, 3):
                yield "LoopedBFS", ranks, per_rank, microbatches
                if microbatches % max(1, microbatches // ranks) == 0:
                    yield "Interleaved1F1B", ranks, per_rank, microbatches
                    yield "InterleavedZeroBubble", ranks, per_rank, microbatches
            yield "ZBVZeroBubble", ranks, 2, microbatches
            if microbatches >= 2 * ranks:
                yield "DualPipeV", ranks, 2, microbatches


def main():
    module = load(sys.argv[1])
    for kind, ranks, per_rank, microbatches in sizes():
        rows = orders(module, kind, ranks, per_rank, microbatches)
        if kind == "1F1B":
            rows = rows[:-1]
        text = "\n".join(" ".join(str(a) for a in row) for row in rows)
        print(kind, ranks, per_rank, microbatches, digest(text))


if __name__ == "__main__":
    main()
