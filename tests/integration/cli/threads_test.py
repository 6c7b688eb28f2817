"""Threads inside operators: one default, `--threads` everywhere, recorded in traces and checkpoints.

    threads_test.py STRATA
"""

import json
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))

from strata_case import StrataCase, main  # noqa: E402

CONFIG = """\
model = "llama3"
dim = 16
n_layers = 1
n_heads = 2
vocab_size = 24
multiple_of = 8
seq_len = 6
batch_size = 2
steps = 2
[checkpoint]
enable = true
interval = 1
last_save_model_only = false
"""

GRAPH = """\
def forward(self, x: "f32[4][1]cpu"):
    add: "f32[4][1]cpu" = torch.ops.aten.add.Tensor(x, x)
    mul: "f32[4][1]cpu" = torch.ops.aten.mul.Tensor(x, 1.0)
    return (add,)
"""


class ThreadsTest(StrataCase):

    def setUp(self):
        super().setUp()
        self.write("config.toml", CONFIG)
        self.write("a.txt", GRAPH)
        self.runs = 0

    def works(self, *words, processors=None, **environment):
        """What a command that succeeds writes to stdout, started on some processors."""
        kept = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
        done = subprocess.run([self.strata, *words], text=True, capture_output=True, cwd=self.folder, check=False,
                              timeout=120, env={**kept, **environment},
                              preexec_fn=lambda: processors and os.sched_setaffinity(0, processors))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.stderr = done.stderr
        return done.stdout

    def train(self, *options, **how):
        """The number that a run of its own records."""
        self.runs += 1
        self.works("train", "config.toml", "--set", f"dump_folder=out{self.runs}", "--trace", "t.strata", *options, **how)
        return self.recorded("t.strata")

    def recorded(self, trace):
        (run,) = json.loads(self.works("ls", trace, "--json"))["runs"]
        return run.get("threads")

    def checkpoint(self, step):
        return json.loads(self.read(f"out{self.runs}/checkpoint/step-{step}/checkpoint.json"))

    def test_the_default_is_the_number_of_cores_that_the_process_may_use(self):
        processors = sorted(os.sched_getaffinity(0))
        self.assertEqual(self.train(processors={processors[0]}), 1)
        self.assertLessEqual(self.train(), len(processors))

    def test_omp_num_threads_is_honoured_and_the_flag_comes_first(self):
        self.assertEqual(self.train(OMP_NUM_THREADS="2"), 2)
        self.assertEqual(self.train(OMP_NUM_THREADS="3,2"), 3)
        self.assertEqual(self.train("--threads", "4", OMP_NUM_THREADS="2"), 4)

    def environment_of_a_training(self, **environment):
        """What the program that trains was started with."""
        self.write("long.toml", CONFIG.split("[checkpoint]", maxsplit=1)[0].replace("steps = 2", "steps = 1000000"))
        process = subprocess.Popen([self.strata, "train", self.path("long.toml")], stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL, env={**os.environ, **environment})
        try:
            process.stdout.readline()  # it trains
            with open(f"/proc/{process.pid}/environ", encoding="utf-8") as file:
                return dict(entry.split("=", 1) for entry in file.read().split("\0") if entry)
        finally:
            process.kill()
            process.communicate()

    def test_waiting_threads_leave_their_cores_to_others_unless_the_user_decides(self):
        self.assertEqual(self.environment_of_a_training()["GOMP_SPINCOUNT"], "1000")
        self.assertEqual(self.environment_of_a_training(GOMP_SPINCOUNT="7")["GOMP_SPINCOUNT"], "7")
        self.assertNotIn("GOMP_SPINCOUNT", self.environment_of_a_training(OMP_WAIT_POLICY="active"))

    def test_memory_is_asked_for_in_huge_pages_unless_the_user_decides(self):
        self.assertEqual(self.environment_of_a_training()["GLIBC_TUNABLES"], "glibc.malloc.hugetlb=1")
        self.assertEqual(self.environment_of_a_training(GLIBC_TUNABLES="glibc.malloc.hugetlb=0")["GLIBC_TUNABLES"],
                         "glibc.malloc.hugetlb=0")

    def test_a_trace_tells_it_in_text_too(self):
        self.train("--threads", "3")
        self.assertIn("\n  threads: 3\n", self.works("ls", "t.strata"))

    def test_passes_that_are_proved_are_executed_and_others_are_not(self):
        self.works("opt", "a.txt", "--passes", "dce", "-o", "o.strata", "--prove", "--threads", "2")
        self.assertEqual(self.recorded("o.strata"), 2)
        self.works("opt", "a.txt", "--passes", "dce", "-o", "o.strata", "--prove", OMP_NUM_THREADS="3")
        self.assertEqual(self.recorded("o.strata"), 3)
        self.works("opt", "a.txt", "--passes", "dce", "-o", "o.strata")
        self.assertIsNone(self.recorded("o.strata"))
        self.works("trace", "config.toml", "-o", "s.strata")
        self.assertIsNone(self.recorded("s.strata"))

    def test_every_command_that_executes_takes_the_flag(self):
        self.works("run", "a.txt", "--threads", "2")
        self.works("compare-values", "a.txt", "a.txt", "--threads", "2")
        for words in (("run", "a.txt"), ("compare-values", "a.txt", "a.txt"), ("train", "config.toml"),
                      ("opt", "a.txt", "--passes", "dce", "--prove"), ("bench", "train")):
            for value, bound in (("0", "at least 1"), ("1025", "at most 1024")):
                verb = " ".join(words[:2] if words[0] == "bench" else words[:1])
                self.assertEqual(self.fails(*words, "--threads", value),
                                 f"--threads must be {bound}: strata {verb}: see 'strata {verb} --help'")

    def test_a_resumed_run_with_another_number_warns(self):
        self.train("--threads", "2")
        self.assertEqual(self.checkpoint(2)["threads"], 2)
        folder = f"dump_folder=out{self.runs}"
        self.works("train", "config.toml", "--resume", "--set", folder, "--set", "steps=3", "--threads", "2")
        self.assertEqual(self.stderr, "")
        self.works("train", "config.toml", "--resume", "--set", folder, "--set", "steps=4", "--threads", "3")
        self.assertEqual(self.stderr, "strata: warning: written by a run with --threads 2, this one has 3: "
                         f"out{self.runs}/checkpoint/step-3: sums may round differently, --threads 2 keeps the bits\n")
        # Later checkpoints hold the number of the run that wrote them.
        self.assertEqual(self.checkpoint(4)["threads"], 3)

    def test_a_checkpoint_that_does_not_say_is_resumed_without_a_warning(self):
        self.train("--threads", "2")
        content = self.checkpoint(2)
        del content["threads"]
        self.write(f"out{self.runs}/checkpoint/step-2/checkpoint.json", json.dumps(content))
        self.works("train", "config.toml", "--resume", "--set", f"dump_folder=out{self.runs}", "--set", "steps=3",
                   "--threads", "3")
        self.assertEqual(self.stderr, "")


if __name__ == "__main__":
    main()
