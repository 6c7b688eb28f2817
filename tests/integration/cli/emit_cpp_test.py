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
CONFIG = """\
model = "llama3"
dim = 16
n_layers = 1
n_heads = 4
n_kv_heads = 2
vocab_size = 24
multiple_of = 8
seq_len = 6
batch_size = 2
steps = 1
"""


class EmitCppTest(unittest.TestCase):
    strata = ""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def run_command(self, *command, status=0):
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=600, check=False,
                              env={**os.environ, "OMP_NUM_THREADS": "1"})
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def read(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def test_a_fused_step_has_the_bits_of_the_executor(self):
        torch = glob.glob(os.path.join(ROOT, ".venv", "lib", "python3*", "site-packages", "torch"))
        if not torch or shutil.which("cmake") is None:
            self.skipTest("needs CMake and LibTorch in .venv")
        with open(self.path("config.toml"), "w", encoding="utf-8") as file:
            file.write(CONFIG)
        self.run_command(self.strata, "train", "config.toml", "--trace", "t.strata", "--dump-inputs", "in.safetensors")
        self.run_command(self.strata, "emit", "t.strata#graph=step", "--lang", "cpp", "-o", "step")
        program = self.read("step/step.cpp").decode()
        self.assertIn("static std::vector<Tensor> kernel_0(", program)
        self.assertIn("// layers.0.attention.qkv_linear.wq", program)
        self.run_command("cmake", "-S", "step", "-B", "build", f"-DTORCH={torch[0]}")
        self.run_command("cmake", "--build", "build", "-j2")
        self.run_command("build/step", "in.safetensors", "program.safetensors")
        self.run_command(self.strata, "run", "t.strata#graph=step", "--inputs", "in.safetensors", "--outputs",
                         "executor.safetensors", "--threads", "1")
        self.assertEqual(self.tensors("program.safetensors"), self.tensors("executor.safetensors"))

    def tensors(self, name):
        """Name -> (dtype, shape, bytes)."""
        data = self.read(name)
        (length,) = struct.unpack("<Q", data[:8])
        header = json.loads(data[8:8 + length])
        header.pop("__metadata__", None)
        begin = 8 + length
        return {key: (entry["dtype"], entry["shape"],
                      data[begin + entry["data_offsets"][0]:begin + entry["data_offsets"][1]])
                for key, entry in header.items()}

    def test_what_pytorch_lacks_is_refused(self):
        with open(self.path("g.txt"), "w", encoding="utf-8") as file:
            file.write("graph g\n  x = placeholder : f32[4][1]cpu\n"
                       "  y = strata.axis_shard.default(x, 0, 'tp', 2) : f32[2][1]cpu\n  output([y])\n")
        text = self.run_command(self.strata, "emit", "g.txt", "--lang", "cpp", "-o", "out", status=2)
        self.assertIn("y of g: PyTorch has no operator strata.axis_shard.default", text)
        self.assertFalse(os.path.exists(self.path("out")))


if __name__ == "__main__":
    EmitCppTest.strata = os.path.abspath(sys.argv.pop(1))
    unittest.main()
