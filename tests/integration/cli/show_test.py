"""`strata show` as scripts use it.

    show_test.py STRATA
"""

import json
import os
import sys
import xml.etree.ElementTree

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))

from small_graphs import BEFORE, NATIVE  # noqa: E402
from strata_case import StrataCase, main  # noqa: E402


class ShowTest(StrataCase):
    def test_formats(self):
        self.write("native.txt", NATIVE)
        self.assertEqual(self.run_strata("show", "native.txt").stdout, NATIVE)
        self.assertIn("def forward(", self.run_strata("show", "native.txt", "--format", "fx").stdout)
        dot = self.run_strata("show", "native.txt", "--format", "dot").stdout
        self.assertIn('"x" -> "sin";', dot)
        graph = json.loads(self.run_strata("show", "native.txt", "--format", "json").stdout)
        self.assertEqual(graph["schema"], "strata.show/1")
        self.assertEqual([node["name"] for node in graph["nodes"]], ["x", "sin", "output"])
        self.assertEqual(graph["nodes"][1]["operands"], ["x"])

    def test_pictures(self):
        self.write("native.txt", NATIVE)
        svg = self.run_strata("show", "native.txt", "--format", "svg").stdout
        self.assertEqual([node.text for node in xml.etree.ElementTree.fromstring(svg).iter(
            "{http://www.w3.org/2000/svg}title")], ["x (input)", "sin = aten.sin.default(x)", "output(sin)"])
        self.write("other.txt", NATIVE.replace("aten.sin", "aten.cos"))
        done = self.run_strata("diff", "native.txt", "other.txt", "--format", "svg")
        self.assertEqual(done.returncode, 1, done.stderr)
        xml.etree.ElementTree.fromstring(done.stdout)

    def test_fx_text_comes_back(self):
        self.write("fx.txt", BEFORE)
        self.write("again.txt", self.run_strata("show", "fx.txt", "--format", "fx").stdout)
        self.assertEqual(self.run_strata("diff", "fx.txt", "again.txt").returncode, 0)

    def test_a_program_that_begins_with_its_graph_has_the_types_of_its_inputs(self):
        self.write("p.py", "class Repro(torch.nn.Module):\n    def __init__(self) -> None:\n        super().__init__()\n\n"
                   "    def forward(self, a):\n        b = torch.ops.aten.mm.default(a, a);  a = None\n        return (b,)\n\n"
                   "def load_args(reader):\n    buf0 = reader.storage(None, 144)\n    reader.tensor(buf0, (6, 6))  # a\n")
        self.assertIn("b = aten.mm.default(a, a) : f32[6, 6]", self.run_strata("show", "p.py").stdout)

    def test_output_file(self):
        self.write("native.txt", NATIVE)
        self.assertEqual(self.run_strata("show", "native.txt", "-o", "copy.txt").returncode, 0)
        with open(os.path.join(self.folder, "copy.txt"), encoding="utf-8") as file:
            self.assertEqual(file.read(), NATIVE)
        self.fails("show", "native.txt", "-o", "missing/copy.txt")


if __name__ == "__main__":
    main()
