"""A GraphModule that went through a recording, a trace and FX text computes the same bits in PyTorch."""

import glob
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import torch_python  # noqa: E402

torch_python.need()

import torch  # noqa: E402
from torch import device, inf, nan  # noqa: E402, F401, names that FX texts use

import fx_zoo  # noqa: E402
import strata  # noqa: E402


def bits(tensor):
    return tensor.dtype, tuple(tensor.shape), tensor.detach().contiguous().view(-1).view(torch.uint8).tolist()


class RoundTripTest(unittest.TestCase):

    def test_losses_and_gradients_of_eight_models_have_equal_bits(self):  # PY-28
        for model in fx_zoo.MODELS:
            with self.subTest(model=model), tempfile.TemporaryDirectory() as folder:
                gm, inputs = fx_zoo.step_graph(model)
                trace, out = os.path.join(folder, "run.strata"), os.path.join(folder, "texts")
                with strata.record(trace):
                    strata.watch(lambda gm: gm, name="nothing")(gm)
                done = subprocess.run([STRATA, "export", trace, "--fx", out], capture_output=True, text=True, check=False,
                                      timeout=120)
                self.assertEqual(done.returncode, 0, done.stderr)
                [text] = glob.glob(os.path.join(out, "*", "*.txt"))
                with open(text, encoding="utf-8") as file:
                    names = dict(globals())
                    exec(compile(file.read(), text, "exec"), names)  # noqa: S102
                again = names["GraphModule"]()
                for key, value in vars(gm).items():
                    if key.startswith("_tensor_constant"):
                        setattr(again, key, value)
                expected = gm(*[value.clone() for value in inputs])
                computed = again(*[value.clone() for value in inputs])
                self.assertEqual(len(expected), len(computed))
                for a, b in zip(expected, computed):
                    self.assertEqual(bits(a), bits(b))


if __name__ == "__main__":
    STRATA = os.path.abspath(sys.argv.pop(1))
    os.environ["STRATA_BIN"] = STRATA
    unittest.main()
