"""Graphs that one rank or run made serve the others: stored ones are used when they are the right ones, and never else.

    train_artifact_test.py STRATA
"""

import glob
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

CONFIG = """\
model = "llama3"
dim = 32
n_layers = 2
n_heads = 4
n_kv_heads = 2
vocab_size = 64
multiple_of = 16
seq_len = 16
batch_size = 4
steps = 2
seed = 7
[optimizer]
lr = 3e-3
"""
QWEN = CONFIG.replace("llama3", "qwen3").replace("multiple_of = 16", "hidden_dim = 64")
EXPERTS = """\
model = "deepseek_v3"
dim = 32
n_layers = 2
n_dense_layers = 1
n_heads = 4
hidden_dim = 32
vocab_size = 64
seq_len = 16
batch_size = 4
steps = 2
seed = 7
mla.kv_lora_rank = 16
mla.qk_nope_head_dim = 8
mla.qk_rope_head_dim = 8
mla.v_head_dim = 8
moe.num_experts = 4
moe.top_k = 2
moe.moe_hidden_dim = 16
moe.num_shared_experts = 1
optimizer.lr = 3e-3
"""


class ArtifactTest(unittest.TestCase):
    strata = ""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        with open(self.path("c.toml"), "w", encoding="utf-8") as file:
            file.write(CONFIG)

    def path(self, name):
        return os.path.join(self.folder, name)

    def command(self, *words, config="c.toml", store="art"):
        sets = ["--set", f"compile.precompile_artifact_dir={store}"] if store else []
        return [self.strata, "train", config, "--threads", "1", *sets, *words]

    def train(self, *words, **options):
        """Bytes of the parameters after the training, and what stderr says."""
        out = self.path("w.safetensors")
        done = subprocess.run(self.command("--save", out, *words, **options), cwd=self.folder, capture_output=True,
                              text=True, timeout=180, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(out, "rb") as file:
            return file.read(), done.stderr

    def passes_of(self, trace):
        done = subprocess.run([self.strata, "ls", trace], cwd=self.folder, capture_output=True, text=True, check=True)
        return [line for line in done.stdout.splitlines() if line.strip().startswith("0 ")]

    def artifact(self):
        return self.path("art/graphs.safetensors")

    def test_a_second_run_loads_what_the_first_made_and_trains_the_same_bits(self):
        for name, text in (("c.toml", CONFIG), ("moe.toml", EXPERTS), ("qwen.toml", QWEN)):
            with self.subTest(name):
                with open(self.path(name), "w", encoding="utf-8") as file:
                    file.write(text)
                shutil.rmtree(self.path("art"), ignore_errors=True)
                alone, _ = self.train(config=name, store=None)
                first, said = self.train(config=name)
                self.assertEqual(said.count("graphs are"), 0, said)
                made = os.stat(self.artifact()).st_mtime_ns
                second, said = self.train("--trace", "t.strata", config=name)
                self.assertEqual(said.count("graphs are"), 0, said)
                self.assertEqual(os.stat(self.artifact()).st_mtime_ns, made)
                self.assertEqual(self.passes_of("t.strata"), [], "passes ran")
                self.assertEqual(first, alone)
                self.assertEqual(second, alone)
                os.remove(self.path("t.strata"))

    def test_ranks_as_threads_and_as_processes_share_one_artifact(self):
        sets = ["--set", "parallelism.data_parallel_shard_degree=2"]
        alone, _ = self.train(*sets, store=None)
        processes, _ = self.train("--nproc", "2", *sets)
        threads, said = self.train(*sets)
        self.assertNotIn("graphs are", said)
        self.assertEqual(processes, alone)
        self.assertEqual(threads, alone)

    def test_a_stale_artifact_is_named_and_replaced(self):
        self.train()
        for words, reason in ((["--set", "optimizer.beta2=0.9"], "made without optimizer.beta2, which is 0.9"),
                              (["--set", "seq_len=8"], "made with another seq_len: 16, now 8"),
                              (["--passes", "dce"], "made with another passes: dce,canonicalize,fuse, now dce"),
                              (["--set", "parallelism.data_parallel_shard_degree=2"], "made with another mesh: none, now ")):
            with self.subTest(reason):
                alone, _ = self.train(*words, store=None)
                made, said = self.train(*words)
                self.assertIn(f"graphs are made anew: art/graphs.safetensors: {reason}", said)
                self.assertEqual(made, alone)
                again, said = self.train(*words)
                self.assertNotIn("graphs are", said)
                self.assertEqual(again, alone)

    def test_what_only_the_loop_reads_changes_nothing(self):
        self.train()
        _, said = self.train("--set", "steps=3", "--set", "profiler.profile_freq=7")
        self.assertNotIn("graphs are", said)

    def test_a_damaged_artifact_is_replaced(self):
        alone, _ = self.train()
        with open(self.artifact(), "rb") as file:
            good = file.read()
        noise = random.Random(1)
        for _ in range(12):
            bad = bytearray(good)
            if noise.random() < 0.5:
                del bad[noise.randrange(len(bad)):]
            else:
                bad[noise.randrange(len(bad))] ^= 1 << noise.randrange(8)
            with open(self.artifact(), "wb") as file:
                file.write(bad)
            trained, said = self.train()
            self.assertEqual(trained, alone)
            self.assertIn("graphs are made anew", said)
            with open(self.artifact(), "rb") as file:
                self.assertEqual(file.read(), good)

    def test_kills_while_it_is_made_leave_no_wrong_artifact(self):
        alone, _ = self.train(store=None)
        noise = random.Random(2)
        begin = time.monotonic()
        subprocess.run(self.command(), cwd=self.folder, capture_output=True, check=True)
        whole = time.monotonic() - begin
        for i in range(50):
            if i % 4 < 2:
                shutil.rmtree(self.path("art"), ignore_errors=True)
            run = subprocess.Popen(self.command("--set", f"optimizer.beta1=0.{i % 5 + 1}"), cwd=self.folder,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            if i % 2 == 0:  # as soon as something is written
                while run.poll() is None and not glob.glob(self.path("art/graphs.safetensors*")):
                    time.sleep(0.0005)
            else:
                time.sleep(noise.uniform(whole / 3, whole))  # libraries are loaded before
            run.send_signal(signal.SIGKILL)
            run.wait()
            if i % 10 == 9:
                trained, _ = self.train()
                self.assertEqual(trained, alone)

    def test_where_nothing_can_be_written_the_graphs_are_made(self):
        alone, _ = self.train(store=None)
        with open(self.path("file"), "w", encoding="utf-8"):
            pass
        trained, said = self.train(store="file/art")
        self.assertEqual(trained, alone)
        self.assertIn("graphs are not stored: ", said)
        trained, said = self.train(store="/proc/art")
        self.assertEqual(trained, alone)
        self.assertIn("graphs are not stored: ", said)

    def test_other_versions_and_processors_make_their_own(self):
        alone, _ = self.train()
        with open(self.artifact(), "rb") as file:
            good = file.read()
        for name in ("format", "program", "LibTorch", "processor"):
            with self.subTest(name):
                last = good.index(b"\n", good.index(f"{name}\t".encode())) - 1
                other = good[:last] + (b"8" if good[last : last + 1] != b"8" else b"9") + good[last + 1 :]
                with open(self.artifact(), "wb") as file:
                    file.write(other)
                trained, said = self.train()
                self.assertEqual(trained, alone)
                self.assertIn(f"graphs are made anew: art/graphs.safetensors: made with another {name}: ", said)
                with open(self.artifact(), "rb") as file:
                    self.assertEqual(file.read(), good)

    def test_an_artifact_that_does_not_fit_is_one_line(self):
        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

        def losses():
            with open(self.path("m.jsonl"), encoding="utf-8") as file:
                return [json.loads(line)["loss"] for line in file]

        words = ["--passes", "dce", "--metrics", "m.jsonl"]
        subprocess.run(self.command(*words, store=None), cwd=self.folder, capture_output=True, check=True)
        alone = losses()
        os.remove(self.path("m.jsonl"))
        done = subprocess.run(self.command(*words), cwd=self.folder, capture_output=True, text=True, check=False,
                              preexec_fn=limit)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr.count("graphs are not stored: "), 1, done.stderr)
        self.assertEqual(losses(), alone)
        self.assertEqual(glob.glob(self.path("art/graphs.safetensors*")), [])

    def test_a_read_only_folder_serves_what_it_has(self):
        alone, _ = self.train()
        os.chmod(self.path("art"), 0o555)
        self.addCleanup(os.chmod, self.path("art"), 0o755)
        trained, said = self.train()
        self.assertEqual(trained, alone)
        self.assertNotIn("graphs are", said)

    def test_proofs_run_the_passes(self):
        self.train()
        done = subprocess.run(self.command("--prove", "--trace", "t.strata"), cwd=self.folder, capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotEqual(self.passes_of("t.strata"), [])


if __name__ == "__main__":
    ArtifactTest.strata = os.path.abspath(sys.argv.pop(1))
    unittest.main()
