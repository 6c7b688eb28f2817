"""Each layout of ranks trains each model as one rank does.

    parallel_layouts_test.py STRATA

The layouts have the same batches and initial values, and add in another order: losses and norms differ by units in the
last place of fp32.
"""

import json
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))

from strata_case import StrataCase, main  # noqa: E402

COMMON = "dim=32 n_layers=2 n_heads=8 vocab_size=64 seq_len=16 steps=6 seed=3 optimizer.lr=1e-3"
EXPERTS = "moe.top_k=2 moe.moe_hidden_dim=16"
MODELS = {
    "llama3": "model=llama3 n_kv_heads=4 hidden_dim=64",
    "qwen3": "model=qwen3 n_kv_heads=4 head_dim=8 hidden_dim=64",
    "qwen3 with experts": f"model=qwen3 n_kv_heads=4 head_dim=8 moe.num_experts=4 {EXPERTS}",
    "deepseek_v3": f"model=deepseek_v3 hidden_dim=32 n_dense_layers=1 moe.num_experts=8 moe.num_shared_experts=1 {EXPERTS} "
                   "mla.kv_lora_rank=16 mla.qk_nope_head_dim=8 mla.qk_rope_head_dim=8 mla.v_head_dim=8",
}
DENSE = ["shard=2", "shard=4", "shard=8", "tensor=2", "tensor=4", "context=2", "shard=2 tensor=2", "replicate=2",
         "replicate=2 shard=2", "shard=2 context=2"]
SPARSE = ["shard=2 expert=2", "shard=4 expert=4", "shard=4 expert=2", "shard=2 tensor=2 expert=2"]
FIELDS = {"replicate": "data_parallel_replicate", "shard": "data_parallel_shard", "tensor": "tensor_parallel",
          "context": "context_parallel", "expert": "expert_parallel"}
BATCH = 8


class ParallelLayoutsTest(StrataCase):
    def train(self, model, layout):
        """(loss, gradient norm) of each step."""
        self.write("config.toml", "")
        degrees = {axis: int(size) for axis, size in (word.split("=") for word in layout.split())}
        settings = [*model.split(), *COMMON.split()]
        settings += [f"parallelism.{FIELDS[axis]}_degree={size}" for axis, size in degrees.items()]
        settings.append(f"batch_size={BATCH // degrees.get('shard', 1) // degrees.get('replicate', 1)}")
        done = self.run_strata("train", "config.toml", "--threads", "1", "--metrics", "m.jsonl", "--overwrite",
                               "--passes", "dce,canonicalize", *(word for setting in settings for word in ("--set", setting)))
        self.assertEqual(done.returncode, 0, done.stderr)
        return [(step["loss"], step["grad_norm"]) for step in map(json.loads, self.read("m.jsonl").splitlines())]

    def test_losses_and_norms_are_those_of_one_rank(self):
        for name, model in MODELS.items():
            one = self.train(model, "")
            self.assertEqual(len(one), 6)
            self.assertLess(one[-1][0], one[0][0])
            for layout in DENSE + (SPARSE if "moe" in model else []):
                with self.subTest(model=name, layout=layout):
                    ranks = self.train(model, layout)
                    self.assertEqual(len(ranks), len(one))
                    # A loss near 4 has units of 4.8e-7, a norm near 1 of 1.2e-7.
                    self.assertLess(max(abs(a[0] - b[0]) for a, b in zip(one, ranks)), 2e-6)
                    self.assertLess(max(abs(a[1] - b[1]) for a, b in zip(one, ranks)), 1e-6)


if __name__ == "__main__":
    main()
