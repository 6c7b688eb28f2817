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
EXPERTS = [
    (1, 2, 1, 1, 2),
    (1, 4, 1, 1, 2),
    (1, 2, 1, 2, 2),
    (1, 2, 1, 2, 4),
    (1, 2, 2, 1, 2),
    (1, 2, 2, 1, 4),
    (1, 2, 2, 2, 2),
    (1, 2, 2, 2, 8),
    (1, 1, 1, 4, 2),  # half of the ranks of tp share the experts
    (1, 6, 1, 1, 2),  # three ranks divide no dimension
    (1, 4, 4, 1, 2),  # more ranks than rows of a parameter
]


def policy(name, *more):
    return [word for item in (f"memory_policy={name}", *more) for word in ("--set", f"compile.{item}")]


# What saves memory, with the passes that it inserts; first, nothing.
POLICIES = [
    ([], []),
    (policy("default"), ["tag-memory", "recompute"]),
    (policy("eager"), ["tag-memory", "recompute"]),
    (policy("full"), ["tag-memory", "recompute"]),
    (policy("min_cut"), ["tag-memory", "recompute"]),
    (policy("sac_and_offload"), ["tag-memory", "tag-offload", "recompute", "offload"]),
    (policy("budget", "memory_budget_bytes=120000000"), ["budget"]),
    (["--passes", "dce,canonicalize,reshard-after-forward,recompute,reorder-for-peak,split-step"],
     ["reshard-after-forward", "recompute", "reorder-for-peak", "split-step"]),
    (["--passes", "dce,canonicalize,tag-memory{policy=min_cut},tag-offload,offload,recompute,split-step"],
     ["tag-memory", "tag-offload", "recompute", "offload", "split-step"]),
]


class ProveLayoutsTest(StrataCase):
    def check(self, config, layout, options, names, lowered=True, command="trace"):
        trace = self.path("run.strata")
        sets = [f"parallelism.{name}_degree={degree}" for name, degree in zip(DEGREES, layout)]
        sets = [word for item in sets for word in ("--set", item)]
        output = ["-o", trace] if command == "trace" else ["--trace", trace, "--overwrite"]
        done = self.run_strata(command, config, *sets, *options, *output)
        self.assertEqual(done.returncode, 0, done.stderr)
        done = self.run_strata("prove", trace, "--json")
        self.assertEqual(done.returncode, 0, done.stdout)
        passes = json.loads(done.stdout)["passes"]
        for name in (*(["lower"] if lowered else []), *names):
            self.assertIn(name, [step["name"] for step in passes])
        for step in passes:
            self.assertEqual(step["status"], "proven", step)
            self.assertEqual(step["unknown_operators"], [], step)
        return passes

    def check_layouts(self, model, layouts):
        """Each layout, and each way to save memory, in turn."""
        config = self.write("config.toml", f'model = "{model}"\n' + TRAINING + MODELS[model])
        for i in range(max(len(layouts), len(POLICIES))):
            layout, (options, names) = layouts[i % len(layouts)], POLICIES[i % len(POLICIES)]
            with self.subTest(model=model, layout=layout, options=options):
                self.check(config, layout, options, names)

    def test_pipelines(self):
        """What cuts a step into stages, and what runs of them, on each layout of their ranks."""
        cases = [(model, layout, schedule) for model in MODELS
                 for layout, schedule in (((1, 1, 1, 1, 1), "1F1B"), ((1, 2, 1, 1, 1), "DualPipeV"),
                                          ((1, 2, 1, 2, 1), "ZBVZeroBubble"))]
        cases.append(("qwen3 tied", (2, 2, 1, 1, 1), "InterleavedZeroBubble"))
        passes = {"1F1B": [], "InterleavedZeroBubble": ["split-weight-gradients"],
                  "ZBVZeroBubble": ["split-weight-gradients"],
                  "DualPipeV": ["split-weight-gradients", "multiplex-overlaps"]}
        for case in cases:
            model, layout, schedule = case
            name = model.split()[0]
            config = self.write("config.toml", f'model = "{name}"\n' + TRAINING.replace("n_layers = 2", "n_layers = 4") +
                                ("enable_weight_tying = true\n" if "tied" in model else "") + MODELS[name])
            options = [word for item in ("pipeline_parallel_degree=2", f"pipeline_parallel_schedule={schedule}",
                                         "num_pp_microbatches=4") for word in ("--set", f"parallelism.{item}")]
            with self.subTest(case=case):
                self.check(config, layout, options, ["split-backward", *passes[schedule]],
                           lowered=layout != (1, 1, 1, 1, 1), command="train")

    def test_pv_26_llama3(self):
        self.check_layouts("llama3", LAYOUTS)

    def test_pv_26_qwen3(self):
        self.check_layouts("qwen3", LAYOUTS[::-1])

    def test_pv_26_deepseek_v3(self):
        self.check_layouts("deepseek_v3", EXPERTS + LAYOUTS)

    def test_experts_in_bf16(self):
        """Casts stand between the exchanges of rows and what else becomes of them."""
        config = self.write("config.toml", 'model = "deepseek_v3"\n' + TRAINING + MODELS["deepseek_v3"])
        for layout in EXPERTS[2:4] + EXPERTS[5:]:
            with self.subTest(layout=layout):
                self.check(config, layout, ["--set", "training.mixed_precision_param=bfloat16"], [])

    def test_chunks_of_experts(self):
        """What is joined from chunks on several ranks is what it was, in any order of the chunks."""
        config = self.write("config.toml", 'model = "deepseek_v3"\n' + TRAINING + MODELS["deepseek_v3"])
        for layout, *more in ([(1, 2, 1, 1, 2)], [(1, 4, 1, 1, 2), "topology=h100"],
                              [(1, 2, 1, 1, 2), "module_fqn=layers.*.moe", "topology=h100"]):
            options = [word for item in ("enabled=true", *more) for word in ("--set", f"compile.ep_overlap.{item}")]
            with self.subTest(layout=layout, options=options):
                self.check(config, layout, options, ["ep-chunk", "ep-overlap"])

    def test_flex_attention(self):
        """Bodies that ranks share heads of, and one that computes with the number of a head."""
        for model, body in (("llama3", "flex.window=5"), ("deepseek_v3", "flex.alibi=true"),
                            ("qwen3", "flex.soft_cap=20")):
            config = self.write("config.toml", f'model = "{model}"\n' + TRAINING + MODELS[model])
            options = [word for item in ("attn_type=flex", "flex.block_size=4", body) for word in ("--set", item)]
            for layout in ((1, 2, 1, 2, 1), (1, 1, 2, 1, 1)):
                with self.subTest(model=model, layout=layout):
                    self.check(config, layout, options, [])

    def test_graphs_for_a_gpu(self):
        """Kernels and optimizers that only GPUs have; bf16 has flash attention where ranks have whole sequences. Each model
        has each layout and both types, each layout both types."""
        layouts = [(1, 2, 1, 1, 1), (1, 2, 1, 2, 1), (1, 1, 2, 1, 1), (1, 4, 1, 1, 2)]
        for m, model in enumerate(MODELS):
            config = self.write("config.toml", f'model = "{model}"\n' + TRAINING + MODELS[model])
            for n, layout in enumerate(layouts if model == "deepseek_v3" else layouts[:3]):
                dtype = ("float32", "bfloat16")[(m + n) % 2]
                with self.subTest(model=model, layout=layout, dtype=dtype):
                    self.check(config, layout, ["--gpu", "9.0", "--set", f"training.mixed_precision_param={dtype}"], [])

    def test_pv_64_large_models(self):
        """Models and meshes that are proven on reduced sizes, with one layer of each kind."""
        for config, layout, layers in (("llama3/405b", (1, 64, 1, 8, 1), 126), ("deepseek_v3/671b", (1, 64, 1, 1, 32), 61)):
            with self.subTest(config=config):
                passes = self.check(os.path.join(ROOT, "configs", config + ".toml"), layout, [], [])
                step = [p for p in passes if p["graph"] == "step" and p["values"] > 0]
                self.assertTrue(step)
                for proof in step:
                    evaluates_few = proof["unchanged"] > 0 and proof["layers"] == 0
                    if not evaluates_few:
                        self.assertEqual(proof["layers"], layers)
                        self.assertGreaterEqual(proof["layers_left_out"], layers - 4, proof["name"])
                    self.assertTrue(proof["reduced_sizes"] or evaluates_few, proof["name"])

    def test_a_bound_of_indices_is_the_size_of_what_they_index(self):
        """Its rows of the vocabulary are as many as the model is wide, and as a rank has tokens."""
        self.check(os.path.join(ROOT, "configs", "llama3", "debugmodel.toml"), (1, 16, 1, 8, 1), [], [])


if __name__ == "__main__":
    main()
