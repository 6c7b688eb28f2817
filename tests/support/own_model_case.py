"""What tests of models of users share."""

import json
import struct

from strata_case import StrataCase

LOOP = """\
vocab_size = {vocab}
seq_len = {seq}
batch_size = 2
steps = 6
seed = 1
optimizer.lr = 0.01
"""


def draw(elements, scale, seed):
    """fp32 values in (-scale, scale), from a linear congruential generator."""
    state, values = seed * 2654435761 % 2**32, []
    for _ in range(elements):
        state = (1664525 * state + 1013904223) % 2**32
        values.append(scale * (2.0 * state / 2**32 - 1.0))
    return struct.pack(f"<{elements}f", *values)


class OwnModelCase(StrataCase):
    def printed(self, *words, status=0):
        """What a command prints: its output, or its message if it is to fail."""
        done = self.run_strata(*words)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout if status == 0 else done.stderr

    def losses(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return [json.loads(line)["loss"] for line in file]

    def close(self, ours, theirs):
        """Sums of ranks are rounded in another order."""
        self.assertEqual(len(ours), len(theirs))
        for a, b in zip(ours, theirs):
            self.assertAlmostEqual(a, b, delta=1e-5)
