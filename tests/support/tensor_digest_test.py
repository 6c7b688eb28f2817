"""A digest measures how far another tensor is from its own, and notices each kind of wrong tensor."""

import array
import math
import os
import random
import tempfile
import unittest

from tensor_digest import WHOLE, digest, distance, norm, read_digests, write_digests


def tensor(count, seed=1):
    chance = random.Random(seed)
    return array.array("f", [chance.gauss(0, 1) for _ in range(count)])


def gaps(a, b):
    return [x - y for x, y in zip(a, b)]


def changed(values, position, value):
    copy = array.array("f", values)
    copy[position] = value
    return copy


class TensorDigestTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "digests.json")

    def distance(self, values, other, name="w"):
        """The distance of `other` from `values`, whose digest was written and read."""
        write_digests(self.path, {name: digest(name, values)})
        return distance(name, read_digests(self.path)[name], other)

    def test_equal_tensors_have_no_distance(self):
        for count in (1, WHOLE, WHOLE + 1, 10000):
            values = tensor(count)
            largest, length = self.distance(values, values)
            self.assertEqual(largest, 0)
            self.assertLess(length, 1e-8 * norm(values))

    def test_small_tensors_are_compared_exactly(self):
        for count in (1, 2, WHOLE):
            values, other = tensor(count), tensor(count, seed=2)
            largest, length = self.distance(values, other)
            self.assertEqual(largest, max(map(abs, gaps(values, other))))
            self.assertAlmostEqual(length, norm(gaps(values, other)))

    def test_the_distance_estimates_the_norm_of_the_difference(self):
        # Roundings, as two correct programs differ by.
        for seed in range(40):
            values = tensor(WHOLE + 1 + 50 * seed, seed)
            noise = random.Random(seed)
            other = array.array("f", [v * (1 + 1e-4 * noise.gauss(0, 1)) for v in values])
            expected = norm(gaps(values, other))
            length = self.distance(values, other, name=f"w{seed}")[1]
            self.assertGreater(length, 0.6 * expected, seed)
            self.assertLess(length, 1.6 * expected, seed)

    def test_one_wrong_element_is_measured_wherever_it_is(self):
        values = tensor(300)
        reference = digest("w", values)
        for position in range(len(values)):
            length = distance("w", reference, changed(values, position, values[position] + 1e-3))[1]
            self.assertAlmostEqual(length, 1e-3, delta=1e-6)

    def test_each_kind_of_wrong_tensor_is_noticed(self):
        rows, columns = 60, 40
        for seed in range(5):
            values = tensor(rows * columns, seed)
            half = len(values) // 2
            wrong = {
                "zeros": [0.0] * len(values),
                "negated": [-v for v in values],
                "transposed": [values[column * columns + row] for row in range(columns) for column in range(rows)],
                "reversed": values[::-1],
                "rotated by one": values[1:] + values[:1],
                "halves swapped": values[half:] + values[:half],
                "scaled": [1.001 * v for v in values],
                "shifted": [v + 1e-3 for v in values],
                "first row wrong": array.array("f", [2 * v for v in values[:columns]]) + values[columns:],
                "two elements swapped": changed(changed(values, 0, values[-1]), -1, values[0]),
            }
            for kind, other in wrong.items():
                other = array.array("f", other)
                expected = norm(gaps(values, other))
                length = self.distance(values, other, name=f"w{seed}")[1]
                self.assertGreater(length, 0.6 * expected, f"{kind} {seed}")

    def test_tensors_that_changed_places_are_noticed(self):
        # Digests of equal values under two names share no position and no sign.
        values = tensor(1000)
        one, two = digest("layers.0.w", values), digest("layers.1.w", values)
        self.assertNotEqual(one["sample"], two["sample"])
        self.assertGreater(distance("layers.0.w", two, values)[1], 0.6 * norm(values))

    def test_a_distance_from_values_that_are_not_finite_is_nan(self):
        for count in (3, 1000):
            values = tensor(count)
            for bad in (math.nan, math.inf, -math.inf):
                self.assertTrue(all(map(math.isnan, self.distance(values, changed(values, count // 2, bad)))))

    def test_extremes_are_compared(self):
        values = changed(changed(tensor(5000), 1, 100.0), 2, -100.0)
        for position, value in ((1, 101.0), (2, -101.0)):
            self.assertEqual(self.distance(values, changed(values, position, value))[0], 1.0)


if __name__ == "__main__":
    unittest.main()
