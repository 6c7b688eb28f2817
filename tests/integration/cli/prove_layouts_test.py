"""Every pass over the graphs of parallel runs is proven, with a definition for each operator.

    prove_layouts_test.py STRATA
"""

import json
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))

from strata_case import StrataCase, main  # noqa: E402

TRAINING = """\
dim = 32
n_layers = 2
n_heads = 4
vocab_size = 48
steps = 1
seq_len = 16
batch_size = 2
"""
MODELS = {
    "llama3": "multiple_of = 16\n",
    "qwen3": "n_kv_heads = 4\nhead_dim = 8\nhidden_dim = 48\n",
    "deepseek_v3": """\
n_dense_layers = 1
hidden_dim = 48
[mla]
q_lora_rank = 0
kv_lora_rank = 12
qk_nope_head_dim = 8
qk_rope_head_dim = 4
v_head_dim = 8
mscale = 0.7
[moe]
num_experts = 8
top_k = 2
moe_hidden_dim = 16
num_shared_experts = 2
score_func = "softmax"
""",
}
DEGREES = ("data_parallel_replicate", "data_parallel_shard", "context_parallel", "tensor_parallel", "expert_parallel")
LAYOUTS = [
    (1, 4, 1, 1, 1),
    (2, 1, 1, 1, 1),
    (2, 2, 1, 1, 1),
    (1, 1, 1, 2, 1),
    (1, 2, 1, 2, 1),
    (1, 3, 1, 2, 1),
    (1, 2, 2, 1, 1),
    (1, 2, 2, 2, 1),
]
EXPERTS = [(1, 2, 1, 1, 2), (1, 4, 1, 1, 2), (1, 2, 1, 2, 2), (1, 2, 1, 2, 4), (1, 2, 2, 1, 2)]


class ProveLayoutsTest(StrataCase):
    def check_layouts(self, model, layouts):
        config = self.write("config.toml", f'model = "{model}"\n' + TRAINING + MODELS[model])
        for layout in layouts:
            with self.subTest(model=model, layout=layout):
                trace = self.path("run.strata")
                sets = [f"parallelism.{name}_degree={degree}" for name, degree in zip(DEGREES, layout)]
                options = [word for item in sets for word in ("--set", item)]
                done = self.run_strata("trace", config, *options, "-o", trace)
                self.assertEqual(done.returncode, 0, done.stderr)
                done = self.run_strata("prove", trace, "--json")
                self.assertEqual(done.returncode, 0, done.stdout)
                passes = json.loads(done.stdout)["passes"]
                self.assertIn("lower", [step["name"] for step in passes])
                for step in passes:
                    self.assertEqual((step["status"], step["unknown_operators"]), ("proven", []), step)

    def test_pv_26_llama3(self):
        self.check_layouts("llama3", LAYOUTS)

    def test_pv_26_qwen3(self):
        self.check_layouts("qwen3", LAYOUTS)

    def test_pv_26_deepseek_v3(self):
        self.check_layouts("deepseek_v3", LAYOUTS + EXPERTS)


if __name__ == "__main__":
    main()
