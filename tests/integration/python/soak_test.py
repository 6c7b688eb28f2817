"""Ten thousand recorded passes, several processes and threads, and surroundings that fail: what a recording leaves behind."""

import gc
import json
import multiprocessing
import operator
import os
import resource
import subprocess
import sys
import tempfile
import textwrap
import threading
import unittest
import warnings
import weakref

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import torch_python  # noqa: E402

torch_python.need()

import torch  # noqa: E402
from torch import fx  # noqa: E402

import strata  # noqa: E402

PASSES = 10_000


def model(x):
    return torch.relu(x + 1) * 2


@strata.watch
def swap(gm):
    """Another operator in place of the one that is there."""
    for node in gm.graph.nodes:
        if node.target in (torch.relu, torch.sigmoid):
            with gm.graph.inserting_after(node):
                new = gm.graph.call_function(torch.sigmoid if node.target is torch.relu else torch.relu, node.args)
            node.replace_all_uses_with(new)
            gm.graph.erase_node(node)
            break


@strata.watch
def double(gm):
    for node in gm.graph.nodes:
        if node.target is operator.mul:
            node.args = (node.args[0], node.args[1] * 2)


def resident():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Case(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.trace = os.path.join(self.folder, "run.strata")

    def strata(self, *words, ok=(0,)):
        done = subprocess.run([STRATA, *words], capture_output=True, text=True, cwd=self.folder, check=False, timeout=240)
        self.assertIn(done.returncode, ok, done.stderr)
        return done.stdout

    def runs(self):
        return json.loads(self.strata("ls", self.trace, "--json"))["runs"]

    def python(self, script, ok=0, **environment):
        done = subprocess.run([sys.executable, "-B", "-W", "ignore", "-c", textwrap.dedent(script)], capture_output=True,
                              text=True, cwd=self.folder, check=False, timeout=240,
                              env={**os.environ, "STRATA_BIN": STRATA, **environment})
        self.assertEqual(done.returncode, ok, done.stderr)
        return done.stdout


class SoakTest(Case):

    def test_ten_thousand_passes_leave_no_memory_behind_and_a_file_that_is_linear(self):  # PY-21
        sizes, memory, graphs = [], [], []
        lasting = fx.symbolic_trace(model)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with strata.record(self.trace, keep=True) as run:
                [path] = [os.path.join(run.folder, name) for name in os.listdir(run.folder)]
                for number in range(PASSES // 2):
                    fresh = fx.symbolic_trace(model)
                    double(fresh)
                    swap(lasting)
                    if number % 100 == 0:
                        graphs.append(weakref.ref(fresh.graph))
                    if (number + 1) % (PASSES // 10) == 0:
                        del fresh
                        gc.collect()
                        sizes.append(os.path.getsize(path))
                        memory.append(resident())
            self.assertEqual(run.passes, PASSES)
        gc.collect()
        self.assertEqual([graph() for graph in graphs if graph() is not None], [])
        self.assertEqual([key for node in lasting.graph.nodes for key in node.__dict__ if key.startswith("_strata")], [])
        pieces = [after - before for before, after in zip(sizes, sizes[1:])]
        self.assertLess(max(pieces), 1.1 * min(pieces), sizes)
        print(f"{PASSES} passes: {sizes[-1]} bytes, {pieces} bytes of each fifth; resident memory {memory}")
        # 8,000 passes after the first 2,000. torch.fx keeps the nodes that were erased, by their names, and the code of
        # every module, 1 KB a pass; a graph that is kept has 10 KB.
        self.assertLess(memory[-1] - memory[0], 16_000_000, memory)
        [stored] = self.runs()
        self.assertEqual(len(stored["passes"]), PASSES)
        self.assertEqual({item["status"] for item in stored["passes"]}, {"ok"})


class ProcessesTest(Case):

    def test_a_forked_child_writes_a_file_of_its_own(self):  # PY-23
        gm = fx.symbolic_trace(model)
        with strata.record(self.trace) as run:
            swap(gm)
            child = os.fork()
            if child == 0:
                swap(gm)
                double(gm)
                os._exit(0)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            double(gm)
        self.assertEqual(len(os.listdir(run.folder)), 2)
        self.strata("import", "--strict", run.folder, "-o", self.trace)
        runs = sorted(self.runs(), key=lambda stored: [item["name"] for item in stored["passes"]])
        self.assertEqual([[item["name"] for item in stored["passes"]] for stored in runs],
                         [["swap", "double"], ["swap", "double"]])
        for stored in runs:
            for item, change in zip(stored["passes"], ("inserted", "changed")):
                self.assertEqual(item["counts"][change], 1, item)
                self.assertEqual((item["before"]["nodes"], item["after"]["nodes"]), (5, 5))

    def test_a_fork_inside_of_a_pass_is_the_parent_s_pass(self):
        @strata.watch
        def forks(gm):
            child = os.fork()
            swap(gm)
            if child == 0:
                return gm
            os.waitpid(child, 0)
            return gm

        gm = fx.symbolic_trace(model)
        parent = os.getpid()
        with strata.record(self.trace) as run:
            forks(gm)
            if os.getpid() != parent:
                double(gm)
                os._exit(0)
        self.strata("import", "--strict", run.folder, "-o", self.trace)
        self.assertEqual(sorted([item["name"] for item in stored["passes"]] for stored in self.runs()),
                         [["forks"], ["swap", "double"]])

    def test_workers_of_multiprocessing(self):  # PY-23
        for method in ("fork", "spawn"):
            with self.subTest(method):
                out = self.python(f"""
                    import multiprocessing, os, sys
                    sys.path.insert(0, {os.path.dirname(os.path.abspath(__file__))!r})
                    import torch, worker_of_soak as worker
                    import strata
                    if __name__ == "__main__":
                        with strata.record("{method}.strata", keep=True) as run:
                            with multiprocessing.get_context("{method}").Pool(3) as pool:
                                print(sum(pool.map(worker.work, range(12))))
                            worker.work(0)
                        print(len(os.listdir(run.folder)))
                    """)
                nodes, files = map(int, out.split())
                # Workers that are spawned are new programs: they record when they open a recording.
                self.assertEqual((nodes, files), (12 * 5, 4 if method == "fork" else 1))
                self.trace = os.path.join(self.folder, method + ".strata")
                self.strata("import", "--strict", self.trace + ".d", "-o", self.trace)
                passes = sorted(len(stored["passes"]) for stored in self.runs())
                self.assertEqual(sum(passes), 13 if method == "fork" else 1)

    def test_ranks_write_their_own_files_and_one_command_joins_them(self):
        script = """
            import torch, strata
            from torch import fx
            gm = fx.symbolic_trace(lambda x: torch.relu(x) + 1)
            @strata.watch
            def one(gm):
                for node in gm.graph.nodes:
                    if node.target is torch.relu:
                        node.target = torch.sigmoid
            with strata.record("run.strata"):
                one(gm)
            """
        ranks = [subprocess.Popen([sys.executable, "-B", "-W", "ignore", "-c", textwrap.dedent(script)], cwd=self.folder,
                                  env={**os.environ, "STRATA_BIN": STRATA, "RANK": str(rank), "WORLD_SIZE": "4"})
                 for rank in range(4)]
        self.assertEqual([rank.wait(timeout=240) for rank in ranks], [0, 0, 0, 0])
        self.assertFalse(os.path.exists(self.trace))
        self.assertEqual(len(os.listdir(self.trace + ".d")), 4)
        self.strata("import", "--strict", "run.strata.d", "-o", "run.strata")
        self.assertEqual(sorted((stored["rank"], len(stored["passes"])) for stored in self.runs()),
                         [(0, 1), (1, 1), (2, 1), (3, 1)])
        self.assertEqual(json.loads(self.strata("ranks", "run.strata", "--json"))["classes"], [[0, 1, 2, 3]])

    def test_threads_record_side_by_side(self):  # PY-23
        failures = []

        modules = [fx.symbolic_trace(model) for _ in range(4)]  # tracing patches classes: it is for one thread

        def work(gm):
            try:
                for _ in range(50):
                    swap(gm)
                    double(gm)
            except Exception as error:
                failures.append(error)

        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with strata.record(self.trace):
                threads = [threading.Thread(target=work, args=(gm,)) for gm in modules]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
        self.assertEqual(failures, [])
        [stored] = self.runs()
        passes = {}
        for item in stored["passes"]:
            passes.setdefault(item["graph"], []).append((item["name"], item["status"]))
        self.assertEqual([len(items) for items in passes.values()], [100] * 4)
        self.assertEqual({status for items in passes.values() for _, status in items}, {"ok"})


class SurroundingsTest(Case):

    COMPILE = """
        import os, resource, shutil, signal, sys, warnings
        import torch, strata
        from torch import fx
        torch.manual_seed(0)
        x = torch.randn(8)
        gm = fx.symbolic_trace(lambda x: torch.relu(x) + 1)
        @strata.watch
        def many(gm):
            for node in list(gm.graph.nodes):
                if node.target is torch.relu:
                    for _ in range(300):
                        with gm.graph.inserting_after(node):
                            node = gm.graph.call_function(torch.neg, (node,))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with strata.record(PATH) as run:
                BEFORE
                many(gm)
                many(gm)
            gm.recompile()
        kinds = sorted(set(str(w.message).split(":")[2].strip() for w in caught))
        print(torch.equal(gm(x), torch.relu(x) + 1), all(w.category is strata.RecordingWarning for w in caught), kinds)
        """

    def compiled(self, path="'run.strata'", before="pass", **environment):
        """What a compile says whose recording fails: (result unchanged, warnings alone, what they are about)."""
        script = textwrap.dedent(self.COMPILE).replace("PATH", path).replace("BEFORE", before)
        return self.python(script, **environment)

    def test_a_full_disk_is_a_warning(self):  # PY-25
        limit = "resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000)); signal.signal(signal.SIGXFSZ, signal.SIG_IGN)"
        out = self.compiled(before=limit)
        self.assertTrue(out.startswith("True True ["), out)
        self.assertIn("cannot write the recording", out)

    def test_a_folder_that_cannot_be_written_is_a_warning(self):
        for path in ("'/proc/nowhere/run.strata'", "'/dev/null/run.strata'"):
            self.assertEqual(self.compiled(path), "True True ['cannot record']\n")

    def test_a_folder_that_is_removed_is_a_warning(self):
        out = self.compiled(before="shutil.rmtree('run.strata.d')")
        self.assertTrue(out.startswith("True True ["), out)
        self.assertIn("the trace was not made", out)

    def test_a_missing_program_is_a_warning_and_the_exchange_file_stays(self):
        out = self.compiled(STRATA_BIN="/nowhere/strata")
        self.assertEqual(out, "True True ['the trace was not made']\n")
        self.strata("import", "--strict", "run.strata.d", "-o", "run.strata")
        self.assertEqual(len(self.runs()[0]["passes"]), 2)

    def test_without_standard_error(self):  # PY-25
        self.assertTrue(self.compiled(before="os.close(2)").startswith("True True"))

    def test_large_constants_are_not_written(self):  # PY-19
        class Large(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.table = torch.nn.Buffer(torch.zeros(20_000_000))

            def forward(self, x):
                return torch.relu(x + self.table[:8]) * 2

        gm = fx.symbolic_trace(Large())
        for node in gm.graph.nodes:
            if node.target is operator.mul:
                node.args = (node.args[0], torch.zeros(5_000_000))  # a tensor in the arguments is legal, too
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with strata.record(self.trace, keep=True) as run:
            swap(gm)
        self.assertLess(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory, 20_000)
        self.assertLess(sum(os.path.getsize(os.path.join(run.folder, name)) for name in os.listdir(run.folder)), 20_000)
        self.assertEqual(self.runs()[0]["passes"][0]["status"], "ok")

    def test_a_graph_that_another_thread_changes_meanwhile(self):  # PY-24
        gm = fx.symbolic_trace(model)
        stop = threading.Event()

        def disturb():
            node = next(iter(gm.graph.nodes))
            while not stop.is_set():
                new = gm.graph.create_node("call_function", torch.neg, (node,))
                gm.graph.erase_node(new)

        thread = threading.Thread(target=disturb)
        with warnings.catch_warnings(record=True):
            warnings.simplefilter("always")
            with strata.record(self.trace):
                thread.start()
                for _ in range(300):
                    swap.__wrapped__(gm)
                    strata.watch(lambda gm: None, name="look")(gm)
                stop.set()
                thread.join()
        self.strata("check", self.trace)
        self.assertGreater(len(self.runs()[0]["passes"]), 0)


if __name__ == "__main__":
    STRATA = os.path.abspath(sys.argv.pop(1))
    os.environ["STRATA_BIN"] = STRATA
    multiprocessing.set_start_method("spawn")
    unittest.main()
