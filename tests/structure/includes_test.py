"""The include lines of the source tree follow the layers, and the check that says so can fail."""

import os
import tempfile
import unittest

import includes

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def violations_of(files):
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                file.write(text)
        return includes.violations(root)


class IncludeDirections(unittest.TestCase):

    def test_this_tree_follows_the_layers(self):
        self.assertEqual(includes.violations(ROOT), [])

    def test_no_folders_include_each_other_in_a_circle(self):
        left = {folder: below - {folder} for folder, below in includes.ALLOWED.items()}
        while left:
            lowest = [folder for folder, below in left.items() if not below & left.keys()]
            self.assertTrue(lowest, f"a circle among {sorted(left)}")
            for folder in lowest:
                del left[folder]

    def test_the_page_of_the_architecture_has_a_row_for_each_folder(self):
        with open(os.path.join(ROOT, "docs", "architecture.md"), encoding="utf-8") as file:
            page = file.read()
        self.assertEqual([folder for folder in includes.ALLOWED if f"| `{folder}/` |" not in page], [])

    def test_each_row_names_folders_that_have_rows(self):
        for folder, below in includes.ALLOWED.items():
            self.assertLessEqual(below, includes.ALLOWED.keys(), folder)

    def test_a_lower_layer_may_not_include_a_higher_one(self):
        self.assertEqual(
            violations_of({"ir/a.h": '#pragma once\n#include "store/b.h"\n', "store/b.h": ""}),
            ['ir/a.h:2: ir/ may not include "store/b.h"'])

    def test_a_higher_layer_may_include_a_lower_one(self):
        self.assertEqual(violations_of({"store/a.h": '#include "ir/b.h"\n', "ir/b.h": ""}), [])

    def test_ir_may_not_include_its_fx_spelling(self):
        self.assertEqual(
            violations_of({"ir/a.h": '#include "ir/fx/b.h"\n', "ir/fx/b.h": ""}),
            ['ir/a.h:1: ir/ may not include "ir/fx/b.h"'])

    def test_torch_is_for_the_runtime_but_not_its_plan(self):
        line = "#include <ATen/core/Tensor.h>\n"
        self.assertEqual(violations_of({"runtime/torch/a.h": line}), [])
        for path in ("runtime/plan/a.h", "passes/a.h", "cli/a.cc"):
            self.assertEqual(violations_of({path: line}),
                             [f"{path}:1: <ATen/core/Tensor.h> may not be included here"])

    def test_libraries_have_their_place(self):
        for path, header in (("store/a.h", "sqlite3.h"), ("runtime/comm/a.cc", "nccl.h"),
                             ("runtime/torch/a.cc", "cuda_runtime.h"), ("scene/a.cc", "imgui.h"),
                             ("diff/a.h", "simdjson.h"), ("store/a.cc", "CLI/CLI.hpp")):
            self.assertEqual(violations_of({path: f"#include <{header}>\n"}),
                             [f"{path}:1: <{header}> may not be included here"])

    def test_ir_has_few_dependencies(self):
        good = "#include <vector>\n#include <unistd.h>\n#include <fmt/format.h>\n#include <xxhash.h>\n"
        self.assertEqual(violations_of({"ir/a.h": good}), [])
        self.assertEqual(
            violations_of({"ir/a.h": "#include <zstd.h>\n"}),
            ["ir/a.h:1: ir/ may include the standard library and small libraries, not <zstd.h>"])

    def test_one_file_knows_graphviz(self):
        line = "#include <graphviz/gvc.h>\n"
        self.assertEqual(
            violations_of({"scene/a.cc": line, "scene/b.cc": line}),
            ["scene/b.cc:1: only one file may include Graphviz, scene/a.cc does"])

    def test_paths_start_at_the_root(self):
        self.assertEqual(violations_of({"ir/a.h": "", "ir/b.h": '#include "a.h"\n'}),
                         ['ir/b.h:1: "a.h" is not a path from the repository root'])

    def test_a_source_includes_its_own_header_first(self):
        self.assertEqual(violations_of({"ir/a.h": "", "ir/a.cc": '#include <vector>\n#include "ir/a.h"\n'}),
                         ['ir/a.cc:1: the first include must be "ir/a.h"'])


if __name__ == "__main__":
    unittest.main()
