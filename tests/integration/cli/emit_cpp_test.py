"""`strata emit --lang cpp`: a graph as a C++ program gives the bits of Strata's executor, without Strata.

    emit_cpp_test.py STRATA
"""

import glob
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))

from emit_graphs import DRAWS, NORM  # noqa: E402
from strata_case import FolderCase, sets  # noqa: E402
from tensor_files import read_tensors, write_tensors  # noqa: E402

COMMON = """\
dim = 16
n_heads = 4
vocab_size = 24
seq_len = 6
batch_size = 2
steps = 1
"""
EXPERTS = """\
n_layers = 2
n_dense_layers = 1
hidden_dim = 24
mla.kv_lora_rank = 8
mla.qk_nope_head_dim = 4
mla.qk_rope_head_dim = 4
mla.v_head_dim = 4
moe.num_experts = 4
moe.top_k = 2
moe.moe_hidden_dim = 8
moe.num_shared_experts = 1
"""
FAMILIES = {"llama3": "n_layers = 1\nn_kv_heads = 2\nmultiple_of = 8\n",
            "qwen3": "n_layers = 1\nhidden_dim = 24\n", "deepseek_v3": EXPERTS}
# Words of C++ and of its environment, a module path that would go on in the next line.
HOSTILE = """\
graph step
  and = placeholder : f32[2, 3][3, 1]cpu
  linux = aten.neg.default(and) : f32[2, 3][3, 1]cpu {module=%"a.b\\\\"}
  (values, kernel_0) = aten.topk.default(linux, 2) as topk : (f32[2, 2][2, 1]cpu, i64[2, 2][2, 1]cpu)
  Tensor = aten.add.Tensor(values, kernel_0) : f32[2, 2][2, 1]cpu
  turned = aten.mul.Tensor(and, raw('(1-2j)')) : c64[2, 3][3, 1]cpu
  parts = aten.view_as_real.default(turned) : f32[2, 3, 2][6, 2, 1]cpu
  output([Tensor, values, parts])
"""
# A row for all, columns, an output None, a call without overload.
LAID = """\
graph g
  row = placeholder : f32[4, 3][0, 1]cpu {+fqn='a.row'}
  columns = placeholder : f32[3, 4][1, 3]cpu
  y = aten.mul.Tensor(row, 2.0) : f32[4, 3][3, 1]cpu
  c = aten.clone(y) : f32[4, 3][3, 1]cpu
  memory = aten.as_strided.default(columns, [12], [1]) : f32[12][1]cpu
  output([None, c, None, memory])
"""

# What Inductor's decompositions leave.
PRIMS = """\
graph g
  x = placeholder : f32[1, 1, 4, 4][16, 16, 4, 1]cpu
  rows = prims.iota.default(4, start=0, step=1, dtype=torch.int64, device=device('cpu'), requires_grad=False) : i64[4][1]cpu
  product = prims.fma.default(x, x, x) : f32[1, 1, 4, 4][16, 16, 4, 1]cpu
  (values, offsets) = prims._low_memory_max_pool_with_offsets.default(x, [2, 2], [2, 2], [0, 0], [1, 1], False) as pool : (f32[1, 1, 2, 2][4, 4, 2, 1]cpu, i8[1, 1, 2, 2][4, 4, 2, 1]cpu)
  indices = prims._low_memory_max_pool_offsets_to_indices.default(offsets, [2, 2], [4, 4], [2, 2], [0, 0], [1, 1]) : i64[1, 1, 2, 2][4, 4, 2, 1]cpu
  seeds = prims.inductor_seeds.default(2, device('cpu')) : i64[2][1]cpu
  seed = prims.inductor_lookup_seed.default(seeds, 1) : i64[]cpu
  noise = prims.inductor_random.default([4], seed, 'randn') : f32[4][1]cpu
  output([rows, product, values, indices, noise])
"""


class EmitCppTest(FolderCase):
    """The first program is built with its CMakeLists.txt; the others, whose sources but step.cpp are the same, from its
    objects."""

    strata = ""
    built = ""  # folder of the first program

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name

    def run_command(self, *command, status=0, **environment):
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=600, check=False,
                              env={**os.environ, "OMP_NUM_THREADS": "1", **environment})
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def torch(self):
        """Folder of LibTorch."""
        torch = glob.glob(os.path.join(ROOT, ".venv", "lib", "python3*", "site-packages", "torch"))
        if not torch or shutil.which("cmake") is None:
            self.skipTest("needs CMake and LibTorch in .venv")
        return torch[0]

    def build(self, folder):
        """Builds a program outside of Strata's tree, against LibTorch alone."""
        self.run_command("cmake", "-S", f"{folder}/program", "-B", f"{folder}/build", f"-DTORCH={self.torch()}")
        self.run_command("cmake", "--build", f"{folder}/build", "-j2")
        EmitCppTest.built = folder
        return self.path(f"{folder}/build/step")

    def build_as(self, folder, built):
        """Builds a program whose sources are those of one that is built, except step.cpp.

        LibTorch's headers of a tensor, which take most of its compilation, are precompiled.
        """
        folder = f"{folder}/program"
        libraries = [f"{self.torch()}/lib/lib{name}.so" for name in ("torch_cpu", "c10")]
        compile_command = ["c++", "-std=gnu++17", "-DNDEBUG", "-Winvalid-pch", "-isystem", f"{self.torch()}/include"]
        if not os.path.exists(self.path("tensor.h.gch")):
            self.write("tensor.h", "#include <ATen/core/Tensor.h>\n")
            self.run_command(*compile_command, "-x", "c++-header", "tensor.h", "-o", "tensor.h.gch")
        for name in sorted({*os.listdir(self.path(folder)), *os.listdir(self.path(f"{built}/program"))} - {"step.cpp"}):
            self.assertEqual(self.read(f"{folder}/{name}"), self.read(f"{built}/program/{name}"), name)
        self.run_command(*compile_command, "-include", "tensor.h", "-c", f"{folder}/step.cpp", "-o", "step.o")
        shared = [f"{built}/build/CMakeFiles/step.dir/{name}.cpp.o" for name in ("call", "main", "tensors")]
        self.run_command("c++", "step.o", *shared, *libraries, f"-Wl,-rpath,{self.torch()}/lib", "-o", "step")
        return self.path("step")

    def check_bits(self, ref, folder):
        """The program of a graph, in FOLDER/program, gives what the executor gives. Returns the results; the program is
        `step` of this test."""
        os.mkdir(self.path(folder))
        self.run_command(self.strata, "emit", ref, "--lang", "cpp", "-o", f"{folder}/program")
        self.step = self.build_as(folder, self.built) if self.built else self.build(folder)
        self.run_command(self.step, "in.safetensors", "program.safetensors")
        self.run_command(self.strata, "run", ref, "--inputs", "in.safetensors", "--outputs", "executor.safetensors",
                         "--threads", "1")
        program = self.tensors("program.safetensors")
        self.assertEqual(program, self.tensors("executor.safetensors"))
        return program

    def test_programs_of_each_family_have_the_bits_of_the_executor(self):
        """Fused graphs; data-dependent sizes, narrow types and recomputed results."""
        for name, family, graphs, settings in (
                *((family, family, ("step", "optimizer"), []) for family in FAMILIES),
                ("sizes", "deepseek_v3", ("step",), ["moe.use_grouped_mm=false"]),
                ("bf16", "deepseek_v3", ("step",), ["training.mixed_precision_param=bfloat16"]),
                ("full", "llama3", ("step",), ["compile.inductor_compilation=full"])):
            self.write("config.toml", f'model = "{family}"\n{COMMON}{FAMILIES[family]}')
            self.run_command(self.strata, "train", "config.toml", "--trace", f"{name}.strata", "--dump-inputs",
                             "in.safetensors", "--overwrite", *sets(*settings))
            for graph in graphs:
                with self.subTest(name=name, graph=graph):
                    results = self.check_bits(f"{name}.strata#graph={graph}", f"{name}-{graph}")
                    self.assertGreater(len(results), 10)
            if not settings:
                program = self.read(f"{name}-step/program/step.cpp").decode()
                self.assertIn("static std::vector<Tensor> kernel_0(", program)
                self.assertIn("// layers.0.attention.", program)

    def test_names_of_any_kind_build(self):
        self.write("g.txt", HOSTILE)
        header = json.dumps({"and": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}}).encode()
        self.write("in.safetensors", struct.pack("<Q", len(header)) + header + struct.pack("<6f", 1, -2, 3, -4, 5, -6))
        results = self.check_bits("g.txt", "hostile")
        self.assertEqual(struct.unpack("<4f", results["values"][2]), (2, -1, 6, 4))
        self.assertEqual(struct.unpack("<12f", results["parts"][2])[:4], (1, -2, -2, 4))
        self.check_damaged(self.step)

    def test_inputs_have_names_of_nodes_and_lie_in_memory_as_the_graph_says(self):
        self.write("g.txt", LAID)
        write_tensors(self.path("in.safetensors"), {
            "row": ("F32", [4, 3], struct.pack("<3f", 1, 2, 3) * 4),
            "columns": ("F32", [3, 4], struct.pack("<12f", *range(12)))})
        results = self.check_bits("g.txt", "laid")
        self.assertEqual(struct.unpack("<12f", results["memory"][2]), (0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11))
        self.assertEqual(struct.unpack("<12f", results["c"][2]), (2, 4, 6) * 4)

    def test_statistics_that_a_norm_writes_are_among_the_results(self):
        self.write("g.txt", NORM)
        write_tensors(self.path("in.safetensors"), {
            "x": ("F32", [4, 2], struct.pack("<8f", *range(8))),
            "mean": ("F32", [2], struct.pack("<2f", 0, 0)), "var": ("F32", [2], struct.pack("<2f", 1, 1))})
        self.assertEqual(set(self.check_bits("g.txt", "norm")), {"y", "mean", "var"})

    def test_random_numbers_are_those_of_the_executor(self):
        self.write("g.txt", DRAWS)
        write_tensors(self.path("in.safetensors"), {"x": ("F32", [64], struct.pack("<64f", *range(64)))})
        self.assertEqual(set(self.check_bits("g.txt", "draws")), {"y", "mask"})

    def test_casts_of_inductor_are_copies(self):
        self.write("g.txt", "graph g\n  x = placeholder : f32[4][1]cpu\n"
                            "  h = prims.convert_element_type.default(x, torch.bfloat16) : bf16[4][1]cpu\n"
                            "  y = prims.convert_element_type.default(h, torch.float32) : f32[4][1]cpu\n  output([y, h])\n")
        write_tensors(self.path("in.safetensors"), {"x": ("F32", [4], struct.pack("<4f", 1.001, 2, 3, 4.1))})
        self.assertEqual(set(self.check_bits("g.txt", "casts")), {"y", "h"})

    def test_operators_of_inductor_come_with_the_program(self):
        self.write("g.txt", PRIMS)
        write_tensors(self.path("in.safetensors"), {
            "x": ("F32", [1, 1, 4, 4], struct.pack("<16f", *(i * 7 % 11 for i in range(16))))})
        os.mkdir(self.path("prims"))
        self.run_command(self.strata, "emit", "g.txt", "--lang", "cpp", "-o", "prims/program")
        built = EmitCppTest.built
        step = self.build("prims")
        EmitCppTest.built = built  # this program has more sources than others
        self.run_command(step, "in.safetensors", "program.safetensors")
        self.run_command(self.strata, "run", "g.txt", "--inputs", "in.safetensors", "--outputs", "executor.safetensors",
                         "--threads", "1")
        results = self.tensors("program.safetensors")
        self.assertEqual(results, self.tensors("executor.safetensors"))
        self.assertEqual(set(results), {"rows", "product", "values", "indices", "noise"})

    def check_damaged(self, program):
        """Files that are not the inputs of the program of HOSTILE give a line each."""
        whole = self.read("in.safetensors")
        for name, data, why in (
                ("empty", b"", "not a safetensors file"),
                ("short", whole[:6], "not a safetensors file"),
                ("header", whole[:30], "not a safetensors file"),
                ("cut", whole[:-4], "damaged: and has not"),
                ("text", b"tokens: 1 2 3 4 5\n", "not a safetensors file"),
                ("number", whole.replace(b"[2, 3]", b"[2, x]"), "not a safetensors file"),
                ("sizes", whole.replace(b"[2, 3]", b"[3, 2]"), "is of another graph: and is Float [3, 2], not Float [2, 3]"),
                ("huge", whole.replace(b"[2, 3]", b"[999999999999999999,9]".ljust(6)), "not a safetensors file"),
                ("type", whole.replace(b'"F32"', b'"I32"'), "is of another graph: and is Int [2, 3], not Float [2, 3]")):
            with self.subTest(name):
                self.write(name, data)
                text = self.run_command(program, name, status=1)
                self.assertEqual(text.count("\n"), 1, text)
                self.assertTrue(text.startswith(name), text)
                self.assertIn(why, text)
        self.assertEqual(self.run_command(program, "none", status=1), "none: cannot be read\n")

    def tensors(self, name):
        """Name -> (dtype, shape, bytes)."""
        return read_tensors(self.path(name))

    def test_what_pytorch_lacks_is_refused(self):
        self.write("g.txt", "graph g\n  x = placeholder : f32[4][1]cpu\n"
                            "  y = strata.axis_shard.default(x, 0, 'tp', 2) : f32[2][1]cpu\n  output([y])\n")
        text = self.run_command(self.strata, "emit", "g.txt", "--lang", "cpp", "-o", "out", status=2)
        self.assertIn("y of g: PyTorch has no operator strata.axis_shard.default", text)
        self.assertFalse(os.path.exists(self.path("out")))


if __name__ == "__main__":
    EmitCppTest.strata = os.path.abspath(sys.argv.pop(1))
    unittest.main()
