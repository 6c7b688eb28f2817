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
from emit_graphs import DRAWS, NORM  # noqa: E402
from tensor_files import write_tensors  # noqa: E402

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
# A body that doubles what it takes, called through PyTorch's higher-order operator.
NESTED = """\
class <lambda>(torch.nn.Module):
    def forward(self, x):
        arg0_1: "f32[2][1]cpu";

        arg0_1, = fx_pytree.tree_flatten_spec([x], self._in_spec)
        _tensor_constant0: "f32[2][1]cpu" = self._tensor_constant0
        subgraph_0 = self.subgraph_0
        invoke_subgraph = torch.ops.higher_order.invoke_subgraph(subgraph_0, 'subgraph_0', arg0_1)
        y: "f32[2][1]cpu" = invoke_subgraph[0]
        sums: "f32[2][1]cpu" = torch.ops.aten.mul.Tensor(y, _tensor_constant0)
        s: "f32[][]cpu" = torch.ops.aten.sum.default(sums)
        return pytree.tree_unflatten([s], self._out_spec)

    class subgraph_0(torch.nn.Module):
        def forward(self, arg0_1: "f32[2][1]cpu"):
            double: "f32[2][1]cpu" = torch.ops.aten.mul.Tensor(arg0_1, 2)
            return (double,)
"""


# A loop whose body has a constant, and a number among the inputs.
LOOP = """\
class GraphModule(torch.nn.Module):
    def forward(self, n: "Sym(2*s0)", i: "i64[][]cpu", x: "f32[s0][1]cpu"):
        less_0 = self.less_0
        step_0 = self.step_0
        while_loop = torch.ops.higher_order.while_loop(less_0, step_0, (i, x), ())
        j: "i64[][]cpu" = while_loop[0]
        y: "f32[s0][1]cpu" = while_loop[1]
        z: "f32[2*s0][1]cpu" = torch.ops.aten.full.default([n], 3.0)
        return (j, y, z)

    class less_0(torch.nn.Module):
        def forward(self, i: "i64[][]cpu", x: "f32[s0][1]cpu"):
            less: "b8[][]cpu" = torch.ops.aten.lt.Scalar(i, 3)
            return less

    class step_0(torch.nn.Module):
        def forward(self, i: "i64[][]cpu", x: "f32[s0][1]cpu"):
            _tensor_constant0: "f32[][]cpu" = self._tensor_constant0
            next: "i64[][]cpu" = torch.ops.aten.add.Tensor(i, 1)
            more: "f32[s0][1]cpu" = torch.ops.aten.mul.Tensor(x, _tensor_constant0)
            return (next, more)
"""

SEEDED = """graph g
  x = placeholder : f32[4][1]cpu
  seeds = prims.inductor_seeds.default(3, device('cpu')) : i64[3][1]cpu
  s0 = prims.inductor_lookup_seed.default(seeds, 0) : i64[][]cpu
  uniform = prims.inductor_random.default([4], s0, 'rand') : f32[4][1]cpu
  s1 = prims.inductor_lookup_seed.default(seeds, 1) : i64[][]cpu
  normal = prims.inductor_random.default([20], s1, 'randn') : f32[20][1]cpu
  s2 = prims.inductor_lookup_seed.default(seeds, 2) : i64[][]cpu
  integers = prims.inductor_randint.default(2, 90, [5], s2) : i64[5][1]cpu
  y = aten.rand.default([4], dtype=torch.float32, device=device('cpu')) : f32[4][1]cpu
  output([seeds, uniform, normal, integers, y])
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

    def train(self, model, width, *options, dump=True, passes="dce,canonicalize"):
        with open(os.path.join(self.folder, "config.toml"), "w", encoding="utf-8") as file:
            file.write(CONFIG.format(model=model) + width + "\n")
        self.run_command(self.strata, "train", "config.toml", "--trace", "t.strata",
                         *(["--dump-inputs", "in.safetensors"] if dump else []), "--passes", passes, "--overwrite",
                         *options)

    def both_results(self, graph, folder, ref=None):
        """What the program of a graph gives in PyTorch, and what the executor gives."""
        ref = ref or f"t.strata#graph={graph}"
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
        return first, second

    def check_bits(self, graph, folder, least=None):
        first, second = self.both_results(graph, folder)
        # Also parameters and states, which an optimizer writes in place.
        self.assertGreater(len(first), least if least is not None else 10)
        self.assertEqual(set(first), set(second))
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

    def test_statistics_that_a_norm_writes_are_among_the_results(self):
        with open(os.path.join(self.folder, "g.txt"), "w", encoding="utf-8") as file:
            file.write(NORM)
        write_tensors(os.path.join(self.folder, "in.safetensors"), {
            "x": ("F32", [4, 2], struct.pack("<8f", *range(8))),
            "mean": ("F32", [2], struct.pack("<2f", 0, 0)), "var": ("F32", [2], struct.pack("<2f", 1, 1))})
        first, second = self.both_results("g", "norm", "g.txt")
        self.assertEqual(set(first), {"y", "mean", "var"})
        for name, tensor in first.items():
            self.assertTrue(torch.equal(tensor, second[name]), name)

    def test_a_loop_runs_its_body_with_constants_and_numbers(self):
        with open(os.path.join(self.folder, "g.txt"), "w", encoding="utf-8") as file:
            file.write(LOOP)
        write_tensors(os.path.join(self.folder, "in.safetensors"), {
            "i": ("I64", [], struct.pack("<q", 0)), "x": ("F32", [2], struct.pack("<2f", 1, 2)),
            "step_0._tensor_constant0": ("F32", [], struct.pack("<f", 0.1))})
        first, second = self.both_results("g", "loop", "g.txt")
        self.assertEqual(set(first), {"j", "y", "z"})
        self.assertEqual(list(first["z"].shape), [4])
        self.assertEqual(first["j"].item(), 3)
        for name, tensor in first.items():
            self.assertTrue(torch.equal(tensor, second[name]), name)
        self.assertIn("while_loop calls higher_order.while_loop, which PyTorch has in Python only: g: take --lang python",
                      self.run_command(self.strata, "emit", "g.txt", "--lang", "cpp", "-o", "cpp", code=2))

    def test_random_numbers_are_those_of_the_executor(self):
        with open(os.path.join(self.folder, "g.txt"), "w", encoding="utf-8") as file:
            file.write(DRAWS)
        write_tensors(os.path.join(self.folder, "in.safetensors"), {"x": ("F32", [64], struct.pack("<64f", *range(64)))})
        first, second = self.both_results("g", "draws", "g.txt")
        for name in ("y", "mask"):
            self.assertTrue(torch.equal(first[name], second[name]), name)

    def test_random_numbers_of_inductor_are_those_of_the_executor(self):
        with open(os.path.join(self.folder, "g.txt"), "w", encoding="utf-8") as file:
            file.write(SEEDED)
        write_tensors(os.path.join(self.folder, "in.safetensors"), {"x": ("F32", [4], struct.pack("<4f", 1, 2, 3, 4))})
        first, second = self.both_results("g", "seeded", "g.txt")
        self.assertEqual(set(first), {"seeds", "uniform", "normal", "integers", "y"})
        for name, tensor in first.items():
            self.assertTrue(torch.equal(tensor, second[name]), name)

    def test_operators_of_inductor_are_imported(self):
        self.emit_doubling("prims.fma.default(x, x, x)")
        self.assertTrue(self.run_command(sys.executable, "out/run.py", "in.safetensors").startswith("s = 40.0\n"))
        with open(os.path.join(self.folder, "g.txt"), "w", encoding="utf-8") as file:
            file.write("graph g\n  x = placeholder : f32[4][1]cpu\n  y = prims.unknown.default(x) : f32[4][1]cpu\n"
                       "  output([y])\n")
        self.assertIn("y calls prims.unknown.default, which PyTorch has in Python only: g: take --lang python",
                      self.run_command(self.strata, "emit", "g.txt", "--lang", "cpp", "-o", "cpp", code=2))

    def emit_doubling(self, call="aten.mul.Tensor(x, 2)"):
        """A program that doubles its input, in the folder `out`."""
        with open(os.path.join(self.folder, "g.txt"), "w", encoding="utf-8") as file:
            file.write(f"graph g\n  x = placeholder : f32[4][1]cpu\n  y = {call} : f32[4][1]cpu\n"
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

    def test_inputs_have_names_of_nodes_and_lie_in_memory_as_the_graph_says_and_outputs_may_be_none(self):
        with open(os.path.join(self.folder, "g.txt"), "w", encoding="utf-8") as file:
            file.write("graph g\n  row = placeholder : f32[4, 3][0, 1]cpu {+fqn='a.row'}\n"
                       "  columns = placeholder : f32[3, 4][1, 3]cpu\n"
                       "  y = aten.mul.Tensor(row, 2.0) : f32[4, 3][3, 1]cpu\n"
                       "  c = aten.clone(y) : f32[4, 3][3, 1]cpu\n"
                       "  memory = aten.as_strided.default(columns, [12], [1]) : f32[12][1]cpu\n"
                       "  output([None, c, None, memory])\n")
        write_tensors(os.path.join(self.folder, "in.safetensors"), {
            "row": ("F32", [4, 3], struct.pack("<3f", 1, 2, 3) * 4),
            "columns": ("F32", [3, 4], struct.pack("<12f", *range(12)))})
        first, second = self.both_results("g", "laid", ref="g.txt")
        self.assertEqual(sorted(first), ["c", "memory"])
        for name, tensor in first.items():
            self.assertTrue(torch.equal(tensor, second[name]), name)
        self.assertEqual(first["memory"].tolist(), [0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11])
        write_tensors(os.path.join(self.folder, "in.safetensors"), {
            "row": ("F32", [4, 3], struct.pack("<12f", *range(12))),
            "columns": ("F32", [3, 4], struct.pack("<12f", *range(12)))})
        self.assertIn("input row does not fit: graph g: it has different values where the graph takes one for all",
                      self.run_command(self.strata, "run", "g.txt", "--inputs", "in.safetensors", code=2))

    def test_a_graph_of_ranks_says_how_it_is_started(self):
        self.train("llama3", "multiple_of = 8", "--set", "parallelism.data_parallel_shard_degree=2")
        self.run_command(self.strata, "emit", "t.strata#graph=step", "-o", "out")
        self.assertIn("the graph is of 2 ranks: start it with torchrun --nproc-per-node 2 out/run.py",
                      self.run_command(sys.executable, "out/run.py", "in.safetensors", code=1))

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

    def test_ranks_in_cpp_and_offloaded_values_are_refused(self):
        for name, options, languages, why in (
                ("ranks", ["--set", "parallelism.data_parallel_shard_degree=2"], ["cpp"],
                 "all_gather_into_tensor is a collective, and a program in C++ has no other ranks: step"),
                ("offload", ["--compile.memory_policy", "sac_and_offload"], ["python", "cpp"],
                 "calls ao.offload.default, which PyTorch has in Python only: step")):
            self.train("llama3", "multiple_of = 8", *options, dump=False)
            for language in languages:
                with self.subTest(name, language=language):
                    text = self.run_command(self.strata, "emit", "t.strata#graph=step", "--lang", language, "-o", "out",
                                            code=2)
                    self.assertIn(why, text)
                    self.assertFalse(os.path.exists(os.path.join(self.folder, "out")))
            self.run_command(self.strata, "emit", "t.strata#graph=step,pass=canonicalize", "-o", name)

    def test_fused_and_regional_graphs_call_their_bodies(self):
        for name, passes in (("fused", "dce,canonicalize,fuse"),
                             ("regional", "dce,canonicalize,annotate-regions,compile-regions,fuse"),
                             ("standalone", "dce,canonicalize,compile-standalone,fuse")):
            with self.subTest(name):
                self.train("llama3", "multiple_of = 8", passes=passes)
                self.check_bits("step", name)
                with open(os.path.join(self.folder, name, "graph.py"), encoding="utf-8") as file:
                    self.assertIn("_run_body(", file.read())

    def test_flex_attention_is_that_of_pytorch_within_rounding(self):
        """Kernels sum scores in another order than PyTorch's matrix of all scores: a few rounding steps of float32
        (1.2e-7) of the largest element, with a reserve of ten."""
        with open(os.path.join(self.folder, "tokens.bin"), "wb") as file:  # documents of 9 tokens, uint16
            file.write(b"".join(struct.pack("<H", 0 if i % 9 == 8 else 1 + i % 61) for i in range(512)))
        documents = ["--set", "attn_mask_type=block_causal", "--set", "dataloader.dataset=tokens",
                     "--set", "dataloader.dataset_path=tokens.bin", "--set", "dataloader.end_of_document=0"]
        for name, options in (("window", ["--set", "flex.window=5"]), ("documents", documents),
                              ("scores", ["--set", "flex.alibi=true", "--set", "flex.soft_cap=20"])):
            with self.subTest(name):
                self.train("llama3", "multiple_of = 8", "--set", "attn_type=flex", *options,
                           passes="dce,canonicalize,fuse")
                first, second = self.both_results("step", name)
                self.assertGreater(len(first), 10)
                for key, tensor in first.items():
                    error = (tensor - second[key]).abs().max().item()
                    self.assertLessEqual(error, 2e-5 * second[key].abs().max().item(), key)
                self.assertIn("calls flex attention, which PyTorch has in Python only: step: take --lang python",
                              self.run_command(self.strata, "emit", "t.strata#graph=step", "--lang", "cpp", "-o", "cpp",
                                               code=2))

    def test_cc_2_a_program_that_was_loaded_runs_when_its_folder_is_gone(self):
        self.emit_doubling()
        script = ("import os, shutil, sys; sys.path.insert(0, 'out'); import run; shutil.rmtree('out');"
                  "sys.argv = ['run.py', 'in.safetensors', '--profile', 'trace.json']; run.main()")
        self.assertIn("s = 20.0", self.run_command(sys.executable, "-B", "-c", script))
        with open(os.path.join(self.folder, "trace.json"), encoding="utf-8") as file:
            self.assertIn("y: aten.mul.Tensor", file.read())

    def test_cc_4_a_graph_inside_is_in_the_same_file_and_is_called(self):
        """Also of a text of PyTorch, whose class has another name, arguments of its own, and a constant."""
        with open(os.path.join(self.folder, "g.txt"), "w", encoding="utf-8") as file:
            file.write(NESTED)
        with open(os.path.join(self.folder, "in.safetensors"), "wb") as file:
            header = {name: {"dtype": "F32", "shape": [2], "data_offsets": [8 * i, 8 * i + 8]}
                      for i, name in enumerate(("arg0_1", "_tensor_constant0"))}
            text = json.dumps(header).encode()
            file.write(struct.pack("<Q", len(text)) + text + struct.pack("<4f", 1, 2, 3, 4))
        self.run_command(self.strata, "emit", "g.txt", "-o", "out")
        self.assertEqual(sorted(os.listdir(os.path.join(self.folder, "out"))), ["graph.py", "run.py"])
        with open(os.path.join(self.folder, "out", "graph.py"), encoding="utf-8") as file:
            source = file.read()
        self.assertTrue(source.startswith("# The graph 'g.txt', written by strata emit."))
        self.assertEqual(source.count("def forward("), 2)
        text, names = self.profiled()
        self.assertIn("s = 22.0", text)
        self.assertTrue(any((name or "").startswith("double: aten.mul.Tensor") for name in names), names)

    def test_operators_that_this_pytorch_lacks_are_named(self):
        with open(os.path.join(self.folder, "g.txt"), "w", encoding="utf-8") as file:
            file.write("graph g\n  x = placeholder : f32[4][1]cpu\n  y = mine.magic.default(x) : f32[4][1]cpu\n"
                       "  output([y])\n")
        self.run_command(self.strata, "emit", "g.txt", "-o", "out")
        text = self.run_command(sys.executable, "out/run.py", "in.safetensors", code=1)
        self.assertIn("has no operator mine.magic.default: import the library that has it", text)
        self.assertNotIn("Traceback", text)

    def test_bf16_recomputation_experts_and_validation_have_the_bits_of_the_executor(self):
        for name, model, width, graph, options in (
                ("bf16", "llama3", "multiple_of = 8", "step", ["--set", "training.mixed_precision_param=bfloat16"]),
                ("full", "llama3", "multiple_of = 8", "step", ["--set", "compile.memory_policy=full"]),
                ("sizes", "deepseek_v3", EXPERTS, "step", ["--set", "moe.use_grouped_mm=false"]),
                ("validation", "llama3", "multiple_of = 8", "validate",
                 ["--set", "validator.enable=true", "--set", "validator.freq=1", "--set", "validator.steps=1"])):
            with self.subTest(name):
                self.train(model, width, *options)
                self.check_bits(graph, name, least=0 if graph == "validate" else 10)

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
