"""Trainings on several ranks: losses, files, recorded passes, and what --prove says of them.

    ranks_test.py STRATA
"""

import json
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))

from strata_case import StrataCase, main, sets  # noqa: E402

CONFIG = """\
model = "llama3"
dim = 16
n_layers = 2
n_heads = 4
n_kv_heads = 2
vocab_size = 32
multiple_of = 8
seq_len = 8
batch_size = 8
steps = 4
[checkpoint]
enable = true
interval = 2
last_save_model_only = false
"""


FSDP = sets("parallelism.data_parallel_shard_degree=2", "batch_size=4")
TP = sets("parallelism.tensor_parallel_degree=2")


class RanksTest(StrataCase):
    def setUp(self):
        super().setUp()
        self.write("config.toml", CONFIG)

    def train(self, name, *options):
        """The metrics of a run, by step, and what it says on stderr."""
        done = self.run_strata("train", "config.toml", *sets(f"dump_folder={name}"), "--threads", "1",
                               "--metrics", f"{name}.jsonl", *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.path(f"{name}.jsonl"), encoding="utf-8") as file:
            return [json.loads(line) for line in file], done.stderr

    def assert_close(self, ours, theirs):
        self.assertEqual([step["step"] for step in ours], [step["step"] for step in theirs])
        for ours_step, theirs_step in zip(ours, theirs):
            for key in ("loss", "grad_norm"):
                self.assertAlmostEqual(ours_step[key], theirs_step[key], delta=1e-5)

    def test_losses_are_those_of_one_rank(self):
        one, _ = self.train("one")
        for name, options in (("fsdp", FSDP), ("tp", TP)):
            ranks, _ = self.train(name, *options)
            self.assert_close(ranks, one)

    def test_a_run_resumes_on_other_ranks(self):
        one, _ = self.train("one")
        self.train("moved", *FSDP, *sets("steps=2"))
        resumed, _ = self.train("moved", *TP, "--resume")
        self.assert_close(resumed, one)

    def test_passes_are_recorded_and_proven(self):
        _, stderr = self.train("proven", *FSDP, *sets("steps=1"), "--trace", "t.strata", "--prove",
                               "--passes", "dce,canonicalize,fuse")
        self.assertRegex(stderr, r"proved: pass 2 place: graph step: \d+ values and \d+ outputs are equal")
        self.assertRegex(stderr, r"proved: pass 3 lower: graph step: \d+ outputs and \d+ inputs of 2 ranks are within")
        self.assertRegex(stderr, r"proved: pass 4 bucket-transformer-blocks: graph step: \d+ values and \d+ outputs are equal")
        self.assertRegex(stderr, r"proved: pass 5 fuse: graph step: \d+ values and \d+ outputs are equal")
        listing = self.run_strata("ls", "t.strata").stdout
        self.assertIn('pipeline: dce,canonicalize,place{mesh="fsdp=2"},lower,bucket-transformer-blocks,fuse', listing)

    def test_passes_of_experts_are_proven(self):
        done = self.run_strata("train", os.path.join(ROOT, "configs", "demo_deepseek_v3.toml"), *FSDP,
                               *sets("parallelism.expert_parallel_degree=2", "compile.ep_overlap.enabled=true",
                                     "steps=1"), "--trace", "t.strata", "--prove")
        self.assertEqual(done.returncode, 0, done.stderr)
        for name in ("lower", "ep-overlap", "concretize"):
            self.assertRegex(done.stderr, rf"proved: pass \d+ {name}: graph step: ")
        self.assertRegex(done.stderr, r"not executed: pass \d+ ep-chunk: graph step: sums over chunks are rounded otherwise")
        self.assertNotIn("Warning", done.stderr)
        proof = self.run_strata("prove", "t.strata").stdout
        self.assertRegex(proof, r"pass \d+ ep-chunk, step: \d+ values equal")

    def test_a_world_of_many_ranks_is_traced_without_them(self):
        done = self.run_strata("trace", "config.toml", "--world", "64", "--passes", "dce,canonicalize",
                               *sets("parallelism.tensor_parallel_degree=2"), "-o", "w.strata")
        self.assertEqual(done.returncode, 0, done.stderr)
        listing = self.run_strata("ls", "w.strata").stdout
        self.assertIn('place{mesh="fsdp=32,tp=2",plan=llama3},lower', listing)


if __name__ == "__main__":
    main()
