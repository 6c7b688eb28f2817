"""Times of torch.profiler, attached to a recorded compilation: each node that runs has one."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import torch_python  # noqa: E402

torch_python.need()

import torch  # noqa: E402
import torch._inductor.config as inductor  # noqa: E402
from torch.profiler import ProfilerActivity, profile  # noqa: E402

import strata  # noqa: E402

CALLS = 5


def model(x, w):
    return torch.relu(x @ w).sum(1) * 2


class ProfileTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.trace = os.path.join(folder.name, "run.strata")

    def strata(self, *words, ok=(0,)):
        done = subprocess.run([STRATA, *words], capture_output=True, text=True, check=False, timeout=120)
        self.assertIn(done.returncode, ok, done.stderr)
        return done.stdout

    @staticmethod
    def profile(compiled, inputs):
        with profile(activities=[ProfilerActivity.CPU]) as prof:
            for _ in range(CALLS):
                compiled(*inputs)
        return prof

    def check(self, text):
        """Each node of the graph that was compiled has its time: in the text, and in the trace."""
        [run] = json.loads(self.strata("ls", self.trace, "--json"))["runs"]
        self.assertEqual(sum(item["name"] == "inductor_output_code" for item in run["artifacts"]), 1)
        rows = []
        for graph in run["graphs"]:
            done = subprocess.run([STRATA, "profile", graph["ref"], "--json"], capture_output=True, text=True, check=False)
            if done.returncode == 0:
                rows += json.loads(done.stdout)["rows"]
        times = {row["name"]: row["time_ns"] for row in rows if row["nodes"] > 0}
        self.assertEqual({name.rstrip("0123456789_") for name in times if times[name] > 0}, {"mm", "relu", "sum", "mul"})
        for name in times:
            self.assertIn(name, text)
        self.strata("check", self.trace)

    def test_a_profiler_and_its_file(self):  # PY-33
        inputs = torch.randn(256, 256), torch.randn(256, 256)
        compiled = torch.compile(model, backend=strata.backend("inductor"))
        with strata.record(self.trace) as run:
            with self.assertRaisesRegex(strata.Error, "the recording is open"):
                strata.attach_profile(run, "none.json")
            with inductor.patch({"cpp.enable_kernel_profile": True}):
                compiled(*inputs)
        prof = self.profile(compiled, inputs)
        self.check(strata.attach_profile(run, prof))
        with self.assertRaisesRegex(strata.Error, "Give the path of what it wrote"):
            strata.attach_profile(run, prof)
        file = os.path.join(self.folder, "chrome.json")
        self.profile(compiled, inputs).export_chrome_trace(file)
        self.check(strata.attach_profile(self.trace, file))


if __name__ == "__main__":
    STRATA = os.path.abspath(sys.argv.pop(1))
    os.environ["STRATA_BIN"] = STRATA
    unittest.main()
