"""`strata train --trace` records what ran.

    train_trace_test.py STRATA
"""

import json
import os
import random
import resource
import struct
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CONFIG = """\
model = "llama3"
dim = 16
n_layers = 2
n_heads = 4
n_kv_heads = 2
vocab_size = 24
multiple_of = 8
seq_len = 6
batch_size = 2
steps = 3
"""


def results(table):
    """Step, loss, gradient norm and rate of each line: what does not depend on time."""
    return [line.split()[:4] for line in table.splitlines()]


class TrainTraceTest(unittest.TestCase):
    strata = ""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        with open(self.path("config.toml"), "w", encoding="utf-8") as file:
            file.write(CONFIG)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def run_strata(self, *words):
        result = subprocess.run([self.strata, *words], cwd=self.folder.name, capture_output=True, text=True,
                                timeout=120, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def train(self, trace, *options):
        return self.run_strata("train", "config.toml", "--trace", trace, *options)

    def ls(self, trace):
        (run,) = json.loads(self.run_strata("ls", trace, "--json"))["runs"]
        return run

    def test_what_ran_is_the_graph_that_the_last_changing_pass_left(self):
        self.train("t.strata")
        run = self.ls("t.strata")
        self.assertEqual((run["kind"], run["status"]), ("train", "finished"))
        graphs = {graph["name"]: graph for graph in run["graphs"]}
        self.assertEqual(sorted(graphs), ["optimizer", "step"])
        executed = {entry["graph"]: entry for entry in run["executed"]}
        self.assertEqual(sorted(executed), ["optimizer", "step"])
        for name, entry in executed.items():
            self.assertEqual((entry["first_step"], entry["last_step"]), (1, 3))
            self.assertEqual(entry["fingerprint"], graphs[name]["fingerprint"])
        changed = [p for p in run["passes"] if p["graph"] == "step" and p["status"] == "ok"]
        self.assertEqual(executed["step"]["pass"], changed[-1]["index"])
        self.assertEqual(executed["step"]["fingerprint"], changed[-1]["after"]["fingerprint"])

    def test_without_passes_the_traced_graph_runs_and_trains_the_same(self):
        table = self.train("plain.strata", "--passes", "")
        self.assertEqual(results(table), results(self.train("passes.strata")))
        run = self.ls("plain.strata")
        self.assertEqual(run["passes"], [])
        for entry in run["executed"]:
            self.assertIsNone(entry["pass"])
        self.assertNotEqual(run["executed"][0]["fingerprint"], self.ls("passes.strata")["executed"][0]["fingerprint"])

    def test_the_same_run_records_the_same_graphs(self):
        first, second = (self.train(name) for name in ("a.strata", "b.strata"))
        self.assertEqual(results(first), results(second))
        for selector in ("graph=step", "graph=optimizer", "graph=step,pass=canonicalize:before"):
            self.assertEqual(self.run_strata("show", f"a.strata#{selector}"),
                             self.run_strata("show", f"b.strata#{selector}"))

    def test_the_graphs_of_a_trace_are_read_back_and_its_file_is_sound(self):
        self.train("t.strata")
        self.run_strata("check", "t.strata")
        text = self.run_strata("show", "t.strata#graph=step")
        for part in ("aten._scaled_dot_product_flash_attention_for_cpu.default", "layers.1.feed_forward.w2", "backward"):
            self.assertIn(part, text)

    def test_a_model_is_traced_without_training_it(self):
        self.run_strata("trace", "config.toml", "-o", "traced.strata")
        run = self.ls("traced.strata")
        self.assertEqual((run["kind"], run["status"], run["executed"]), ("opt", "finished", []))
        self.train("trained.strata", "--passes", "dce,canonicalize")
        fingerprints = [{g["name"]: g["fingerprint"] for g in self.ls(t)["graphs"]} for t in
                        ("traced.strata", "trained.strata")]
        self.assertEqual(*fingerprints)
        text = self.run_strata("trace", "config.toml")
        self.assertIn("graph step\n", text)
        self.assertIn("graph optimizer\n", text)

    def test_graphs_of_a_gpu_are_traced_without_one(self):
        text = self.run_strata("trace", "config.toml", "--set", "training.mixed_precision_param=bfloat16", "--gpu", "9.0",
                               "--passes", "dce,canonicalize,fuse,cuda-graph")
        for part in ("cuda:0", "aten._scaled_dot_product_flash_attention.default", "aten._fused_rms_norm.default",
                     "aten._fused_adamw_.tensor_lr", "cuda_graph='full'"):
            self.assertIn(part, text)
        self.assertNotIn("]cpu", text)

    def test_a_trace_that_has_no_room_does_not_end_the_training(self):
        options = ["--passes", "dce,canonicalize", "--set", "steps=300"]
        plain = self.train("whole.strata", *options)
        for kilobytes, steps_recorded in ((70, False), (200, True)):
            limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (kilobytes * 1024, kilobytes * 1024))  # noqa: E731, B023
            trace = f"t{kilobytes}.strata"
            result = subprocess.run([self.strata, "train", "config.toml", *options, "--trace", trace],
                                    cwd=self.folder.name, capture_output=True, text=True, timeout=120, check=False,
                                    preexec_fn=limit)
            self.assertEqual((result.returncode, results(result.stdout)), (0, results(plain)), result.stderr)
            self.assertEqual(result.stderr,
                             f"strata: warning: file size limit reached: {trace}: raise the limit (ulimit -f); the trace "
                             "ends incomplete, the training continues without it\n")
            self.assertIn("sound", self.run_strata("check", trace))
            run = self.ls(trace)
            self.assertEqual((run["status"], run["ended"]),
                             ("failed", f"file size limit reached: {trace}: raise the limit (ulimit -f)"))
            self.assertEqual(os.listdir(self.folder.name).count(trace + "-wal"), 0)
            self.assertEqual(bool(run["executed"]), steps_recorded)
            if steps_recorded:
                self.assertIn(run["executed"][0]["last_step"], range(1, 300))

    def test_the_configuration_chooses_steps_to_profile(self):
        self.train("t.strata", "--set", "steps=7", "--set", "profiler.enable_profiling=true", "--set",
                   "profiler.profile_freq=3", "--set", "profiler.profiler_warmup=1", "--set", "profiler.profiler_active=2")
        profile = json.loads(self.run_strata("profile", "t.strata#graph=step", "--json"))
        self.assertEqual((profile["first_step"], profile["last_step"], profile["steps"]), (2, 6, 4))
        text = self.run_strata("profile", "t.strata#graph=step", "--top", "1")
        total = sum(row["time_ns"] for row in profile["rows"])
        self.assertTrue(text.startswith(f"graph step, 4 of steps 2 to 6: {total / 4000:.1f} us a step\n"), text)
        self.assertGreater(min(row["time_ns"] for row in profile["rows"]), 0)
        result = subprocess.run([self.strata, "train", "config.toml", "--set", "profiler.enable_profiling=true"],
                                cwd=self.folder.name, capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual((result.returncode, result.stderr),
                         (2, "strata: error: nothing to record into: profiler.enable_profiling: give --trace\n"))

    def test_the_default_run_has_kernels_and_names_another_pipeline_in_the_configuration(self):
        self.train("t.strata")
        self.assertEqual(self.ls("t.strata")["pipeline"], "dce,canonicalize,fuse")
        self.assertIn("strata.fused.default", self.run_strata("show", "t.strata#graph=step"))
        self.train("c.strata", "--compile.passes", "canonicalize,dce")
        self.assertEqual(self.ls("c.strata")["pipeline"], "canonicalize,dce")
        self.train("f.strata", "--compile.passes", "canonicalize,dce", "--passes", "dce")
        self.assertEqual(self.ls("f.strata")["pipeline"], "dce")
        self.run_strata("trace", "config.toml", "--compile.passes", "canonicalize", "-o", "g.strata")
        self.assertEqual(self.ls("g.strata")["pipeline"], "canonicalize")

    def test_a_line_has_rate_speed_memory_and_time(self):
        head, *lines = (line.split() for line in self.train("t.strata", "--optimizer.lr=0.25").splitlines())
        self.assertEqual(head, ["step", "loss", "grad_norm", "lr", "tokens/s", "GiB", "s"])
        self.assertEqual([line[3] for line in lines], ["2.5000e-01"] * 3)
        for line in lines:
            self.assertGreater(float(line[4]), 0)
            self.assertGreater(float(line[5]), 0.001)
        times = [float(line[6]) for line in lines]
        self.assertEqual(times, sorted(times))

    def test_what_the_run_was_told_is_told(self):
        self.run_strata("train", "config.toml", "--set", "steps=1", "--set", "debug.save_config_file=told.json", "--set",
                        "optimizer.lr=0.5", "--set", "dump_folder=out")
        with open(self.path("out/told.json"), encoding="utf-8") as file:
            told = json.load(file)
        self.assertEqual((told["steps"], told["dim"], told["optimizer"]), (1, 16, {"lr": 0.5}))
        self.run_strata("train", "out/told.json")  # and trains again

    def write_batches(self, name, sizes):
        """tokens.0, tokens.1, … of [batch, seq + 1]."""
        chance, header, data = random.Random(3), {}, b""
        for i, (rows, seq) in enumerate(sizes):
            ids = [chance.randrange(24) for _ in range(rows * (seq + 1))]
            blob = struct.pack(f"<{len(ids)}q", *ids)
            header[f"tokens.{i}"] = {"dtype": "I64", "shape": [rows, seq + 1],
                                     "data_offsets": [len(data), len(data) + len(blob)]}
            data += blob
        text = json.dumps(header).encode()
        with open(self.path(name), "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text + data)

    def losses(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return [json.loads(line)["loss"] for line in file]

    def test_one_graph_trains_batches_of_many_sizes(self):
        sizes = [(2, 6), (1, 6), (5, 3)]
        self.write_batches("tokens", sizes)
        options = ["--set", "compile.symbolic_dims=batch_and_seq", "--set", "rope.max_seq_len=6", "--passes", ""]
        self.train("t.strata", "--tokens", "tokens", "--metrics", "m", *options)
        executed = {entry["graph"]: entry for entry in self.ls("t.strata")["executed"]}
        self.assertEqual((executed["step"]["first_step"], executed["step"]["last_step"]), (1, 3))
        text = self.run_strata("show", "t.strata#graph=step")
        self.assertIn("symbol s0 hint=2 min=1\n", text)
        self.assertIn("i64[s0, s1][s1, 1]cpu", text)
        # The first step is that of a graph for its size alone.
        self.write_batches("first", sizes[:1])
        self.train("first.strata", "--tokens", "first", "--metrics", "f", "--set", "steps=1", "--set",
                   "rope.max_seq_len=6", "--passes", "")
        self.assertEqual(self.losses("m")[:1], self.losses("f"))
        # What was recorded runs at any of the sizes.
        self.train("t2.strata", "--tokens", "tokens", "--dump-inputs", "in", *options)
        output = self.run_strata("run", "t2.strata#graph=step", "--inputs", "in")
        self.assertIn("embedding", output)
        self.assertIn("0 differ", self.run_strata("compare-values", "t2.strata#graph=step", "first.strata#graph=step",
                                                  "--inputs", "in"))

    def test_batches_of_other_sizes_are_refused_when_sizes_are_not_open(self):
        self.write_batches("tokens", [(2, 6), (1, 6), (2, 6)])
        result = subprocess.run([self.strata, "train", "config.toml", "--tokens", "tokens"], cwd=self.folder.name,
                                capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(result.returncode, 2)
        self.assertEqual(result.stderr, "strata: error: batch_size of a batch is 1, not 2: tokens: tokens.1: give batches "
                                        "of one size, or leave it open with compile.symbolic_dims=batch\n")


if __name__ == "__main__":
    TrainTraceTest.strata = os.path.abspath(sys.argv.pop(1))
    unittest.main()
