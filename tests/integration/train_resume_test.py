"""A run that is killed and resumed trains as if it had never stopped.

    train_resume_test.py STRATA [KILLS]
"""

import json
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

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
steps = {steps}
[training]
num_tokens_per_train_step = 24
[lr_scheduler]
warmup_steps = 3
decay_type = "cosine"
[checkpoint]
enable = true
interval = 1
keep_latest_k = 2
async_mode = "{mode}"
last_save_model_only = false
"""


class TrainResumeTest(unittest.TestCase):
    strata = ""
    kills = 4

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def command(self, steps, out, *options, mode="async"):
        with open(self.path("config.toml"), "w", encoding="utf-8") as file:
            file.write(CONFIG.format(steps=steps, mode=mode))
        return [self.strata, "train", "config.toml", "--set", f"dump_folder={out}", "--metrics", f"{out}.jsonl",
                "--save", f"{out}.safetensors", *options]

    def run_strata(self, command, code=0):
        result = subprocess.run(command, cwd=self.folder.name, capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(result.returncode, code, result.stderr)
        return result.stderr

    def read(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def write(self, name, data):
        with open(self.path(name), "wb") as file:
            file.write(data)

    def checkpoints(self, out):
        folder = self.path(f"{out}/checkpoint")
        return sorted(int(name[len("step-"):]) for name in os.listdir(folder) if name[len("step-"):].isdigit())

    def test_killed_at_random_moments_it_goes_on_bit_for_bit(self):
        steps = 20 + 10 * self.kills
        self.run_strata(self.command(1, "start"))  # files are in memory from here on
        start = time.monotonic()
        self.run_strata(self.command(1, "start", "--resume"))
        startup = time.monotonic() - start
        self.run_strata(self.command(steps, "whole"))
        running = max(time.monotonic() - start - 2 * startup, 0.01)
        self.assertEqual(self.checkpoints("whole"), [steps - 1, steps])
        chance = random.Random(7)
        kills = 0
        while True:
            command = self.command(steps, "killed", "--resume", mode=chance.choice(["async", "disabled"]))
            with subprocess.Popen(command, cwd=self.folder.name, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE) as process:
                if kills < self.kills:
                    # Before the first step, in it, between steps, while a checkpoint is written.
                    try:
                        process.wait(startup * chance.uniform(0.5, 1) + chance.uniform(0, 1.5 * running / self.kills))
                    except subprocess.TimeoutExpired:
                        process.send_signal(signal.SIGKILL)
                stderr = process.communicate()[1].decode()
            if process.returncode == 0:
                break
            self.assertEqual(process.returncode, -signal.SIGKILL, stderr)
            kills += 1
        self.assertEqual(self.read("killed.jsonl"), self.read("whole.jsonl"))
        self.assertEqual(self.read("killed.safetensors"), self.read("whole.safetensors"))
        self.assertEqual(len(self.read("whole.jsonl").splitlines()), steps)
        self.assertGreater(kills, 0)
        print(f"{kills} kills", file=sys.stderr)

    def test_a_run_goes_on_from_the_step_that_is_asked_for(self):
        self.run_strata(self.command(6, "whole"))
        self.run_strata(self.command(4, "part"))
        self.run_strata(self.command(6, "part", "--resume", "--overwrite", "--set", "checkpoint.load_step=3",
                                     "--set", "lr_scheduler.total_steps=6"))
        whole, part = self.read("whole.jsonl").splitlines(), self.read("part.jsonl").splitlines()
        self.assertEqual(len(part), 6)
        self.assertNotEqual(whole[3], part[2])  # the schedule of four steps is another
        self.assertEqual([json.loads(line)["step"] for line in part], [1, 2, 3, 4, 5, 6])

    def metrics(self, out):
        return [json.loads(line) for line in self.read(f"{out}.jsonl").splitlines()]

    def test_what_is_excluded_begins_anew(self):
        schedule = ["--set", "lr_scheduler.total_steps=6"]
        self.run_strata(self.command(6, "whole", *schedule))
        whole = self.metrics("whole")
        for excluded in ("lr_scheduler", "dataloader", "optimizer,lr_scheduler"):
            out = excluded.replace(",", "_")
            self.run_strata(self.command(3, out, *schedule))
            self.run_strata(self.command(5, out, *schedule, "--resume", "--set",
                                         f"checkpoint.exclude_from_loading={excluded}"))
            part = self.metrics(out)
            rates = [line["lr"] for line in (part[:3] + whole[:2] if "lr_scheduler" in excluded else whole[:5])]
            self.assertEqual([line["lr"] for line in part], rates, excluded)
            # The same parameters and, unless they began anew, the same data.
            self.assertEqual(part[3]["loss"] == whole[3]["loss"], excluded != "dataloader", excluded)
            # A schedule that began anew goes on where it was.
            self.run_strata(self.command(6, out, *schedule, "--resume"))
            self.assertEqual(self.metrics(out)[5]["lr"], whole[2 if "lr_scheduler" in excluded else 5]["lr"])

    def test_a_validation_measures_and_changes_nothing(self):
        def text(name, words):
            with open(self.path(name), "w", encoding="utf-8") as file:
                for i in range(40):
                    file.write(json.dumps({"text": words * (1 + i % 5)}) + "\n")

        text("train.jsonl", "abcd ")
        text("same_text.jsonl", "abcd ")
        text("other_text.jsonl", "zyxw")
        options = ["--set", "dataloader.dataset=text", "--set", "dataloader.dataset_path=train.jsonl", "--set",
                   "vocab_size=258", "--set", "optimizer.lr=0.01"]
        validator = ["--set", "validator.enable=true", "--set", "validator.freq=4", "--set",
                     "validator.dataset_path=same_text.jsonl"]
        self.run_strata(self.command(12, "plain", *options))
        self.run_strata(self.command(12, "same", *options, *validator))
        self.run_strata(self.command(12, "other", *options, *validator, "--set", "validator.dataset_path=other_text.jsonl"))
        plain, same, other = self.metrics("plain"), self.metrics("same"), self.metrics("other")
        self.assertEqual([line["step"] for line in same if "validation_loss" in line], [1, 4, 8, 12])
        self.assertEqual([line["loss"] for line in plain], [line["loss"] for line in same])
        self.assertEqual(self.read("plain.safetensors"), self.read("same.safetensors"))
        losses = [line["validation_loss"] for line in same if "validation_loss" in line]
        self.assertLess(losses[-1], losses[0] - 0.5)  # the same text is learnt, another is not
        self.assertGreater(other[-1]["validation_loss"], losses[-1] + 0.5)

    def test_text_goes_on_where_it_was(self):
        with open(self.path("d.jsonl"), "w", encoding="utf-8") as file:
            for i in range(40):
                file.write(json.dumps({"text": "na\u00efve words " * (i % 7) + str(i)}) + "\n")
        text = ["--set", "dataloader.dataset=text", "--set", "dataloader.dataset_path=d.jsonl", "--set",
                "vocab_size=258", "--set", "attn_mask_type=block_causal"]
        self.run_strata(self.command(8, "whole", *text))
        self.run_strata(self.command(8, "part", *text, "--set", "steps=5", "--set", "lr_scheduler.total_steps=8"))
        self.run_strata(self.command(8, "part", *text, "--resume"))
        self.assertEqual(self.read("part.jsonl"), self.read("whole.jsonl"))
        self.assertEqual(self.read("part.safetensors"), self.read("whole.safetensors"))

    def test_the_last_checkpoint_is_a_model_that_others_load(self):
        export = ["--set", "checkpoint.last_save_model_only=true", "--set", "checkpoint.last_save_in_hf=true"]
        self.run_strata(self.command(3, "first", *export))
        self.run_strata(self.command(1, "again", "--init", "first/checkpoint/step-3", "--set", "optimizer.lr=0",
                                     "--set", "optimizer.weight_decay=0"))
        self.assertEqual(self.read("again.safetensors"), self.read("first.safetensors"))

    MODEL_ONLY = ["--set", "checkpoint.last_save_model_only=true", "--set", "checkpoint.interval=500"]

    def everything(self, out):
        """The content of all files of a run."""
        files = [f"{out}.jsonl", f"{out}.safetensors"]
        for folder, _, names in os.walk(self.path(out)):
            files += [os.path.relpath(os.path.join(folder, name), self.folder.name) for name in names]
        return {name: self.read(name) for name in files}

    def test_a_finished_run_is_not_trained_again(self):
        for out, options in (("model", self.MODEL_ONLY), ("full", [])):
            self.run_strata(self.command(3, out, *options))
            before = self.everything(out)
            self.assertEqual(self.run_strata(self.command(3, out, *options, "--resume")),
                             f"strata: nothing to do: {out}/checkpoint/step-3: all 3 steps are done\n")
            self.assertEqual(self.everything(out), before)

    def test_a_checkpoint_of_the_model_alone_is_not_resumed_and_not_replaced(self):
        self.run_strata(self.command(3, "run", *self.MODEL_ONLY))
        before = self.everything("run")
        here = "run/checkpoint/step-3"
        self.assertEqual(
            self.run_strata(self.command(5, "run", *self.MODEL_ONLY, "--resume"), code=2),
            f"strata: error: checkpoint of the model alone: {here}: it has no optimizer state to continue from; begin "
            f"another training with --init {here} and another dump_folder, or train with "
            "checkpoint.last_save_model_only = false\n")
        self.assertEqual(
            self.run_strata(self.command(5, "run", *self.MODEL_ONLY), code=2),
            "strata: error: checkpoints of another run: run/checkpoint: they hold the model alone; begin another "
            f"training with --init {here} and another dump_folder, or replace them with --overwrite\n")
        self.assertEqual(
            self.run_strata(self.command(2, "run", *self.MODEL_ONLY, "--resume", "--set", "lr_scheduler.warmup_steps=1"),
                            code=2),
            f"strata: error: checkpoint of a longer run: {here}: 3 steps are done, steps = 2; train more steps, or take "
            "another with checkpoint.load_step\n")
        self.assertEqual(self.everything("run"), before)
        self.run_strata(self.command(2, "run", *self.MODEL_ONLY, "--overwrite"))
        self.assertEqual((self.checkpoints("run"), len(self.metrics("run"))), ([2], 2))

    def test_a_run_is_extended_from_its_last_whole_checkpoint(self):
        some = ["--set", "checkpoint.last_save_model_only=true", "--set", "checkpoint.interval=2"]
        constant = ["--set", "lr_scheduler.total_steps=7"]
        self.run_strata(self.command(7, "whole", *constant))
        self.run_strata(self.command(5, "part", *constant, *some))
        self.assertEqual(self.checkpoints("part"), [4, 5])
        self.assertEqual(self.run_strata(self.command(7, "part", *constant, *some, "--resume")),
                         "strata: warning: part/checkpoint/step-5 holds the model alone: continuing from step 4, the "
                         "latest checkpoint with an optimizer state\n")
        self.assertEqual(self.read("part.jsonl"), self.read("whole.jsonl"))
        self.assertEqual(self.read("part.safetensors"), self.read("whole.safetensors"))

    def test_metrics_of_another_run_are_replaced_only_on_request(self):
        off = ["--set", "checkpoint.enable=false"]
        self.run_strata(self.command(2, "run", *off))
        first = self.read("run.jsonl")
        self.run_strata(self.command(3, "run", *off, "--set", "lr_scheduler.total_steps=2"))  # begins with the same lines
        self.assertEqual((len(self.metrics("run")), os.path.exists(self.path("run.jsonl.1"))), (3, False))
        # A run that is to be resumed and finds no checkpoint begins them anew.
        for number in (1, 2):
            older = self.read("run.jsonl")
            self.assertEqual(self.run_strata(self.command(3, "run", "--set", f"seed={number}", "--resume")),
                             f"strata: warning: metrics of another run had this name: run.jsonl.{number} holds them now; "
                             "--overwrite replaces them\n")
            self.assertEqual(self.read(f"run.jsonl.{number}"), older)
            shutil.rmtree(self.path("run"))
        self.run_strata(self.command(2, "run", *off, "--overwrite"))
        self.assertEqual(self.read("run.jsonl"), first)
        self.assertFalse(os.path.exists(self.path("run.jsonl.3")))

    def test_outputs_that_a_killed_run_left_unfinished_are_finished(self):
        self.run_strata(self.command(3, "run", *self.MODEL_ONLY))
        before = self.everything("run")
        os.rename(self.path("run.jsonl"), self.path("run.jsonl.partial"))
        os.remove(self.path("run.safetensors"))
        self.run_strata(self.command(3, "run", *self.MODEL_ONLY, "--resume"))
        self.assertEqual(self.everything("run"), before)

    def test_a_resumed_run_writes_the_gradients_of_its_first_step(self):
        schedule = ["--set", "lr_scheduler.total_steps=5"]
        self.run_strata(self.command(5, "whole", *schedule))
        self.run_strata(self.command(3, "part", *schedule))
        self.run_strata(self.command(4, "part", *schedule, "--resume", "--dump-grads", "g4"))
        self.run_strata(self.command(5, "part", *schedule, "--resume", "--dump-grads", "g5"))
        self.assertGreater(len(self.read("g4")), 4000)
        self.assertNotEqual(self.read("g4"), self.read("g5"))
        self.assertEqual(
            self.run_strata(self.command(5, "part", *schedule, "--resume", "--dump-grads", "none"), code=2),
            "strata: error: no step is left to write this from: none: part/checkpoint/step-5 has all 5 steps; train "
            "more steps\n")
        self.assertFalse(os.path.exists(self.path("none")))

    def test_changed_fields_are_listed(self):
        self.run_strata(self.command(3, "run"))
        changes = sum((["--set", word] for word in ["rope.theta=10000", "optimizer.lr=1e-4", "lr_scheduler=null",
                                                    "optimizer.param_groups.norms.pattern=norm"]), [])
        self.assertEqual(
            self.run_strata(self.command(4, "run", "--resume", *changes)),
            "strata: warning: the configuration is not that of the checkpoint: run/checkpoint/step-3: "
            "lr_scheduler.decay_type is none, was cosine; lr_scheduler.min_lr_factor is none, was 0; "
            "lr_scheduler.total_steps is none, was 3; lr_scheduler.warmup_steps is none, was 3; optimizer.lr is 0.0001, was 0.0008; "
            "optimizer.param_groups.norms.beta1 is 0.9, was none; optimizer.param_groups.norms.beta2 is 0.95, was none; "
            "optimizer.param_groups.norms.eps is 1e-08, was none; optimizer.param_groups.norms.lr is 0.0001, was none; "
            "optimizer.param_groups.norms.pattern is norm, was none; "
            "optimizer.param_groups.norms.weight_decay is 0.1, was none; rope.theta is 10000, was 500000\n")

    def test_a_damaged_checkpoint_starts_no_other_training(self):
        self.run_strata(self.command(3, "run", *self.MODEL_ONLY))
        name = "run/checkpoint/step-3/model-00001-of-00001.safetensors"
        whole = self.read(name)
        self.write(name, whole[:-1] + bytes([whole[-1] ^ 1]))
        self.assertEqual(
            self.run_strata(self.command(3, "next", "--init", "run/checkpoint/step-3"), code=2),
            "strata: error: damaged checkpoint: run/checkpoint/step-3: model-00001-of-00001.safetensors is not what was "
            "written; start from another one\n")
        self.write(name, whole)
        self.run_strata(self.command(3, "next", "--init", "run/checkpoint/step-3"))

    def data_run(self, out, steps, *options, code=0):
        return self.run_strata([*self.command(steps, out), *options], code=code)

    def test_other_data_or_another_order_of_them_is_refused(self):
        begin_anew = "begin the data anew with checkpoint.exclude_from_loading=dataloader\n"
        with open(self.path("a.jsonl"), "w", encoding="utf-8") as file:
            file.writelines(json.dumps({"text": "word " * n, "other": "x" * n}) + "\n" for n in range(1, 30))
        self.write("b.jsonl", self.read("a.jsonl").replace(b"word", b"work"))
        self.write("a.bin", struct.pack("<400H", *(i * i % 24 for i in range(400))))
        self.write("b.bin", struct.pack("<400H", *(i * i % 23 for i in range(400))))
        text = ["--set", "dataloader.dataset=text", "--set", "dataloader.dataset_path=a.jsonl", "--set", "vocab_size=258"]
        tokens = ["--set", "dataloader.dataset=tokens", "--set", "dataloader.dataset_path=a.bin"]
        ended = [*tokens, "--set", "dataloader.end_of_document=0"]
        for name, options, others in [
            ("made", [], [["seed=5"], ["batch_size=1"], ["seq_len=3", "training.num_tokens_per_train_step=12"]]),
            ("text", text, [["dataloader.seed=5"], ["dataloader.shuffle=false"], ["dataloader.dataset_path=b.jsonl"],
                            ["dataloader.text_key=other"], ["dataloader.packing=first_fit"]]),
            ("tokens", tokens, [["dataloader.dataset_path=b.bin"], ["dataloader.end_of_document=7"],
                                ["seq_len=3", "training.num_tokens_per_train_step=12"],
                                ["dataloader.token_dtype=uint32"]]),
            ("ended", ended, [["dataloader.end_of_document=4"], ["dataloader.seed=0"]]),
        ]:
            self.data_run(name, 3, *options)
            for other in others:
                changed = sum((["--set", word] for word in other), [])
                error = self.data_run(name, 6, "--resume", *options, *changed, code=2)
                self.assertTrue(error.startswith(f"strata: error: other data than the run's: {name}/checkpoint/step-3: "),
                                (other, error))
                self.assertTrue(error.endswith("; resume with what it was, or " + begin_anew), error)
                self.assertEqual(error.count("\n"), 1)
        self.assertEqual(
            self.data_run("ended", 6, "--resume", *ended, "--set", "dataloader.seed=5", code=2),
            "strata: error: other data than the run's: ended/checkpoint/step-3: dataloader.seed is 5, was 42; resume with "
            "what it was, or " + begin_anew)
        # Where the same documents follow each other, rows may have other lengths, and batches other sizes.
        warnings = self.data_run("ended", 6, "--resume", *ended, "--set", "seq_len=3", "--set", "batch_size=4")
        self.assertEqual(warnings, "".join(
            f"strata: warning: ended/checkpoint/step-3: {what}: the data go on where they were\n"
            for what in ["seq_len is 3, was 6", "batch_size is 4, was 2"]))
        self.data_run("text", 6, "--resume", *text, "--set", "dataloader.seed=5", "--set",
                      "checkpoint.exclude_from_loading=dataloader")
        self.assertEqual(self.data_run("made", 6, "--resume"), "")

    def test_a_course_that_was_left_does_not_push_out_the_new_one(self):
        self.run_strata(self.command(8, "run", "--set", "checkpoint.keep_latest_k=5"))
        self.assertEqual(self.checkpoints("run"), [4, 5, 6, 7, 8])
        again = ["--resume", "--set", "checkpoint.load_step=4", "--set", "optimizer.lr=0.1"]
        metrics = self.read("run.jsonl")
        self.assertEqual(self.run_strata(self.command(6, "run", *again), code=2),
                         "strata: error: checkpoints of later steps: run/checkpoint: there are some up to step 8, and "
                         "checkpoint.load_step = 4 would replace them; allow it with --overwrite, or copy "
                         "run/checkpoint/step-4 to another dump_folder\n")
        self.assertEqual((self.checkpoints("run"), self.read("run.jsonl")), ([4, 5, 6, 7, 8], metrics))
        self.assertEqual(self.run_strata(self.command(6, "run", *again, "--overwrite")),
                         "strata: warning: checkpoints up to step 8 are in run/checkpoint: the first checkpoint of this "
                         "run replaces those after step 4; until then --resume continues from the latest\n"
                         "strata: warning: the configuration is not that of the checkpoint: run/checkpoint/step-4: "
                         "optimizer.lr is 0.1, was 0.0008\n")
        self.assertEqual(self.checkpoints("run"), [5, 6])
        self.run_strata(self.command(7, "run", "--resume"))
        self.assertEqual([line["step"] for line in self.metrics("run")], [1, 2, 3, 4, 5, 6, 7])

    def test_a_run_that_failed_and_goes_on_has_the_metrics_of_all_steps(self):
        self.write("t.bin", struct.pack("<60H", *([3] * 50 + [24] + [4] * 9)))
        tokens = ["--set", "dataloader.dataset=tokens", "--set", "dataloader.dataset_path=t.bin", "--set",
                  "dataloader.shuffle=false"]
        error = self.data_run("run", 4, *tokens, code=2)
        self.assertIn("token 24 is not in the vocabulary", error)
        self.assertEqual([line["step"] for line in self.metrics("run")], [1, 2])
        self.assertFalse(os.path.exists(self.path("run.safetensors")))
        self.data_run("run", 4, "--resume", "--set", "checkpoint.exclude_from_loading=dataloader")
        self.assertEqual([line["step"] for line in self.metrics("run")], [1, 2, 3, 4])
        # Without checkpoints there is nothing to resume from, and nothing is left.
        self.data_run("none", 4, *tokens, "--set", "checkpoint.enable=false", code=2)
        self.assertFalse(os.path.exists(self.path("none.jsonl")))

    def test_checkpoints_that_do_not_tell_of_their_data_are_resumed(self):
        self.run_strata(self.command(3, "first"))
        path = "first/checkpoint/step-3/checkpoint.json"
        manifest = json.loads(self.read(path))
        self.assertEqual(manifest.pop("data"), {"batch_size": "2", "seed": "0", "seq_len": "6",
                                                "source of the data": "synthetic"})
        self.write(path, json.dumps(manifest).encode())
        self.assertEqual(self.run_strata(self.command(6, "first", "--resume", "--set", "seed=5")), "")

    def test_what_cannot_be_resumed_is_told(self):
        self.run_strata(self.command(3, "first"))
        here = os.path.join("first", "checkpoint")
        self.assertEqual(
            self.run_strata(self.command(3, "first"), code=2),
            f"strata: error: checkpoints of another run: {here}: continue with --resume, choose another dump_folder, "
            "or replace them with --overwrite\n")
        self.assertEqual(
            self.run_strata(self.command(9, "first", "--resume", "--set", "checkpoint.load_step=7"), code=2),
            f"strata: error: no checkpoint of step 7: {here}: there are those of 2, 3\n")
        self.assertEqual(
            self.run_strata(self.command(2, "first", "--resume", "--set", "lr_scheduler.warmup_steps=2"), code=2),
            f"strata: error: checkpoint of a longer run: {here}/step-3: 3 steps are done, steps = 2; train more steps, or "
            "take another with checkpoint.load_step\n")
        self.assertEqual(
            self.run_strata(self.command(9, "first", "--resume", "--set", "dim=32"), code=2),
            f"strata: error: tensors do not fit the model: {here}/step-3: tok_embeddings.weight is F32 [24, 16], not "
            "F32 [24, 32]; resume with the configuration of the run\n")
        self.assertEqual(
            self.run_strata(self.command(9, "first", "--resume", "--set", "n_layers=1"), code=2),
            f"strata: error: tensors do not fit the model: {here}/step-3: the model has no "
            "layers.1.attention.qkv_linear.wk.weight; resume with the configuration of the run\n")
        self.assertEqual(
            self.run_strata(self.command(9, "first", "--resume", "--set", "checkpoint.enable=false"), code=2),
            "strata: error: nothing to resume: --resume: give --set checkpoint.enable=true and the dump_folder of the "
            "run\n")


if __name__ == "__main__":
    TrainResumeTest.strata = os.path.abspath(sys.argv.pop(1))
    if len(sys.argv) > 1 and sys.argv[1].isdigit():
        TrainResumeTest.kills = int(sys.argv.pop(1))
    unittest.main()
