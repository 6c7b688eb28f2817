"""A training on packed documents loses what PyTorch loses with flex attention and a document mask.

    packed_documents_test.py STRATA

tests/data/packed/losses.json has PyTorch's losses and gradient norms. Where .venv-bench has PyTorch, it trains again.
"""

import json
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DATA = os.path.join(ROOT, "tests", "data", "packed")
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))
sys.path.insert(0, DATA)

import make_losses  # noqa: E402
from strata_case import StrataCase, main  # noqa: E402

FIXTURE = make_losses.FIXTURE
PYTHON = os.path.join(ROOT, ".venv-bench", "bin", "python")
# PyTorch's two ways to compute the attention are 1e-6 apart, since they round in another order.
TOLERANCE = 1e-5


def stored():
    with open(os.path.join(DATA, "losses.json"), encoding="utf-8") as file:
        return json.load(file)


class PackedDocumentsTest(StrataCase):
    def losses(self, *settings):
        """[[loss, gradient norm] of each step]."""
        make_losses.write_tokens(self.path("tokens.bin"))
        settings = ["dataloader.dataset=tokens", "dataloader.dataset_path=tokens.bin", "dataloader.shuffle=false",
                    f"dataloader.end_of_document={make_losses.END}", f"steps={make_losses.STEPS}", *settings]
        done = self.run_strata("train", os.path.join(FIXTURE, "config.json"), "--threads", "1", "--metrics", "m.jsonl",
                               "--overwrite", "--init", os.path.join(FIXTURE, "init.safetensors"),
                               *(word for setting in settings for word in ("--set", setting)))
        self.assertEqual(done.returncode, 0, done.stderr)
        return [[step["loss"], step["grad_norm"]] for step in map(json.loads, self.read("m.jsonl").splitlines())]

    def distance(self, ours, theirs):
        self.assertEqual(len(ours), len(theirs))
        return max(abs(a - b) for pair in zip(ours, theirs) for a, b in zip(*pair))

    def test_losses_of_20_steps_are_those_of_pytorch(self):
        for attention in ("flex", "sdpa"):
            ours = self.losses(f"attn_type={attention}", "attn_mask_type=block_causal")
            for way, theirs in stored().items():
                with self.subTest(attention=attention, way=way):
                    self.assertLessEqual(self.distance(ours, theirs), TOLERANCE)

    def test_the_comparison_notices_attention_across_documents(self):
        ours = self.losses("attn_type=flex", "attn_mask_type=causal")
        self.assertGreater(self.distance(ours, stored()["flex"]), 100 * TOLERANCE)

    def test_pytorch_gives_these_losses(self):
        if not os.path.exists(PYTHON):
            self.skipTest("no PyTorch: ./dev setup bench")
        done = subprocess.run([PYTHON, "-B", os.path.join(DATA, "make_losses.py"), self.path("losses.json")],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        for way, steps in json.loads(self.read("losses.json")).items():
            self.assertLessEqual(self.distance(steps, stored()[way]), TOLERANCE)


if __name__ == "__main__":
    main()
