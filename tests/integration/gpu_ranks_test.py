"""Ranks that have GPUs and communicate by NCCL train as one GPU does.

    gpu_ranks_test.py STRATA

Prints the reason and exits 77 if there are fewer than two GPUs.
"""

import json
import os
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))

from strata_case import StrataCase, main, sets  # noqa: E402

DEMO = os.path.join(ROOT, "configs", "demo_llama3.toml")
LAYOUTS = {
    "sharded": sets("parallelism.data_parallel_shard_degree=2", "batch_size=4"),
    "replicated": sets("parallelism.data_parallel_replicate_degree=2", "batch_size=4"),
    "tensor parallel": sets("parallelism.tensor_parallel_degree=2"),
    "pipeline": sets("parallelism.pipeline_parallel_degree=2", "parallelism.pipeline_parallel_microbatch_size=4"),
}


def count_gpus():
    if shutil.which("nvidia-smi") is None:
        return 0
    listed = subprocess.run(["nvidia-smi", "-L"], text=True, capture_output=True, check=False)
    return listed.stdout.count("GPU ")


class GpuRanksTest(StrataCase):
    def losses(self, *words):
        done = self.run_strata("train", DEMO, *sets("device=cuda"), *words, "--metrics", "metrics.jsonl", "--overwrite")
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line)["loss"] for line in self.read("metrics.jsonl").decode().splitlines()]

    def test_two_gpus_lose_what_one_loses(self):
        one = self.losses()
        for name, layout in LAYOUTS.items():
            with self.subTest(name):
                two = self.losses(*layout, "--nproc", "2")
                self.assertEqual(len(two), len(one))
                for loss, expected in zip(two, one):
                    self.assertAlmostEqual(loss, expected, delta=1e-3 * expected)


if __name__ == "__main__":
    if count_gpus() < 2:
        print("skipped: fewer than two GPUs")
        sys.exit(77)
    main()
