"""Trainings whose ranks are processes: the files of ranks that are threads, and what happens when one is gone.

    processes_test.py STRATA [KILLS]

KILLS is how often a rank is killed, after times that a seeded generator draws (default: 3); each kill is reported in a line.
"""

import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))

from strata_case import StrataCase, main, sets  # noqa: E402

CONFIG = """\
model = "llama3"
dim = 32
n_layers = 2
n_heads = 4
n_kv_heads = 2
vocab_size = 48
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
FSDP_TP = sets("parallelism.data_parallel_shard_degree=2", "parallelism.tensor_parallel_degree=2", "batch_size=4")
PIPELINE = sets("parallelism.pipeline_parallel_degree=2", "parallelism.num_pp_microbatches=4")
PIPELINES = {
    "one stage a rank": (PIPELINE, 2),
    "split backward, two stages a rank": ([*PIPELINE, *sets("n_layers=4", "parallelism.pipeline_parallel_schedule=ZBVZeroBubble")], 2),
    "sharded stages": ([*PIPELINE, *sets("parallelism.data_parallel_shard_degree=2", "batch_size=4")], 4),
    "stages with tensor parallelism": ([*PIPELINE, *sets("parallelism.tensor_parallel_degree=2")], 4),
}
LONG = sets("steps=100000", "checkpoint.interval=50")


def children(pid):
    """Ids of the processes that `pid` started."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8") as file:
                if int(file.read().rsplit(")", 1)[1].split()[1]) == pid:
                    found.append(int(name))
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found


def rank_of(pid):
    with open(f"/proc/{pid}/environ", "rb") as file:
        return int(re.search(rb"(?:^|\0)RANK=(\d+)", file.read())[1])


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


class ProcessesTest(StrataCase):
    kills = 3
    reports = False

    def setUp(self):
        super().setUp()
        self.write("config.toml", CONFIG)

    def words(self, name, *options):
        return ["train", "config.toml", *sets(f"dump_folder={name}"), "--threads", "1", "--metrics", f"{name}.jsonl",
                *options]

    def train(self, name, *options):
        done = self.run_strata(*self.words(name, *options))
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def table(self, done):
        """What a run prints, without the columns of time and memory."""
        return [line.split()[:3] for line in done.splitlines()]

    def checkpoint(self, name, step):
        folder = f"{name}/checkpoint/step-{step}"
        return {file: self.read(f"{folder}/{file}") for file in sorted(os.listdir(self.path(folder)))
                if file.endswith(".safetensors")}

    def metrics(self, name):
        return [{key: step[key] for key in ("step", "loss", "grad_norm")}
                for step in map(json.loads, self.read(f"{name}.jsonl").splitlines())]

    def test_processes_write_what_threads_write(self):
        for layout, count in ((FSDP, 2), (FSDP_TP, 4)):
            self.check_processes_write_what_threads_write(layout, count)

    def test_pipelines_of_processes_write_what_those_of_threads_write(self):
        for name, (layout, count) in PIPELINES.items():
            with self.subTest(name):
                self.check_processes_write_what_threads_write(layout, count, name)

    def check_processes_write_what_threads_write(self, layout, count, name=""):
        words = lambda run: (*layout, "--dump-grads", f"{run}.grads", "--save", f"{run}.save")  # noqa: E731
        one, other = f"threads{count} {name}", f"processes{count} {name}"
        threads = self.train(one, *words(one))
        processes = self.train(other, *words(other), "--nproc", str(count))
        self.assertEqual(self.table(processes.stdout), self.table(threads.stdout))
        self.assertEqual(processes.stderr, threads.stderr)
        self.assertEqual(self.metrics(other), self.metrics(one))
        for file in ("grads", "save"):
            self.assertEqual(self.read(f"{other}.{file}"), self.read(f"{one}.{file}"))
        for step in (2, 4):
            self.assertEqual(self.checkpoint(other, step), self.checkpoint(one, step))

    def test_a_run_goes_on_as_processes_and_back_as_threads(self):
        self.train("whole", *FSDP)
        self.train("moved", *FSDP, *sets("steps=2"))
        self.train("moved", *FSDP, *sets("steps=3"), "--resume", "--nproc", "2")
        self.train("moved", *FSDP, "--resume")
        self.assertEqual(self.metrics("moved"), self.metrics("whole"))
        self.assertEqual(self.checkpoint("moved", 4), self.checkpoint("whole", 4))

    def test_one_process_writes_trace_and_validation(self):
        self.train("t", *FSDP, *sets("validator.enable=true", "validator.freq=2", "validator.steps=2"), "--trace",
                   "t.strata", "--nproc", "2")
        listing = self.run_strata("ls", "t.strata").stdout
        self.assertIn('place{mesh="fsdp=2"},lower', listing)
        self.assertIn("run 1: train, ranks 0..1, finished", listing)
        self.assertEqual(self.run_strata("check", "t.strata").returncode, 0)
        self.assertEqual(self.run_strata("ranks", "t.strata").stdout,
                         "2 ranks, 1 class\n  ranks 0, 1  t.strata#run=1\n")
        of_each = [self.run_strata("show", f"t.strata#rank={rank},graph=step") for rank in range(3)]
        self.assertEqual(of_each[0].stdout, of_each[1].stdout)
        self.assertEqual((of_each[2].returncode, of_each[2].stderr),
                         (2, "strata: error: no rank '2': t.strata: it has 0..1\n"))

    def test_ranks_are_inferred_from_the_number_of_processes(self):
        self.train("inferred", *sets("parallelism.data_parallel_shard_degree=-1", "batch_size=4"), "--nproc", "2")
        self.train("given", *FSDP)
        self.assertEqual(self.metrics("inferred"), self.metrics("given"))
        self.assertIn("but the run has 2", self.fails(
            *self.words("none", *sets("parallelism.data_parallel_shard_degree=1", "batch_size=4"), "--nproc", "2")))

    def launch(self, name, rank, world, port, *options, **environment):
        """A rank as another launcher starts it."""
        return subprocess.Popen([self.strata, *self.words(name, *options)], cwd=self.folder, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True,
                                env={**os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank),
                                     "WORLD_SIZE": str(world), "LOCAL_WORLD_SIZE": str(world),
                                     "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), **environment})

    def free_port(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            return free.getsockname()[1]

    def test_ranks_of_another_launcher_find_each_other(self):
        port = self.free_port()
        ranks = [self.launch("launched", rank, 2, port, *FSDP) for rank in (1, 0)]
        outputs = [rank.communicate(timeout=120) for rank in ranks]
        self.assertEqual([rank.returncode for rank in ranks], [0, 0], outputs)
        threads = self.train("threads", *FSDP)
        self.assertEqual(outputs[0], ("", ""))
        self.assertEqual(self.table(outputs[1][0]), self.table(threads.stdout))
        self.assertEqual(self.metrics("launched"), self.metrics("threads"))

    def differ(self, name, *ranks):
        """What two ranks with other options each say, but for the beginning and the end."""
        port = self.free_port()
        started = [self.launch(name, rank, 2, port, *FSDP, *options) for rank, options in enumerate(ranks)]
        said = []
        for rank, process in enumerate(started):
            stderr = process.communicate(timeout=120)[1]
            self.assertEqual(process.returncode, 2, stderr)
            match = re.search(f"rank {rank}: ranks have different graphs: rank {rank} and ranks {1 - rank}: (.*): start "
                              "all with the same program and configuration", stderr)
            self.assertTrue(match, stderr)
            said.append(match[1])
        return said

    def test_ranks_with_different_configurations_stop(self):
        self.differ("differing", sets("n_layers=1"), sets("n_layers=2"))

    def test_collectives_that_differ_are_named_with_the_nodes_of_both_ranks(self):
        call = r"'(\w+)\((.+)\) over (\S+) in (\w+) of graph step'"
        for what, group, options in (("node", 4, "parallelism.fsdp_reshard_after_forward=never"),
                                     ("shape", 2, 'compile.disable_passes=["bucket-transformer-blocks"]'),
                                     ("group", 3, "compile.enable_fsdp_ag_rs_overlap=true")):
            with self.subTest(what):
                first, second = self.differ(what, [], sets(options))
                ours = re.fullmatch(f"{call} and {call}", first)
                self.assertTrue(ours, first)
                self.assertNotEqual(ours[group], ours[group + 4])
                self.assertEqual(second, " and ".join(reversed(first.split(" and "))))

    def start(self, name, count, *options):
        """A run of that many processes, all past their first step, after which comm.train_timeout_seconds holds;
        returns it and the processes by rank."""
        run = subprocess.Popen([self.strata, *self.words(name, *options, "--nproc", str(count))], cwd=self.folder,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(run.communicate)
        self.addCleanup(run.kill)
        end = time.monotonic() + 120
        steps = self.path(f"{name}.jsonl.partial")
        while not os.path.exists(steps) or self.read(f"{name}.jsonl.partial").count(b"\n") < 2:
            self.assertIsNone(run.poll())
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)
        return run, {rank_of(pid): pid for pid in children(run.pid)}

    def report(self, line):
        """With a number of kills, what happened is the result."""
        if self.reports:
            print(line, flush=True)

    def check_end(self, run, ranks, gone, where=r"over (fsdp|tp|fsdp\+tp)\b"):
        """All processes end, and every other rank names the one that is gone, and what it waited in."""
        stderr = run.communicate(timeout=120)[1]
        self.assertEqual(run.returncode, 2, stderr)
        self.assertEqual([pid for pid in ranks.values() if is_alive(pid)], [])
        for rank in ranks:
            if rank == gone:
                continue
            lines = [line for line in stderr.splitlines() if line.startswith(f"strata: error: rank {rank}: ")]
            self.assertEqual(len(lines), 1, stderr)
            self.assertIn(f"rank {gone}", lines[0])
            self.assertRegex(lines[0], where)
        return stderr

    def check_checkpoints(self, name, *options):
        """What is left is whole: the run resumes from it, bitwise as one that was never stopped. Returns the step of
        the last checkpoint, 0: there is none."""
        folder = self.path(f"{name}/checkpoint")
        names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
        last = max([int(step[len("step-"):]) for step in names if re.fullmatch(r"step-\d+", step)], default=0)
        if last == 0:
            return 0
        until = sets(f"steps={last + 1}")
        self.train(name, *options, *until, "--resume")
        self.train(f"{name} whole", *options, *until, *sets(f"checkpoint.interval={last + 1}"))
        self.assertEqual(self.metrics(name), self.metrics(f"{name} whole"))
        self.assertEqual(self.checkpoint(name, last + 1), self.checkpoint(f"{name} whole", last + 1))
        return last

    def resumed(self, name, *options):
        last = self.check_checkpoints(name, *options)
        return f"resumed bitwise from step {last}" if last else "no checkpoint yet"

    def test_a_killed_rank_is_named_by_all_others(self):
        chance = random.Random(11)
        for kill in range(self.kills):
            name, gone = f"killed{kill}", chance.randrange(4)
            run, ranks = self.start(name, 4, *FSDP_TP, *LONG, *sets("checkpoint.interval=1"))
            moment = chance.uniform(0, 0.4)
            time.sleep(moment)
            start = time.monotonic()
            os.kill(ranks[gone], signal.SIGKILL)
            stderr = self.check_end(run, ranks, gone)
            seconds = time.monotonic() - start
            self.assertIn(f"strata: error: a process was killed: rank {gone}: signal 9 (Killed); the other ranks "
                          "stopped", stderr)
            self.report(f"kill {kill + 1}: rank {gone} after {moment:.3f} s: named by the 3 others, all ended after "
                        f"{seconds:.3f} s, {self.resumed(name, *FSDP_TP)}")

    def test_a_killed_rank_of_a_pipeline_is_named_by_all_others(self):
        chance = random.Random(12)
        for layout_name in ("sharded stages", "stages with tensor parallelism"):
            layout, count = PIPELINES[layout_name]
            for kill in range(max(1, self.kills // 3)):
                name, gone, moment = f"{layout_name} {kill}", chance.randrange(count), chance.uniform(0, 0.4)
                run, ranks = self.start(name, count, *layout, *LONG, *sets("checkpoint.interval=1"))
                time.sleep(moment)
                start = time.monotonic()
                os.kill(ranks[gone], signal.SIGKILL)
                self.check_end(run, ranks, gone, where=r"over |receiving |sending |gather of |description of ")
                seconds = time.monotonic() - start
                self.report(f"{name}: rank {gone} after {moment:.3f} s: named by the 3 others, all ended after "
                            f"{seconds:.3f} s, {self.resumed(name, *layout)}")

    def test_a_stalled_rank_is_named_after_the_timeout(self):
        run, ranks = self.start("stalled", 4, *FSDP_TP, *LONG, *sets("comm.train_timeout_seconds=3"))
        os.kill(ranks[2], signal.SIGSTOP)
        stderr = self.check_end(run, ranks, 2)
        # Ranks also wait for each other between steps, where no graph runs.
        self.report("stall: rank 2: named by the 3 others")
        self.assertRegex(stderr, r"waited 3 s in (\S+\(.*\) over \S+ in \S+ of graph (step|optimizer), .*"
                                 r"|agreement to go on over fsdp\+tp) for rank \d")
        self.check_checkpoints("stalled", *FSDP_TP)

    def test_what_is_sent_to_an_ended_rank_does_not_kill_the_sender(self):
        _, ranks = self.start("pipes", 2, *FSDP, *LONG)
        for pid in ranks.values():
            with open(f"/proc/{pid}/status", encoding="utf-8") as file:
                ignored = int(re.search(r"SigIgn:\s*(\w+)", file.read())[1], 16)
            self.assertTrue(ignored & 1 << (signal.SIGPIPE - 1))

    def test_ranks_end_with_their_launcher(self):
        run, ranks = self.start("orphans", 2, *FSDP, *LONG)
        run.kill()
        run.communicate()
        end = time.monotonic() + 10
        while any(is_alive(pid) for pid in ranks.values()):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)
        self.check_checkpoints("orphans", *FSDP)

    def test_an_interrupt_ends_all_ranks_after_the_same_step(self):
        run, ranks = self.start("interrupted", 2, *FSDP, *LONG)
        run.send_signal(signal.SIGINT)
        stderr = run.communicate(timeout=120)[1]
        self.assertEqual(run.returncode, -signal.SIGINT, stderr)
        self.assertEqual([pid for pid in ranks.values() if is_alive(pid)], [])
        step = int(re.search(r"rank 0: interrupted: after step (\d+) of 100000: continue with --resume", stderr)[1])
        self.assertEqual(stderr.count("error:"), 1, stderr)
        self.assertEqual([metric["step"] for metric in self.metrics("interrupted")], list(range(1, step + 1)))
        self.train("interrupted", *FSDP, *sets(f"steps={step + 1}"), "--resume")

    def test_a_rank_that_cannot_write_stops_the_others(self):
        self.write("full/checkpoint", "a file where a folder belongs")
        done = self.run_strata(*self.words("full", *FSDP, "--nproc", "2"))
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertRegex(done.stderr, r"strata: error: rank 0: (?!rank 1)")
        self.assertRegex(done.stderr, r"strata: error: rank 1: .*rank 0 ended while rank 1 waited for it in .*full")

    def test_a_launcher_that_started_another_number_is_an_error(self):
        rank = self.launch("other", 0, 4, 1, *FSDP, "--nproc", "2")
        self.assertIn("the launcher started another number of processes: --nproc 2: WORLD_SIZE is 4",
                      rank.communicate(timeout=60)[1])


if __name__ == "__main__":
    if len(sys.argv) > 2 and sys.argv[2].isdigit():
        ProcessesTest.kills = int(sys.argv.pop(2))
        ProcessesTest.reports = True
    main()
