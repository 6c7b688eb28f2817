"""`strata train` reproduces the trainings of the numerics fixtures.

    numerics_test.py STRATA [--device cuda]

Runs every fixture of tests/data/numerics. Prints the reason and exits 77 if there is no GPU to run them on.
"""

import glob
import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))

import compare_numerics  # noqa: E402

NUMERICS = os.path.join(ROOT, "tests", "data", "numerics")


def fixtures():
    return [os.path.dirname(path) for path in sorted(glob.glob(os.path.join(NUMERICS, "*", "config.json")))]


class NumericsTest(unittest.TestCase):
    strata = ""
    device = "cpu"

    def train(self, fixture, out, *options):
        """Trains a fixture; returns the paths of metrics, gradients and parameters."""
        metrics, grads, final = (os.path.join(out, name) for name in ("m.jsonl", "g.safetensors", "p.safetensors"))
        command = [self.strata, "train", os.path.join(fixture, "config.json"),
                   "--init", os.path.join(fixture, "init.safetensors"),
                   "--tokens", os.path.join(fixture, "tokens.safetensors"),
                   "--metrics", metrics, "--dump-grads", grads, "--save", final, "--set", f"device={self.device}", *options]
        result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(result.returncode, 0, f"{' '.join(command)}\n{result.stderr}")
        return metrics, grads, final

    def test_every_fixture_is_reproduced_within_its_tolerances(self):
        families = {os.path.basename(fixture).rpartition("_")[0] for fixture in fixtures()}
        self.assertLessEqual({"llama3", "qwen3", "deepseek_v3"}, families)
        for fixture in fixtures():
            with self.subTest(os.path.relpath(fixture, ROOT)), tempfile.TemporaryDirectory() as out:
                self.assertTrue(compare_numerics.compare(fixture, *self.train(fixture, out)))

    def test_mixed_precision_is_that_of_the_reference_and_not_fp32(self):
        # The tolerances are as wide as the precision of bf16, but rounding elsewhere would be as far off as fp32 is.
        for family in ("llama3", "qwen3", "deepseek_v3"):
            fixture = os.path.join(ROOT, "tests/data/numerics", f"{family}_bf16")
            with self.subTest(family), tempfile.TemporaryDirectory() as out:
                as_reference = compare_numerics.measure(fixture, *self.train(fixture, out))[0]
                fp32 = compare_numerics.measure(fixture, *self.train(
                    fixture, out, "--set", "training.mixed_precision_param=float32"))[0]
                for metric in ("grad1_max_tensor_rel", "loss_step1_abs"):
                    self.assertLess(2 * as_reference[metric], fp32[metric], metric)

    def test_graphs_traced_with_other_options_train_the_same(self):
        variants = {"llama3_tiny": ["compile.symbolic_dims=batch_and_seq"],
                    "qwen3_moe": ["moe.use_grouped_mm=false", "compile.symbolic_dims=batch"],
                    "deepseek_v3_groups": ["moe.use_grouped_mm=false"]}
        for name, settings in variants.items():
            fixture = os.path.join(ROOT, "tests/data/numerics", name)
            options = [word for setting in settings for word in ("--set", setting)]
            with self.subTest(name), tempfile.TemporaryDirectory() as out:
                self.assertTrue(compare_numerics.compare(fixture, *self.train(fixture, out, *options)))

    def test_the_comparison_notices_a_small_mistake(self):
        # A wrong norm eps is the smallest mistake that the fixtures are designed to find.
        fixture = os.path.join(ROOT, "tests/data/numerics/llama3_tiny")
        with tempfile.TemporaryDirectory() as out:
            files = self.train(fixture, out, "--set", "norm_eps=1e-6")
            self.assertFalse(compare_numerics.compare(fixture, *files))


def skip_without_gpu(strata):
    config = os.path.join(ROOT, "tests/data/numerics/llama3_tiny/config.json")
    result = subprocess.run([strata, "train", config, "--set", "device=cuda", "--set", "steps=1"], cwd=ROOT,
                            capture_output=True, text=True, timeout=300, check=False)
    missing = ("this build has no CUDA", "cannot load CUDA", "no GPU can be used")
    if result.returncode == 2 and any(what in result.stderr for what in missing):
        print("skipped:", result.stderr.strip())
        sys.exit(77)


if __name__ == "__main__":
    NumericsTest.strata = os.path.abspath(sys.argv.pop(1))
    if sys.argv[1:2] == ["--device"]:
        NumericsTest.device = sys.argv[2]
        del sys.argv[1:3]
        skip_without_gpu(NumericsTest.strata)
    unittest.main()
