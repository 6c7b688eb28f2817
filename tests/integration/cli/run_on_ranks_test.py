"""Graphs of several ranks are executed outside of a training: on the threads of `strata run`, and by PyTorch.

    run_on_ranks_test.py STRATA
"""

import os
import socket
import struct
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))

from tensor_files import read_tensors  # noqa: E402
from strata_case import StrataCase, main, sets  # noqa: E402

CONFIG = """\
model = "llama3"
dim = 16
n_layers = 2
n_heads = 4
n_kv_heads = 2
multiple_of = 8
vocab_size = 26
seq_len = 8
batch_size = 4
steps = 1
"""


class RunOnRanksTest(StrataCase):
    def runs(self, *words):
        done = self.run_strata(*words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def tensors(self, name):
        """Name -> (dtype, shape, bytes)."""
        return read_tensors(self.path(name))

    def train(self, name, *degrees, batch=4):
        """Writes NAME.strata and NAME.safetensors, the inputs of its graphs. `batch`: of each rank of the data."""
        config = self.write("config.toml", CONFIG.replace("batch_size = 4", f"batch_size = {batch}"))
        self.runs("train", config, *sets(*(f"parallelism.{degree}" for degree in degrees)), "--trace",
                  f"{name}.strata", "--dump-inputs", f"{name}.safetensors", "--threads", "1")

    def numbers(self, tensor):
        _, _, data = tensor
        return struct.unpack(f"<{len(data) // 4}f", data)

    def test_inputs_of_ranks_are_those_of_one_rank(self):
        """Also of a vocabulary that ranks do not divide, in parts that are continued by zeros."""
        self.train("one", "data_parallel_shard_degree=1", batch=8)
        self.train("four", "data_parallel_shard_degree=2", "tensor_parallel_degree=2")
        one, four = self.tensors("one.safetensors"), self.tensors("four.safetensors")
        start = [name for name in one if name.endswith(".weight")] + ["tokens", "labels"]
        self.assertEqual(len(start), 23)
        self.assertEqual([name for name in start if one[name] != four[name]], [])

    def test_a_lowered_graph_gives_what_the_graph_of_one_rank_gives(self):
        self.train("four", "data_parallel_shard_degree=2", "tensor_parallel_degree=2")
        results = {}
        for graph, out in (("graph=step,pass=place:before", "whole"), ("graph=step", "ranks")):
            table = self.runs("run", f"four.strata#{graph}", "--inputs", "four.safetensors", "--outputs",
                              f"{out}.safetensors", "--threads", "1")
            tensors = self.tensors(f"{out}.safetensors")
            results[out] = [tensors[line.split("  ")[0]] for line in table.splitlines()]  # in the graph's order
        whole, ranks = results["whole"], results["ranks"]
        self.assertEqual(len(whole), 22)  # the loss, the gradients of 21 parameters
        self.assertEqual(len(ranks), len(whole))
        for expected, given in zip(whole, ranks):
            self.assertEqual(given[:2], expected[:2])
            largest = max(map(abs, self.numbers(expected)))
            self.assertLess(max(abs(a - b) for a, b in zip(self.numbers(given), self.numbers(expected))),
                            1e-5 * largest)

    def test_values_of_ranks_are_compared(self):
        self.train("four", "data_parallel_shard_degree=2", "tensor_parallel_degree=2")
        lowered, bucketed = "four.strata#graph=step,pass=lower", "four.strata#graph=step"
        for inputs in ([], ["--inputs", "four.safetensors"]):
            text = self.runs("compare-values", lowered, bucketed, *inputs)
            self.assertRegex(text, r"^\d{3} values compared, 0 differ; 0 of 22 outputs differ\n$")
        whole = "four.strata#graph=step,pass=place:before"
        for refs, meshes in (((whole, lowered), ("one rank", "the mesh fsdp=2,tp=2")),
                             ((lowered, whole), ("the mesh fsdp=2,tp=2", "one rank"))):
            text = self.fails("compare-values", *refs)
            self.assertIn("graphs of different ranks: ", text)
            self.assertRegex(text, f" is of {meshes[0]}, .* of {meshes[1]}: ")

    def test_inputs_that_do_not_fit_are_named(self):
        self.train("four", "data_parallel_shard_degree=2", "tensor_parallel_degree=2")
        config = self.write("wide.toml", CONFIG.replace("batch_size = 4", "batch_size = 2"))
        self.runs("train", config, "--dump-inputs", "other.safetensors")
        text = self.fails("run", "four.strata#graph=step", "--inputs", "other.safetensors")
        self.assertIn("input 'tokens' of graph step is [2, 8] in the file, not [8, 8]", text)
        self.assertIn("input 'tokens' of graph step", self.fails(
            "compare-values", "four.strata#graph=step", "four.strata#graph=step,pass=lower", "--inputs",
            "other.safetensors"))

    def test_ranks_whose_inputs_are_not_kept_are_refused(self):
        config = self.write("config.toml", CONFIG)
        for options, why in (
                (sets("parallelism.data_parallel_shard_degree=2") + ["--nproc", "2"], "leave --nproc out"),
                (sets("parallelism.pipeline_parallel_degree=2"), "parallelism.pipeline_parallel_degree: take 1")):
            done = self.run_strata("train", config, *options, "--dump-inputs", "in.safetensors")
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(why, done.stderr)
            self.assertFalse(os.path.exists(self.path("in.safetensors")))

    def run_in_pytorch(self, python, program, num_ranks, inputs, outputs):
        """As torchrun does, which needs more packages."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        processes = [
            subprocess.Popen([python, "-W", "ignore", os.path.join(program, "run.py"), inputs, outputs], cwd=self.folder,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             env={**os.environ, "OMP_NUM_THREADS": "1", "MASTER_ADDR": "127.0.0.1",
                                  "MASTER_PORT": str(port), "RANK": str(rank), "WORLD_SIZE": str(num_ranks)})
            for rank in range(num_ranks)]
        texts = [process.communicate(timeout=120)[0] for process in processes]
        self.assertEqual([process.returncode for process in processes], [0] * num_ranks, "\n".join(texts))

    def test_pytorch_gives_the_bits_of_our_ranks(self):
        """Sums of two ranks are the same in any order. Gloo exchanges no complex numbers, which context parallelism needs."""
        python = os.path.join(ROOT, ".venv-bench", "bin", "python")
        if not os.path.exists(python):
            self.skipTest("needs PyTorch in Python: ./dev setup bench")
        for name, degrees in (("fsdp", ["data_parallel_shard_degree=2"]),
                              ("tp", ["tensor_parallel_degree=2"]),
                              ("both", ["data_parallel_shard_degree=2", "tensor_parallel_degree=2"])):
            self.train(name, *degrees)
            for graph in ("step", "optimizer"):
                with self.subTest(name=name, graph=graph):
                    ref, program = f"{name}.strata#graph={graph}", f"{name}-{graph}"
                    self.runs("emit", ref, "-o", program)
                    self.run_in_pytorch(python, program, 4 if name == "both" else 2, f"{name}.safetensors",
                                        "pytorch.safetensors")
                    self.runs("run", ref, "--inputs", f"{name}.safetensors", "--outputs", "ours.safetensors",
                              "--threads", "1")
                    ours, pytorch = self.tensors("ours.safetensors"), self.tensors("pytorch.safetensors")
                    self.assertEqual([key for key in pytorch if ours.get(key) != pytorch[key]], [])
                    self.assertGreater(len(pytorch), 0)


if __name__ == "__main__":
    main()
