"""The example in docs/examples/inductor-pass: its tests pass, and fail when the pass is wrong."""

import glob
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import torch_python  # noqa: E402

torch_python.need()

# pytest is in .venv, PyTorch may be in another one: its packages stay in front.
PYTEST = """
import sys, torch
sys.path += sys.argv.pop(1).split(":")
import pytest
sys.exit(pytest.main(sys.argv[1:]))
"""
PACKAGES = glob.glob(os.path.join(torch_python.ROOT, ".venv", "lib", "python3*", "site-packages"))
SUITE = os.path.join(torch_python.ROOT, "docs", "examples", "inductor-pass")


class ExampleTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.suite = os.path.join(folder.name, "suite")
        shutil.copytree(SUITE, self.suite)

    def pytest(self, *words):
        done = subprocess.run([sys.executable, "-B", "-c", PYTEST, ":".join(PACKAGES), "-q", "-p", "no:cacheprovider", "-p",
                               "no:logging", "-p", "strata.pytest_plugin", *words], capture_output=True, text=True,
                              cwd=self.suite, check=False, timeout=500, env={**os.environ, "CI": "1", "STRATA_BIN": STRATA})
        return done.returncode, done.stdout + done.stderr

    def test_the_suite_passes(self):
        status, out = self.pytest()
        self.assertEqual(status, 0, out)
        self.assertIn("6 passed", out)

    def test_a_wrong_pass_fails_by_its_golden_graph(self):
        path = os.path.join(self.suite, "fold_scales.py")
        with open(path, encoding="utf-8") as file:
            text = file.read()
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace("== 0.5)", "== 0.25)"))  # folds nothing
        status, out = self.pytest("-k", "test_graph")
        self.assertEqual(status, 1, out)
        self.assertRegex(out, r"the graph differs from \S*golden/test_graph_chain\.txt: ")
        self.assertIn("1 failed, 1 passed", out)


if __name__ == "__main__":
    STRATA = os.path.abspath(sys.argv.pop(1))
    if subprocess.run([sys.executable, "-c", f"import sys; sys.path += {PACKAGES!r}; import pytest"], capture_output=True,
                      check=False).returncode != 0:
        print("skipped: no pytest: ./dev setup test")
        sys.exit(77)
    unittest.main()
