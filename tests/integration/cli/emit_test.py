"""`strata emit`: a graph as a Python program gives the same bits in PyTorch as in Strata's executor.

    emit_test.py STRATA
"""

import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import torch_python  # noqa: E402

torch_python.need()
import torch  # noqa: E402

CONFIG = """\
model = "{model}"
dim = 32
n_layers = 2
n_heads = 4
vocab_size = 64
seq_len = 16
batch_size = 2
steps = 1
"""
EXPERTS = """\
n_dense_layers = 1
hidden_dim = 48
mla.kv_lora_rank = 16
mla.qk_nope_head_dim = 8
mla.qk_rope_head_dim = 8
mla.v_head_dim = 8
moe.num_experts = 4
moe.top_k = 2
moe.moe_hidden_dim = 16
moe.num_shared_experts = 1
"""


class EmitTest(unittest.TestCase):
    strata = ""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def run_command(self, *command, code=0):
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=120, check=False,
                              env={**os.environ, "OMP_NUM_THREADS": "1"})
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout + done.stderr

    def train(self, model, width, *options):
        with open(os.path.join(self.folder, "config.toml"), "w", encoding="utf-8") as file:
            file.write(CONFIG.format(model=model) + width + "\n")
        self.run_command(self.strata, "train", "config.toml", "--trace", "t.strata", "--dump-inputs", "in.safetensors",
                         "--passes", "dce,canonicalize", "--overwrite", *options)

    def check_bits(self, graph, folder):
        """The program of a graph gives what the executor gives."""
        ref = f"t.strata#graph={graph}"
        self.run_command(self.strata, "emit", ref, "-o", folder)
        self.run_command(sys.executable, f"{folder}/run.py", "in.safetensors", "python.safetensors")
        self.run_command(self.strata, "run", ref, "--inputs", "in.safetensors", "--outputs", "executor.safetensors")
        sys.path.insert(0, os.path.join(self.folder, folder))
        for module in ("run", "graph"):
            sys.modules.pop(module, None)
            self.addCleanup(sys.modules.pop, module, None)
        import run
        first, second = (run.load(os.path.join(self.folder, f"{name}.safetensors"))
                         for name in ("python", "executor"))
        sys.path.pop(0)
        # An optimizer returns the norm alone; parameters are written in place.
        self.assertGreater(len(first), 10 if graph == "step" else 0)
        for name, tensor in first.items():
            self.assertTrue(torch.equal(tensor, second[name]), name)

    def test_graphs_of_each_family_have_the_bits_of_the_executor(self):
        dynamic = ["--compile.symbolic_dims", "batch_and_seq"]
        for i, (model, width, options) in enumerate((
                ("llama3", "multiple_of = 8", []), ("qwen3", "hidden_dim = 48", []), ("deepseek_v3", EXPERTS, []),
                ("llama3", "multiple_of = 8", dynamic))):
            self.train(model, width, *options)
            for graph in ("step", "optimizer"):
                with self.subTest(model=model, graph=graph, options=options):
                    self.check_bits(graph, f"{i}-{graph}")

    def emit_doubling(self):
        """A program that doubles its input, in the folder `out`."""
        with open(os.path.join(self.folder, "g.txt"), "w", encoding="utf-8") as file:
            file.write("graph g\n  x = placeholder : f32[4][1]cpu\n  y = aten.mul.Tensor(x, 2) : f32[4][1]cpu\n"
                       "  s = aten.sum.default(y) : f32[][]cpu\n  output([s])\n")
        self.run_command(self.strata, "emit", "g.txt", "-o", "out")
        header = json.dumps({"x": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}}).encode()
        with open(os.path.join(self.folder, "in.safetensors"), "wb") as file:
            file.write(struct.pack("<Q", len(header)) + header + struct.pack("<4f", 1, 2, 3, 4))

    def profiled(self):
        """What the program prints, and the names of what a profiled run measured."""
        text = self.run_command(sys.executable, "out/run.py", "in.safetensors", "--profile", "trace.json")
        with open(os.path.join(self.folder, "trace.json"), encoding="utf-8") as file:
            return text, [event.get("name") for event in json.load(file)["traceEvents"]]

    def test_cc_1_a_profiled_run_has_a_range_for_each_node_and_the_same_results(self):
        self.emit_doubling()
        with open(os.path.join(self.folder, "out", "graph.py"), encoding="utf-8") as file:
            self.assertNotIn("profiler", file.read())
        plain = self.run_command(sys.executable, "out/run.py", "in.safetensors")
        text, names = self.profiled()
        for printed in (plain, text):
            self.assertTrue(printed.startswith("s = 20.0\n"), printed)
        for label in ("y: aten.mul.Tensor", "s: aten.sum.default"):
            self.assertEqual(names.count(label), 1, names)

    def test_cc_3_an_edited_program_is_what_runs_and_what_is_profiled(self):
        self.emit_doubling()
        path = os.path.join(self.folder, "out", "graph.py")
        with open(path, encoding="utf-8") as file:
            source = file.read()
        with open(path, "w", encoding="utf-8") as file:
            file.write(source.replace("(x, 2)", "(x, 4)"))
        for printed in (self.run_command(sys.executable, "out/run.py", "in.safetensors"), self.profiled()[0]):
            self.assertTrue(printed.startswith("s = 40.0\n"), printed)

    def test_ranges_say_where_a_node_comes_from(self):
        self.train("llama3", "multiple_of = 8")
        self.run_command(self.strata, "emit", "t.strata#graph=step", "-o", "out")
        _, names = self.profiled()
        self.assertTrue(any(re.fullmatch(r"mm: aten\.mm\.default \(\S+\.cc:\d+\)", name or "") for name in names))

    def test_what_pytorch_lacks_is_refused(self):
        with open(os.path.join(self.folder, "g.txt"), "w", encoding="utf-8") as file:
            file.write("graph g\n  x = placeholder : f32[4][1]cpu\n"
                       "  y = strata.axis_shard.default(x, 0, 'tp', 2) : f32[2][1]cpu\n  output([y])\n")
        text = self.run_command(self.strata, "emit", "g.txt", "-o", "out", code=2)
        self.assertIn("y calls strata.axis_shard.default, which PyTorch does not have", text)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "out")))
        self.assertIn("-o is missing", self.run_command(self.strata, "emit", "g.txt", code=2))

    def test_inputs_that_are_missing_are_named(self):
        with open(os.path.join(self.folder, "g.txt"), "w", encoding="utf-8") as file:
            file.write("graph g\n  x = placeholder : f32[4][1]cpu\n  y = aten.neg.default(x) : f32[4][1]cpu\n"
                       "  output([y])\n")
        self.run_command(self.strata, "emit", "g.txt", "-o", "out")
        with open(os.path.join(self.folder, "empty.safetensors"), "wb") as file:
            file.write((2).to_bytes(8, "little") + b"{}")
        text = self.run_command(sys.executable, "out/run.py", "empty.safetensors", code=1)
        self.assertIn("lacks inputs of the graph: x", text)

    def test_inputs_that_are_damaged_or_of_another_graph_give_a_line(self):
        self.emit_doubling()
        with open(os.path.join(self.folder, "in.safetensors"), "rb") as file:
            whole = file.read()
        for name, data, why in (
                ("empty", b"", "not a safetensors file"),
                ("short", whole[:6], "not a safetensors file"),
                ("header", whole[:30], "not a safetensors file"),
                ("cut", whole[:-4], "damaged: x has not"),
                ("text", b"tokens: 1 2 3 4 5\n", "not a safetensors file"),
                ("list", (2).to_bytes(8, "little") + b"[]", "not a safetensors file"),
                ("number", whole.replace(b'"F32"', b'"Q32"'), "damaged: x has not"),
                ("sizes", whole.replace(b"[4]", b"[5]"), "damaged: x has not"),
                ("rank", whole.replace(b"[4]", b"[ ]").replace(b"16]", b" 4]"),
                 "is of another graph: x is f32[], not f32[4]"),
                ("type", whole.replace(b'"F32"', b'"I32"'), "is of another graph: x is i32[4], not f32[4]")):
            with self.subTest(name):
                with open(os.path.join(self.folder, name), "wb") as file:
                    file.write(data)
                text = self.run_command(sys.executable, "out/run.py", name, code=1)
                self.assertNotIn("Traceback", text)
                line = text.splitlines()[-1]  # PyTorch may warn before
                self.assertTrue(line.startswith(name), line)
                self.assertIn(why, line)
        self.assertIn("none: cannot be read", self.run_command(sys.executable, "out/run.py", "none", code=1))


if __name__ == "__main__":
    EmitTest.strata = os.path.abspath(sys.argv.pop(1))
    unittest.main()
