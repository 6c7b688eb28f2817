"""Operators and models of users in shared libraries: the examples build as documented, and train as Strata's own do.

    own_libraries_test.py STRATA
"""

import glob
import os
import shutil
import subprocess
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))

from own_model_case import LOOP, OwnModelCase, draw  # noqa: E402
from tensor_files import read_tensors, write_tensors  # noqa: E402

# An operator of a library (docs/examples/own-operator), and what it consists of.
OWN_OPERATOR = """\
graph step
  a = placeholder : f32[8][1]cpu
  b = placeholder : f32[8][1]cpu
  tokens = placeholder : i64[2, 4][4, 1]cpu
  labels = placeholder : i64[2, 4][4, 1]cpu
  y = mine.gated.default(a, b) : f32[8][1]cpu
  square = aten.mul.Tensor(y, y) : f32[8][1]cpu
  loss = aten.sum.default(square) : f32[][]cpu
  g = aten.mul.Tensor(y, 2) : f32[8][1]cpu
  (g_a, g_b) = mine.gated_backward.default(g, a, b) as back : (f32[8][1]cpu, f32[8][1]cpu)
  output([loss, g_a, g_b])
"""
ITS_PARTS = OWN_OPERATOR.replace("""\
  y = mine.gated.default(a, b) : f32[8][1]cpu
""", """\
  gate = aten.sigmoid.default(b) : f32[8][1]cpu
  y = aten.mul.Tensor(a, gate) : f32[8][1]cpu
""").replace("""\
  (g_a, g_b) = mine.gated_backward.default(g, a, b) as back : (f32[8][1]cpu, f32[8][1]cpu)
""", """\
  again = aten.sigmoid.default(b) : f32[8][1]cpu
  g_a = aten.mul.Tensor(g, again) : f32[8][1]cpu
  one = aten.mul.Tensor(g, a) : f32[8][1]cpu
  two = aten.mul.Tensor(one, again) : f32[8][1]cpu
  rest = aten.rsub.Scalar(again, 1) : f32[8][1]cpu
  g_b = aten.mul.Tensor(two, rest) : f32[8][1]cpu
""")


class OwnLibrariesTest(OwnModelCase):
    def build_example(self, name):
        """Builds docs/examples/NAME in the folder `build`."""
        torch = glob.glob(os.path.join(ROOT, ".venv", "lib", "python3*", "site-packages", "torch"))
        if not torch or shutil.which("cmake") is None:
            self.skipTest("needs CMake and LibTorch in .venv")
        # As docs/own_models.md writes it: paths are relative to where CMake is started.
        for command in (["cmake", "-S", f"docs/examples/{name}", "-B", self.path("build"),
                         f"-DTORCH={os.path.relpath(torch[0], ROOT)}", "-DSTRATA=include"],
                        ["cmake", "--build", self.path("build")]):
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_operators_of_a_library_compute_what_their_parts_compute(self):
        self.build_example("own-operator")
        load = ("--operators", "build/libgated.so")
        self.write("config.toml", LOOP.format(vocab=8, seq=4))
        self.write("joint.txt", OWN_OPERATOR)
        self.write("parts.txt", ITS_PARTS)
        write_tensors(self.path("init.safetensors"), {
            "a": ("F32", [8], draw(8, 1.0, 3)), "b": ("F32", [8], draw(8, 1.0, 4))})

        def losses(name, *options, passes=()):
            self.printed("train", "config.toml", "--program", f"{name}.txt", "--init", "init.safetensors",
                         "--metrics", f"{name}.jsonl", "--trace", f"{name}.strata", "--overwrite", *passes, *options)
            return self.losses(f"{name}.jsonl")

        ours = losses("joint", *load, passes=("--passes", "dce"))
        self.assertEqual(ours, losses("parts", passes=("--passes", "dce")))
        self.assertLess(ours[-1], ours[0])
        # Fused and proven.
        self.assertEqual(losses("joint", *load, "--prove"), ours)
        self.printed("opt", "joint.txt", "--passes", "dce,canonicalize,fuse", "--prove", *load)
        self.assertIn("loss  []", self.printed("run", "joint.txt", *load))
        self.assertIn("0 differ", self.printed("compare-values", "joint.txt", "parts.txt", *load))

        self.assertIn("no operator mine.gated.default: load its library with --operators FILE",
                      self.printed("run", "joint.txt", status=2))
        self.assertIn("cannot load the library of operators",
                      self.printed("run", "joint.txt", "--operators", "no.so", status=2))
        self.assertIn("empty file name", self.printed("run", "joint.txt", "--operators", "", status=2))
        shutil.copy(self.path("build/libgated.so"), self.path("again.so"))
        self.assertIn("cannot load the library of operators: again.so: Only a single TORCH_LIBRARY",
                      self.printed("run", "joint.txt", *load, "--operators", "again.so", status=2))

    def test_a_model_in_a_library_trains(self):
        self.build_example("own-model")
        self.write("config.toml", LOOP.format(vocab=24, seq=8) + "dim = 16\nn_layers = 2\n")
        self.printed("train", "config.toml", "--model", "build/libmine.so", "--metrics", "m.jsonl", "--trace",
                     "t.strata", "--save", "end.safetensors")
        losses = self.losses("m.jsonl")
        self.assertLess(losses[-1], losses[0])
        self.assertIn("layers.1.mix.weight", read_tensors(self.path("end.safetensors")))
        self.assertIn("layers.1", self.printed("show", "t.strata#graph=step"))
        # Operators one by one give the same bits.
        self.printed("train", "config.toml", "--model", "build/libmine.so", "--metrics", "plain.jsonl", "--passes",
                     "dce")
        self.assertEqual(self.losses("plain.jsonl"), losses)
        # Two ranks share layers, and two have other sequences.
        self.printed("train", "config.toml", "--model", "build/libmine.so", "--metrics", "ranks.jsonl", "--set",
                     "parallelism.tensor_parallel_degree=2", "--set", "parallelism.data_parallel_shard_degree=2",
                     "--set", "batch_size=1", "--prove-exact")
        self.close(self.losses("ranks.jsonl"), losses)


if __name__ == "__main__":
    OwnLibrariesTest.strata = os.path.abspath(sys.argv.pop(1))
    unittest.main()
