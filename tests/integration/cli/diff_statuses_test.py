"""Pairs of texts with the statuses that docs/json.md gives them, and what holds for every diff.

    diff_statuses_test.py STRATA
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

DATA = os.path.join(os.path.dirname(__file__), "..", "..", "data", "diff_statuses.txt")


def read_cases():
    with open(DATA, encoding="utf-8") as file:
        sections = file.read().split("\n=== ")[1:]
    for section in sections:
        yield re.fullmatch(r"(.*)\n--- before\n(.*)--- after\n(.*)--- says\n(.*)", section, re.DOTALL).groups()


CASES = list(read_cases())

ATOMS = ["renamed", "moved", "changed", "derived"]


class Statuses(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def strata(self, *args):
        return subprocess.run([sys.argv[1], *args], capture_output=True, text=True, timeout=60)

    def diff(self, before, after):
        run = self.strata("diff", before, after, "--format", "json", "--patch", self.path("patch"))
        self.assertIn(run.returncode, (0, 1), run.stderr)
        return run.returncode, json.loads(run.stdout)

    def write(self, before, after):
        for name, text in ("before.txt", before), ("after.txt", after):
            with open(self.path(name), "w", encoding="utf-8") as file:
                file.write(text)
        return self.path("before.txt"), self.path("after.txt")

    def test_statuses(self):
        for title, before, after, expected in CASES:
            with self.subTest(title):
                _, diff = self.diff(*self.write(before, after))
                self.assertEqual(describe(diff), expected)

    def test_what_holds_always(self):
        for title, before, after, _ in CASES:
            with self.subTest(title):
                paths = self.write(before, after)
                status, diff = self.diff(*paths)
                self.check_summary(diff)
                self.check_order(diff, *paths)
                differs = diff["inserted"] or diff["deleted"] or any(
                    set(pair["status"].split("+")) - {"same", "renamed"} for pair in diff["pairs"])
                self.assertEqual(status, 1 if differs else 0)

    def test_patches_make_the_other_side(self):
        for title, before, after, _ in CASES:
            with self.subTest(title):
                before_path, after_path = self.write(before, after)
                _, diff = self.diff(before_path, after_path)
                run = self.strata("patch", before_path, self.path("patch"), "-o", self.path("made.txt"))
                self.assertEqual(run.returncode, 0, run.stderr)
                status, made = self.diff(self.path("made.txt"), after_path)
                self.assertEqual((status, made["summary"]["renamed"]), (0, 0))
                self.assertEqual(made["before"]["fingerprint"], diff["after"]["fingerprint"])

    def check_summary(self, diff):
        atoms = [pair["status"].split("+") for pair in diff["pairs"]]
        relations = diff["relations"]
        of = lambda kind: [relation for relation in relations if relation["kind"] == kind]
        self.assertEqual(diff["summary"], {
            "same": sum(atom == ["same"] for atom in atoms),
            **{atom: sum(atom in all_of for all_of in atoms) for atom in ATOMS},
            "inserted": len(diff["inserted"]),
            "deleted": len(diff["deleted"]),
            "replaced": sum(len(relation["before"]) for relation in of("replace")),
            "cloned": sum(len(relation["after"]) - 1 for relation in of("clone")),
            "merged": sum(len(relation["before"]) - 1 for relation in of("merge")),
            "became_input": len(of("became_input")),
            "became_compute": len(of("became_compute")),
        })
        for all_of in atoms:
            self.assertEqual(all_of, [atom for atom in ["same", *ATOMS] if atom in all_of])
            self.assertFalse({"changed", "derived"} <= set(all_of))

    def check_order(self, diff, *paths):
        names = []
        for path in paths:
            run = self.strata("show", path, "--format", "json")
            names.append([node["name"] for node in json.loads(run.stdout)["nodes"]])
        before = [pair["before"] for pair in diff["pairs"]]
        self.assertEqual(sorted(before + diff["deleted"]), sorted(names[0]))
        self.assertEqual(sorted([pair["after"] for pair in diff["pairs"]] + diff["inserted"]), sorted(names[1]))
        for some, order in (before, names[0]), (diff["deleted"], names[0]), (diff["inserted"], names[1]):
            self.assertEqual(some, sorted(some, key=order.index))


def describe(diff):
    lines = []
    for pair in diff["pairs"]:
        if pair["status"] == "same":
            continue
        lines.append(f"{pair['before']} -> {pair['after']}: {pair['status']}")
        for field in pair["fields"]:
            derived = " (derived)" if field["derived"] else ""
            lines.append(f"  {field['path']}: {field['before']} -> {field['after']}{derived}")
    lines += [f"- {name}" for name in diff["deleted"]] + [f"+ {name}" for name in diff["inserted"]]
    for relation in diff["relations"]:
        lines.append(f"{relation['kind']} {', '.join(relation['before'])} -> {', '.join(relation['after'])}")
    return "".join(line + "\n" for line in lines)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
