"""`strata train` with fused kernels: built once, and done without where nothing can build them.

    train_kernels_test.py STRATA
"""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FIXTURE = os.path.join(ROOT, "tests", "data", "numerics", "llama3_small")


class TrainKernelsTest(unittest.TestCase):
    strata = ""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.cache = os.path.join(self.folder.name, "cache")

    def train(self, passes=("--passes", "dce,canonicalize,fuse"), **environment):
        """Metrics, and what stderr says, of a run with kernels."""
        metrics = os.path.join(self.folder.name, "metrics")
        keep = {name: value for name, value in os.environ.items() if name != "CXX"}
        result = subprocess.run(
            [os.path.abspath(self.strata), "train", os.path.join(FIXTURE, "config.json"), "--tokens",
             os.path.join(FIXTURE, "tokens.safetensors"), "--set", "steps=3", "--metrics", metrics, *passes],
            capture_output=True, text=True, timeout=120, check=False,
            env={**keep, "XDG_CACHE_HOME": self.cache, **environment})
        self.assertEqual(result.returncode, 0, result.stderr)
        with open(metrics, encoding="utf-8") as file:
            return file.read(), result.stderr

    def kernels(self):
        folder = os.path.join(self.cache, "strata", "kernels")
        return sorted(name for name in os.listdir(folder) if name.endswith(".so")) if os.path.isdir(folder) else []

    @unittest.skipUnless(shutil.which("c++") or shutil.which("g++") or shutil.which("clang++"), "no C++ compiler")
    def test_a_second_run_finds_the_kernels_of_the_first(self):
        metrics, messages = self.train()
        self.assertNotIn("without fused kernels", messages)
        built = self.kernels()
        self.assertGreater(len(built), 0)
        times = [os.stat(os.path.join(self.cache, "strata", "kernels", name)).st_mtime_ns for name in built]
        self.assertEqual(self.train()[0], metrics)
        self.assertEqual(self.kernels(), built)
        self.assertEqual([os.stat(os.path.join(self.cache, "strata", "kernels", name)).st_mtime_ns for name in built],
                         times)

    def test_without_a_compiler_the_operators_run_and_the_numbers_are_the_same(self):
        expected, _ = self.train()
        empty = os.path.join(self.folder.name, "empty")
        os.mkdir(empty)
        metrics, messages = self.train(PATH=empty, XDG_CACHE_HOME=empty)
        self.assertEqual(metrics, expected)
        for graph in ("step", "optimizer"):
            self.assertIn(f"graph {graph} runs without fused kernels: no C++ compiler: c++, g++, clang++: install g++, "
                          "or name one by the variable CXX", messages)
        self.assertEqual(os.listdir(empty), [])

    def test_without_options_kernels_are_made_where_there_is_a_compiler(self):
        expected, messages = self.train()
        built = self.kernels()
        self.assertEqual(self.train(passes=()), (expected, messages))
        self.assertEqual(self.kernels(), built)
        empty = os.path.join(self.folder.name, "empty")
        os.mkdir(empty)
        metrics, messages = self.train(passes=(), PATH=empty, XDG_CACHE_HOME=empty)
        self.assertEqual(metrics, expected)
        self.assertEqual(messages, "strata: warning: no kernels are made, operators run one by one: no C++ compiler: c++, "
                         "g++, clang++: install g++, or name one by the variable CXX\n")

    def test_a_compiler_that_fails_is_told_and_done_without(self):
        expected, _ = self.train()
        metrics, messages = self.train(CXX="/bin/false", XDG_CACHE_HOME=os.path.join(self.folder.name, "other"))
        self.assertEqual(metrics, expected)
        self.assertIn("graph step runs without fused kernels: cannot build kernels: /bin/false: ", messages)


if __name__ == "__main__":
    TrainKernelsTest.strata = sys.argv.pop(1)
    unittest.main()
