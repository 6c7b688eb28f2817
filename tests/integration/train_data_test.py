"""`strata train` on data of its user: several files and folders, files that change, documents that do not fit.

    train_data_test.py STRATA
"""

import json
import os
import struct
import subprocess
import sys
import tempfile
import time
import unittest

CONFIG = """\
model = "llama3"
dim = 16
n_layers = 1
n_heads = 2
vocab_size = 258
multiple_of = 8
seq_len = 8
batch_size = 2
steps = 4
"""


class TrainDataTest(unittest.TestCase):
    strata = ""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.write("config.toml", CONFIG.encode())

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def write(self, name, data):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "wb") as file:
            file.write(data)

    def read(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def text(self, name, documents):
        self.write(name, "".join(json.dumps({"text": text}) + "\n" for text in documents).encode())

    def command(self, *options):
        sets = sum((["--set", option] for option in options if not option.startswith("--")), [])
        return [self.strata, "train", "config.toml", *sets, *(o for o in options if o.startswith("--"))]

    def train(self, *options, code=0):
        result = subprocess.run(self.command(*options), cwd=self.folder.name, capture_output=True, text=True, timeout=120,
                                check=False)
        self.assertEqual(result.returncode, code, result.stderr)
        # Step, loss, gradient norm and rate do not depend on time.
        return [line.split()[:4] for line in result.stdout.splitlines()], result.stderr

    def test_several_files_and_folders_train_as_one_file_with_all_lines(self):
        documents = [f"document {i} " * (1 + i % 4) for i in range(24)]
        self.text("whole.jsonl", documents)
        self.text("first.jsonl", documents[:5])
        self.text("more/a.jsonl", documents[5:6])
        self.text("more/b.jsonl", documents[6:])
        text = "dataloader.dataset=text"
        whole = self.train(text, "dataloader.dataset_path=whole.jsonl")
        self.assertEqual(self.train(text, 'dataloader.dataset_path=["first.jsonl", "more"]'), whole)
        self.write("config.toml", (CONFIG + '[dataloader]\ndataset = "text"\ndataset_path = ["first.jsonl", "more"]\n'
                                   '[validator]\nenable = true\ndataset_path = "more"\n').encode())
        table, _ = self.train()
        self.assertIn("validation", [line[-1] for line in table])
        # Another list is other data.
        on = ["checkpoint.enable=true", "checkpoint.last_save_model_only=false"]
        self.train(*on)
        _, errors = self.train(*on, "--resume", "steps=6", 'dataloader.dataset_path=["more", "first.jsonl"]', code=2)
        self.assertIn("content of dataloader.dataset_path is 3 files with hash", errors)

    def shortened(self, name, bytes_left, *options):
        """What a training says whose data are cut while it runs."""
        with subprocess.Popen(self.command("steps=1000000", "metrics.log_freq=1000000", *options, "--metrics=m.jsonl"),
                              cwd=self.folder.name, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              text=True) as process:
            deadline = time.monotonic() + 60
            while time.monotonic() < deadline and not (
                    os.path.exists(self.path("m.jsonl.partial")) and os.path.getsize(self.path("m.jsonl.partial"))):
                self.assertIsNone(process.poll())
                time.sleep(0.005)
            os.truncate(self.path(name), bytes_left)
            errors = process.communicate(timeout=60)[1]
        self.assertEqual(process.returncode, 2, errors)
        return errors

    def test_data_that_become_shorter_end_the_training_with_an_error(self):
        expected = "strata: error: data became shorter while they are in use: "
        self.write("t.bin", bytes(i % 251 for i in range(1 << 18)))
        errors = self.shortened("t.bin", 4096, "dataloader.dataset=tokens", "dataloader.dataset_path=t.bin", "vocab_size=70000")
        self.assertTrue(errors.startswith(expected + "t.bin: "), errors)
        self.text("d.jsonl", ["some words " * 50] * 500)
        errors = self.shortened("d.jsonl", 600, "dataloader.dataset=text", "dataloader.dataset_path=d.jsonl")
        self.assertTrue(errors.startswith(expected + "d.jsonl: "), errors)

    def test_given_tokens_that_become_shorter(self):
        steps = 100000
        data = bytes(steps * 2 * 9 * 8)
        header = json.dumps({"tokens": {"dtype": "I64", "shape": [steps, 2, 9], "data_offsets": [0, len(data)]}}).encode()
        self.write("t.safetensors", struct.pack("<Q", len(header)) + header + data)
        errors = self.shortened("t.safetensors", 8192, f"steps={steps}", "--tokens=t.safetensors")
        self.assertTrue(errors.startswith("strata: error: data became shorter while they are in use: t.safetensors: "),
                        errors)

    def test_documents_that_first_fit_leaves_out_are_counted(self):
        self.text("d.jsonl", ["ab", "long " * 20] * 30)
        table, errors = self.train("dataloader.dataset=text", "dataloader.dataset_path=d.jsonl", "dataloader.packing=first_fit",
                                   "dataloader.shuffle=false", "dataloader.repeat=false")
        self.assertEqual(len(table), 5)
        first, last = errors.splitlines()
        for line in (first, last):
            self.assertRegex(line, r"^strata: warning: dataloader.packing = 'first_fit' left out \d+ of \d+ documents, with "
                             r"9\d(\.\d)? % of the tokens, which are longer than seq_len 8: take a longer seq_len, or "
                             "concat_then_split$")
        self.assertNotEqual(first, last)


if __name__ == "__main__":
    TrainDataTest.strata = os.path.abspath(sys.argv.pop(1))
    unittest.main()
