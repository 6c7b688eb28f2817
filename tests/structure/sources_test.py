"""Every C++ source file is built: some CMakeLists.txt names it. Test cases run. at::parallel_for is not called. simdjson is linked."""

import os
import re
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def walk():
    for top in sorted(os.listdir(ROOT)):
        if not os.path.exists(os.path.join(ROOT, top, "CMakeLists.txt")):
            continue
        for directory, _, files in os.walk(os.path.join(ROOT, top)):
            for file in files:
                yield directory, file


class Sources(unittest.TestCase):

    def test_every_source_file_is_built(self):
        existing, named = set(), set()
        for directory, file in walk():
            path = os.path.join(directory, file)
            if file.endswith(".cc"):
                existing.add(os.path.relpath(path, ROOT))
            elif file == "CMakeLists.txt":
                with open(path, encoding="utf-8") as stream:
                    for word in re.findall(r"[^\s()]+\.cc\b", stream.read()):
                        named.add(os.path.relpath(os.path.join(directory, word), ROOT))
        self.assertEqual(sorted(existing - named), [])

    def test_test_cases_are_in_files_that_ctest_runs(self):
        """Programs that load LibTorch have one ctest entry for each source named `…_test.cc`."""
        outside = []
        for directory, file in walk():
            if file.endswith(".cc") and not file.endswith("_test.cc"):
                path = os.path.join(directory, file)
                with open(path, encoding="utf-8") as stream:
                    if re.search(r"^TEST_CASE", stream.read(), re.M):
                        outside.append(os.path.relpath(path, ROOT))
        self.assertEqual(outside, [])

    def test_work_is_shared_by_strata_parallel_for(self):
        """at::parallel_for takes one thread in files that are compiled without OpenMP, as all of them are."""
        users = []
        for directory, file in walk():
            if file.endswith((".cc", ".h")):
                path = os.path.join(directory, file)
                with open(path, encoding="utf-8") as stream:
                    if "at::parallel_for(" in stream.read():
                        users.append(os.path.relpath(path, ROOT))
        self.assertEqual(users, [])

    def test_what_changes_a_class_by_macros_is_linked(self):
        """simdjson's target defines macros that change the layout of its parser: without them two files differ in it."""
        unlinked = []
        for directory, file in walk():
            if file != "CMakeLists.txt":
                continue
            with open(os.path.join(directory, file), encoding="utf-8") as stream:
                targets = re.findall(r"^ *strata_(?:library|executable|test|fuzz)\(((?:[^()]|\([^()]*\))*)\)", stream.read(), re.M)
            for target in targets:
                if "simdjson::simdjson" in target:
                    continue
                for source in re.findall(r"[^\s()]+\.cc\b", target):
                    with open(os.path.join(directory, source), encoding="utf-8") as stream:
                        if "#include <simdjson.h>" in stream.read():
                            unlinked.append(f"{target.split()[0]}: {source}")
        self.assertEqual(unlinked, [])


if __name__ == "__main__":
    unittest.main()
