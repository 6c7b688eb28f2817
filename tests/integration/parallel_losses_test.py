"""Trainings on several ranks lose what PyTorch loses with FSDP2, HSDP and tensor parallelism over Gloo.

    parallel_losses_test.py STRATA

tests/data/parallel/losses.json has PyTorch's losses and gradient norms. Where .venv-bench has PyTorch, it trains again.
"""

import json
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))

from strata_case import StrataCase, main  # noqa: E402

DATA = os.path.join(ROOT, "tests", "data", "parallel")
FIXTURE = os.path.join(ROOT, "tests", "data", "numerics", "llama3_tiny")
PYTHON = os.path.join(ROOT, ".venv-bench", "bin", "python")
FIELDS = {
    "dp_replicate": "parallelism.data_parallel_replicate_degree",
    "fsdp": "parallelism.data_parallel_shard_degree",
    "tp": "parallelism.tensor_parallel_degree",
}
BATCH = 4


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def floor(layouts, column):
    """How far PyTorch's layouts are apart at most, in losses (0) or norms (1): what rounding in another order does."""
    return max(max(values) - min(values) for step in zip(*layouts.values()) for values in [[pair[column] for pair in step]])


class ParallelLossesTest(StrataCase):
    def losses(self, layout, *options):
        """[[loss, gradient norm] of each step] of `fsdp=2,tp=2`."""
        sizes = dict(axis.split("=") for axis in layout.split(","))
        data_ranks = int(sizes.get("dp_replicate", 1)) * int(sizes.get("fsdp", 1))
        settings = [f"{FIELDS[axis]}={size}" for axis, size in sizes.items()]
        settings += [f"batch_size={BATCH // data_ranks}", "steps=10"]
        done = self.run_strata("train", os.path.join(FIXTURE, "config.json"), "--threads", "1", "--metrics", "m.jsonl",
                               "--init", os.path.join(FIXTURE, "init.safetensors"),
                               "--tokens", os.path.join(FIXTURE, "tokens.safetensors"),
                               *(word for setting in settings for word in ("--set", setting)), *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [[step["loss"], step["grad_norm"]] for step in map(json.loads, self.read("m.jsonl").splitlines())]

    def distance(self, ours, theirs, column):
        self.assertEqual(len(ours), len(theirs))
        return max(abs(a[column] - b[column]) for a, b in zip(ours, theirs))

    def test_losses_differ_as_little_as_those_of_pytorchs_layouts(self):
        layouts = load(os.path.join(DATA, "losses.json"))
        self.assertEqual(len(layouts), 5)
        for layout, theirs in layouts.items():
            with self.subTest(layout):
                ours = self.losses(layout)
                for column in (0, 1):
                    self.assertLessEqual(self.distance(ours, theirs, column), 2 * floor(layouts, column))

    def test_the_comparison_notices_a_small_mistake(self):
        layouts = load(os.path.join(DATA, "losses.json"))
        ours = self.losses("fsdp=2", "--set", "norm_eps=1e-6")
        self.assertGreater(self.distance(ours, layouts["fsdp=2"], 0), 2 * floor(layouts, 0))

    def test_pytorch_gives_these_losses(self):
        if not os.path.exists(PYTHON):
            self.skipTest("no PyTorch: ./dev setup bench")
        done = subprocess.run([PYTHON, "-B", os.path.join(DATA, "make_losses.py"), self.path("losses.json")],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        stored = load(os.path.join(DATA, "losses.json"))
        for layout, steps in load(self.path("losses.json")).items():
            for column in (0, 1):  # another processor rounds otherwise
                self.assertLessEqual(self.distance(steps, stored[layout], column), 2 * floor(stored, column))


if __name__ == "__main__":
    main()
