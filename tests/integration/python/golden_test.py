"""Golden graphs: `strata.testing` and the pytest plugin, in a project of a user. FX texts stand for graphs."""

import os
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
TEXT = 'def forward(self, x):\n    relu = torch.relu(x)\n    return relu\n'
TESTS = '''
import pytest
TEXT = """def forward(self, x):
    NAME = torch.OP(x)
    return NAME
"""
import os
TEXT = TEXT.replace("OP", os.environ.get("OP", "relu")).replace("NAME", os.environ.get("NAME", "relu"))

def test_pass(graph_golden):
    graph_golden(TEXT)

@pytest.mark.parametrize("size", ["a/b", "c"])
def test_sizes(graph_golden, size):
    graph_golden(TEXT)
'''

if subprocess.run([sys.executable, "-c", "import pytest"], capture_output=True, check=False).returncode != 0:
    print("skipped: no pytest: ./dev setup test")
    sys.exit(77)


class GoldenTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        with open(os.path.join(self.folder, "test_it.py"), "w", encoding="utf-8") as file:
            file.write(TESTS)

    def pytest(self, *words, **environment):
        env = {name: value for name, value in os.environ.items() if name not in ("CI", "STRATA_UPDATE")}
        done = subprocess.run(
            [sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "strata.pytest_plugin", *words],
            capture_output=True, text=True, cwd=self.folder, check=False, timeout=120,
            env={**env, "STRATA_BIN": STRATA, "PYTHONPATH": os.path.join(ROOT, "python"), **environment})
        return done.returncode, done.stdout + done.stderr

    def test_update_then_compare(self):  # PY-30
        self.assertEqual(self.pytest("--strata-update")[0], 0)
        self.assertEqual(sorted(os.listdir(os.path.join(self.folder, "golden"))),
                         ["test_pass.txt", "test_sizes_a_b.txt", "test_sizes_c.txt"])
        with open(os.path.join(self.folder, "golden", "test_pass.txt"), encoding="utf-8") as file:
            text = file.read()
        self.assertIn("torch.relu(x)", text)
        self.assertEqual(self.pytest()[0], 0)
        # Names of nodes do not matter.
        self.assertEqual(self.pytest(NAME="another")[0], 0)

    def test_a_difference_is_shown_node_by_node(self):
        self.pytest("--strata-update")
        status, out = self.pytest("-k", "test_pass", OP="sigmoid")
        self.assertEqual(status, 1)
        self.assertRegex(out, r"the graph differs from \S*golden/test_pass\.txt: 1 changed")
        self.assertIn("torch.relu → torch.sigmoid", out)
        # The failure points at the line of the test, not into the helper.
        self.assertIsNotNone(re.search(r"^test_it\.py:\d+: AssertionError", out, re.MULTILINE), out)

    def test_a_missing_file_fails_and_says_what_makes_it(self):
        status, out = self.pytest("-k", "test_pass")
        self.assertEqual(status, 1)
        self.assertRegex(out, r"golden graph \S*test_pass\.txt is missing: STRATA_UPDATE=1 or pytest --strata-update")

    def test_ci_does_not_update(self):
        status, out = self.pytest("--strata-update", CI="true")
        self.assertEqual(status, 1)
        self.assertIn("CI does not update golden graphs", out)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "golden")))

    def test_a_policy_allows_changes(self):
        self.pytest("--strata-update")
        with open(os.path.join(self.folder, "allow.toml"), "w", encoding="utf-8") as file:
            file.write(POLICY)
        with open(os.path.join(self.folder, "test_it.py"), "a", encoding="utf-8") as file:
            file.write("\ndef test_allowed(graph_golden):\n    graph_golden(TEXT, 'test_pass', policy='allow.toml')\n")
        self.assertEqual(self.pytest("-k", "test_allowed", OP="sigmoid")[0], 0)


POLICY = """
[[allow]]
why = "activations"
targets = ["torch.*"]
"""

if __name__ == "__main__":
    STRATA = os.path.abspath(sys.argv.pop(1))
    unittest.main()
