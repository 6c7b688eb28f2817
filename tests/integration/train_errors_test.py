"""`strata train` with bad input: exit 2, one line that says what to do, no output under its final name.

    train_errors_test.py STRATA
"""

import os
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))

from tensor_files import read_tensors, write_tensors  # noqa: E402

FIXTURE = os.path.join(ROOT, "tests", "data", "numerics", "llama3_small")


class TrainErrorsTest(unittest.TestCase):
    strata = ""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.config = os.path.join(FIXTURE, "config.json")
        self.init = os.path.join(FIXTURE, "init.safetensors")
        self.tokens = os.path.join(FIXTURE, "tokens.safetensors")
        self.out = os.path.join(self.folder.name, "out")
        os.mkdir(self.out)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def fails(self, expected, *options, config=None, limit=None, beginning_only=False):
        """Runs with all outputs asked for; `expected` is the error's text, {dir} the test's folder."""
        defaults = {"init": self.init, "tokens": self.tokens,
                    **{name: os.path.join(self.out, name) for name in ("metrics", "dump-grads", "save")}}
        given = {option.split("=")[0] for option in options}
        command = [self.strata, "train", config or self.config, *options,
                   *(f"--{name}={value}" for name, value in defaults.items() if f"--{name}" not in given)]

        def before():
            if limit:
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

        result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False,
                                preexec_fn=before)
        message = "strata: error: " + expected.format(dir=self.folder.name)
        if beginning_only:
            self.assertEqual(result.stderr[:len(message)], message)
        else:
            self.assertEqual(result.stderr, message + "\n")
        self.assertEqual(result.returncode, 2)
        self.assertEqual(os.listdir(self.out), [])
        return result.stdout

    def test_good_input_is_fine(self):
        result = subprocess.run([self.strata, "train", self.config, "--init", self.init, "--tokens", self.tokens,
                                 "--save", self.path("p")], cwd=ROOT, capture_output=True, text=True, check=False)
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_no_gpu(self):
        result = subprocess.run([self.strata, "train", self.config, "--set", "device=cuda", "--save", self.path("p")],
                                cwd=ROOT, capture_output=True, text=True, check=False,
                                env={**os.environ, "CUDA_VISIBLE_DEVICES": ""})
        self.assertRegex(result.stderr, r"^strata: error: (this build has no CUDA: .*: run \./dev setup cuda, then "
                         r"build again|cannot load CUDA: .*: run \./dev setup cuda|no GPU can be used: CUDA: .*: check "
                         r"nvidia-smi, or take device = 'cpu')\n$")
        self.assertEqual(result.returncode, 2)
        self.assertFalse(os.path.exists(self.path("p")))

    def test_all_shapes_of_a_benchmark_are_known_before_the_first_is_measured(self):
        result = subprocess.run([self.strata, "bench", "train", "--shape", "12x16", "--shape", "nope"], cwd=ROOT,
                                capture_output=True, text=True, check=False)
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertRegex(result.stderr, r"^strata: error: unknown shape 'nope': --shape: there are 12x16, .*\n$")

    def test_graphs_of_a_gpu_are_not_proven(self):
        self.fails("--prove supports CPU graphs only: device = 'cuda': take device = 'cpu'", "--prove", "--set=device=cuda")

    def test_configuration_file(self):
        self.fails("no such file: {dir}/none: check the path", config=self.path("none"))
        self.fails("is a directory: {dir}: give a file", config=self.folder.name)
        self.fails("not valid TOML: {dir}/c.toml:1: Error while parsing key-value pair: expected '=', saw '6'",
                   config=self.write("c.toml", "dim 64"))

    def test_configuration_fields(self):
        self.fails("unknown key 'dims': --set dims=3: did you mean 'dim'?", "--set=dims=3")
        self.fails("wrong type for 'dim': --set dim=wide: expected an integer, found the string 'wide'",
                   "--set=dim=wide")
        self.fails("impossible value for 'n_heads': --set n_heads=5: 5 heads do not divide dim 18, choose a divisor of "
                   "it or give head_dim", "--set=n_heads=5")
        self.fails(f"key 'multiple_of' is not for qwen3: {self.config}:15: remove it", "--set=model=qwen3")
        experts = os.path.join(os.path.dirname(FIXTURE), "deepseek_v3_groups", "config.json")
        self.fails("impossible value for 'moe.top_k': --set moe.top_k=5: 2 groups of 2 experts do not hold 5 experts "
                   "for a token, choose at most 4", "--set=moe.top_k=5", config=experts)

    def test_tokens(self):
        self.fails("no such file: {dir}/none: check the path", "--tokens=" + self.path("none"))
        tokens = read_tensors(self.tokens)
        dtype, shape, data = tokens["tokens"]
        bad = self.path("bad")
        write_tensors(bad, {"tokens": (dtype, shape, struct.pack("<q", 31) + data[8:])})
        self.fails("token 31 is not in the vocabulary: {dir}/bad: tokens[0, 0, 0] must be in [0, 31); use tokens of "
                   "this vocabulary or another vocab_size", "--tokens=" + bad)
        write_tensors(bad, {"ids": tokens["tokens"]})
        self.fails("no tensor 'tokens': {dir}/bad: store I64 [steps, batch, seq + 1] under this name",
                   "--tokens=" + bad)

    def test_initial_parameters(self):
        self.fails("no safetensors files: {dir}: name a folder that holds some", "--init=" + self.folder.name)
        tensors = read_tensors(self.init)
        dtype, shape, data = tensors.pop("norm.weight")
        bad = self.path("bad")
        write_tensors(bad, tensors)
        self.fails("tensors do not fit the model (1 missing): {dir}/bad: missing: norm.weight; give the parameters of "
                   "this configuration", "--init=" + bad)
        write_tensors(bad, {**tensors, "norm.weight": (dtype, [2, shape[0] // 2], data)})
        self.fails("tensors do not fit the model (1 misshapen): {dir}/bad: misshapen: norm.weight is F32 [2, 9], not "
                   "F32 [18]; give the parameters of this configuration", "--init=" + bad)
        with open(bad, "wb") as file:
            file.write(b"not tensors")
        self.fails("not a safetensors file: {dir}/bad: its header has 8317697111234998126 bytes, the file 11; make the "
                   "file anew", "--init=" + bad)

    def test_outputs_are_looked_at_before_the_first_step(self):
        for option in ("metrics", "dump-grads", "save", "dump-inputs"):
            with self.subTest(option):
                for table in (self.fails("cannot write: {dir}/no/file: no folder '{dir}/no', create it first",
                                         f"--{option}={self.path('no/file')}"),
                              self.fails("is a directory: {dir}: give a file", f"--{option}={self.folder.name}")):
                    self.assertEqual(table, "")

    def test_outputs_that_name_an_input_or_each_other(self):
        with open(self.config, "rb") as file:
            config = file.read()
        path, link = self.write("c.json", config.decode()), self.path("link")
        os.symlink(path, link)
        os.mkdir(self.path("init"))
        shutil.copy(self.init, self.path("init/model.safetensors"))
        shutil.copy(self.tokens, self.path("tokens"))
        for options, name, output, kind in [
            (["--metrics=" + path], "c.json", "--metrics", "CONFIG"),
            (["--save=" + link], "link", "--save", "CONFIG"),
            (["--dump-grads=" + self.path("tokens"), "--tokens=" + self.path("./tokens")], "tokens", "--dump-grads",
             "--tokens"),
            (["--save=" + self.path("init/model.safetensors"), "--init=" + self.path("init")],
             "init/model.safetensors", "--save", "--init"),
            (["--dump-inputs=" + self.path("c.json")], "c.json", "--dump-inputs", "CONFIG"),
            (["--set=debug.save_config_file=c.json", "--set=dump_folder=" + self.folder.name], "c.json",
             "debug.save_config_file", "CONFIG"),
        ]:
            with self.subTest(options):
                self.fails(f"output would replace an input: {{dir}}/{name}: {output} names a file of {kind}; give "
                           "another name", *options, config=path)
        self.fails("two outputs have one name: {dir}/one: --dump-grads and --save; give another name",
                   "--dump-grads=" + self.path("one"), "--save=" + self.path("init/../one"), config=path)
        with open(path, "rb") as file:
            self.assertEqual(file.read(), config)

    def test_a_folder_of_checkpoints_that_cannot_be_made(self):
        long = "x" * 300
        self.fails("cannot make a folder: {dir}/" + long + "/checkpoint: File name too long; choose another dump_folder",
                   "--set=checkpoint.enable=true", f"--set=dump_folder={self.path(long)}")

    def test_threads(self):
        self.fails("--threads must be at least 1: strata train: see 'strata train --help'", "--threads=0")
        self.fails("--threads must be at most 1024: strata train: see 'strata train --help'", "--threads=1000000")

    def test_full_disk(self):
        for option in ("metrics", "dump-grads", "save"):
            with self.subTest(option):
                self.fails("disk full: /dev/full: free some space or write to another disk", f"--{option}=/dev/full")

    def test_file_size_limit(self):
        self.fails("file size limit reached: {dir}/out/dump-grads: raise the limit (ulimit -f)", "--passes=dce", limit=4096)

    def test_passes(self):
        # Then the line lists what exists, and shows the pipeline and its place below.
        self.fails("pipeline:1:1: unknown pass 'dec'; did you mean 'dce'?", "--passes=dec", beginning_only=True)



if __name__ == "__main__":
    TrainErrorsTest.strata = os.path.abspath(sys.argv.pop(1))
    unittest.main()
