"""Ways to compile a step change no bit: regions, the whole graph, products in parts.

    train_compile_test.py STRATA
"""

import os
import subprocess
import sys
import tempfile
import unittest

LLAMA = """\
model = "llama3"
dim = 32
n_layers = 2
n_heads = 4
n_kv_heads = 2
vocab_size = 64
multiple_of = 16
seq_len = 16
batch_size = 4
steps = 20
seed = 7
optimizer.lr = 3e-3
"""
EXPERTS = """\
model = "deepseek_v3"
dim = 32
n_layers = 2
n_dense_layers = 1
n_heads = 4
hidden_dim = 32
vocab_size = 64
seq_len = 16
batch_size = 4
steps = 20
seed = 7
mla.kv_lora_rank = 16
mla.qk_nope_head_dim = 8
mla.qk_rope_head_dim = 8
mla.v_head_dim = 8
moe.num_experts = 4
moe.top_k = 2
moe.moe_hidden_dim = 16
moe.num_shared_experts = 1
optimizer.lr = 3e-3
"""
QWEN = LLAMA.replace("llama3", "qwen3").replace("multiple_of = 16", "hidden_dim = 64")
FAMILIES = {"llama3": LLAMA, "qwen3": QWEN, "deepseek_v3": EXPERTS}
FLEX = LLAMA + 'attn_type = "flex"\n'


class CompileTest(unittest.TestCase):
    strata = ""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def train(self, config, *sets, trace=None):
        """Metrics and parameters after the training, as bytes."""
        with open(os.path.join(self.folder, "c.toml"), "w", encoding="utf-8") as file:
            file.write(config)
        command = [self.strata, "train", "c.toml", "--threads", "1", "--save", "w.safetensors", "--metrics", "m.jsonl",
                   "--overwrite"]
        for one in sets:
            command += ["--set", one]
        if trace:
            command += ["--trace", trace]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(os.path.join(self.folder, "w.safetensors"), "rb") as file:
            return file.read()

    def show(self, ref):
        done = subprocess.run([self.strata, "show", ref], cwd=self.folder, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_regions_and_the_whole_graph_train_the_same_bits(self):
        for name, config in FAMILIES.items():
            alone = self.train(config)
            for scope in ("regional", "full", "standalone"):
                with self.subTest(f"{name} {scope}"):
                    self.assertEqual(self.train(config, f"compile.inductor_compilation={scope}"), alone)

    def test_a_region_is_a_node_with_its_body(self):
        self.train(LLAMA, "compile.inductor_compilation=regional", "steps=2", trace="t.strata")
        text = self.show("t.strata#graph=step")
        self.assertIn("region=True", text)
        self.assertIn("graph region_0 body", text)
        self.assertIn("layers.1.ffn_norm", text[text.index("graph region_0 body"):])

    def test_flex_attention_is_a_region(self):
        alone = self.train(FLEX)
        self.assertEqual(self.train(FLEX, "compile.inductor_compilation=regional", trace="f.strata"), alone)
        bodies = self.show("f.strata#graph=step")
        bodies = bodies[bodies.index("graph region_0 body"):]
        self.assertIn("flex_attention", bodies)

    def test_products_in_parts_train_as_whole_ones(self):
        for name, config in FAMILIES.items():
            with self.subTest(name):
                sets = ("parallelism.tensor_parallel_degree=2",)
                alone = self.train(config, *sets)
                parts = self.train(config, *sets, "compile.enable_async_tensor_parallel=true", trace=f"{name}.strata")
                self.assertEqual(parts, alone)
                ls = subprocess.run([self.strata, "ls", f"{name}.strata"], cwd=self.folder, capture_output=True,
                                    text=True, check=True).stdout
                line = next(line for line in ls.splitlines() if " async-tensor-parallel " in line)
                self.assertNotIn("unchanged", line)


if __name__ == "__main__":
    CompileTest.strata = os.path.abspath(sys.argv.pop(1))
    unittest.main()
