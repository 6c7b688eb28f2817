"""Drives the window of strata-view on a virtual display.

    test.py STRATA_VIEW STRATA SCREENSHOTS
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

LOG = "tests/data/logs/graph_trainer_2layer_torch2.14.1.log.zst"

if not shutil.which("Xvfb"):
    print("skipped: no Xvfb: run ./dev setup test")
    sys.exit(77)

VIEW, STRATA, SCREENSHOTS = sys.argv[1:4]
del sys.argv[1:4]


class Display:
    """An X server without a screen, for the tests of one file."""

    def __init__(self):
        reader, writer = os.pipe()
        self.process = subprocess.Popen(
            ["Xvfb", "-displayfd", str(writer), "-screen", "0", "3840x2160x24", "-noreset", "-nolisten", "tcp"],
            pass_fds=[writer], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(writer)
        with os.fdopen(reader) as stream:
            self.name = ":" + stream.readline().strip()

    def stop(self):
        self.process.terminate()
        self.process.wait()


class GuiCase(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.display = Display()
        cls.folder = tempfile.mkdtemp(prefix="strata-gui-")
        os.makedirs(SCREENSHOTS, exist_ok=True)

    @classmethod
    def tearDownClass(cls):
        cls.display.stop()
        shutil.rmtree(cls.folder, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def picture(self, name):
        """Where a screenshot goes that a person may want to look at."""
        return os.path.join(SCREENSHOTS, f"viewer_{name}.png")

    def start(self, script, *words, display=True, env=None):
        """Runs the viewer with a script; returns the finished process.

        With --bench it draws the frames of screenshots only: to draw all without a GPU is four fifths of the time.
        """
        path = self.path("script.txt")
        with open(path, "w", encoding="utf-8") as file:
            file.write(script)
        environment = {**os.environ, "DISPLAY": self.display.name if display else "", "LIBGL_ALWAYS_SOFTWARE": "1",
                       **(env or {})}
        return subprocess.run([VIEW, "--bench", "--script", path, *words], env=environment, capture_output=True, text=True,
                              timeout=240, check=False)

    def view(self, script, *words):
        """Runs the viewer; returns the UI tree at the end of the script."""
        tree = self.path("tree.json")
        done = self.start(f"{script}\ntree {tree}\n", *words)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        with open(tree, encoding="utf-8") as file:
            return json.load(file)

    def assert_picture(self, path, width, height):
        """The file is a PNG of that size, with more than a background."""
        with open(path, "rb") as file:
            data = file.read()
        self.assertEqual(data[:8], b"\x89PNG\r\n\x1a\n")
        size = int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")
        self.assertEqual(size, (width, height))
        self.assertGreater(len(data), 20000)


def record(name, adds, term=1):
    """A graph of a PyTorch log: a chain of additions, each of `term`."""
    lines = ["class GraphModule(torch.nn.Module):", '    def forward(self, x: "f32[2][1]cpu"):']
    value = "x"
    for i in range(adds):
        lines.append(f'        add_{i}: "f32[2][1]cpu" = torch.ops.aten.add.Tensor({value}, {term});  {value} = None')
        value = f"add_{i}"
    text = "\n".join(lines + [f"        return ({value},)", ""])
    head = {"artifact": {"name": name, "encoding": "string"}, "has_payload": hashlib.md5(text.encode()).hexdigest()}
    payload = "".join(f"\t{line}\n" for line in text.split("\n"))
    return f"V1120 18:28:13.658000 9595 torch/x.py:10] {json.dumps(head)}\n{payload}"


def names(tree, prefix=""):
    return [element["name"] for element in tree["elements"] if element["name"].startswith(prefix)]


def element(tree, name):
    return next(e for e in tree["elements"] if e["name"] == name)
