"""The modules of the report's page: all are used, the bundle is small, and no text becomes markup or code.

usage: modules_test.py ESBUILD
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGE = os.path.join(ROOT, "assets", "report")
MAX_FUNCTION_LINES = 60
ESBUILD = sys.argv.pop() if len(sys.argv) > 1 else "esbuild"


def files(ending):
    return sorted(name for name in os.listdir(PAGE) if name.endswith(ending))


def read(name):
    with open(os.path.join(PAGE, name), encoding="utf-8") as file:
        return file.read()


def functions(text):
    """(line, length) of each function and method, by indentation: the sources are formatted."""
    lines = text.split("\n")
    begin = re.compile(r"(?:export )?(?:async )?function |(?:export )?const \w+ = .*=>|"
                       r"  (?:async |static |get |set )?(?!if|for|while|switch|catch)\w+\(.*\{$")
    for i, line in enumerate(lines):
        if not begin.match(line):
            continue
        indent = len(line) - len(line.lstrip())
        closing = (k for k in range(i + 1, len(lines)) if lines[k].strip() and not lines[k].startswith(" " * (indent + 1))
                   and not lines[k].strip().startswith(") {"))
        yield i + 1, next(closing, len(lines)) - i + 1


def imports(name):
    return [a or b for a, b in re.findall(r'^import (?:\{[^}]*\} from "\./([\w.]+)"|"\./([\w.]+)");$', read(name), re.M)]


def cycle_through(name):
    """The modules on a way of imports from `name` back to it; None without such a way."""
    seen, todo = set(), [(name, (name,))]
    while todo:
        at, path = todo.pop()
        for other in imports(at):
            if other == name:
                return path
            if other not in seen:
                seen.add(other)
                todo.append((other, path + (other,)))
    return None


def bundle(entry):
    """The bundle of an entry file, and the names of the files in it. Built as tlparse-export/report/CMakeLists.txt does."""
    with tempfile.TemporaryDirectory() as folder:
        out, meta = os.path.join(folder, "out" + os.path.splitext(entry)[1]), os.path.join(folder, "meta.json")
        subprocess.run([ESBUILD, entry, "--bundle", "--minify", "--format=iife", "--charset=utf8", "--log-level=warning",
                        f"--outfile={out}", f"--metafile={meta}"], check=True, cwd=PAGE)
        with open(out, "rb") as file, open(meta, encoding="utf-8") as inputs:
            return file.read(), sorted(map(os.path.basename, json.load(inputs)["inputs"]))


class Modules(unittest.TestCase):

    def test_every_file_is_in_the_page(self):
        for kind in (".js", ".css"):
            self.assertEqual(bundle("app" + kind)[1], files(kind))

    def test_every_export_is_imported(self):
        exported, imported = {}, set()
        for name in files(".js"):
            text = read(name)
            for found in re.finditer(r"^export (?:async )?(?:function|class|const|let) (\w+)", text, re.M):
                exported[found[1]] = name
            for found in re.finditer(r"^import \{([^}]*)\} from", text, re.M):
                imported.update(re.findall(r"\w+", found[1]))
        self.assertGreater(len(exported), 100)
        self.assertEqual({word: name for word, name in exported.items() if word not in imported}, {})

    def test_script_and_style_are_small(self):
        self.assertLess(sum(len(bundle("app" + kind)[0]) for kind in (".js", ".css")), 150_000)

    def test_lines_are_short(self):
        long = [f"{name}:{i}" for name in files(".js") for i, line in enumerate(read(name).split("\n"), 1) if len(line) > 100]
        self.assertEqual(long, [])
        wide = [f"{name}:{i}" for name in files(".css") + files(".html")
                for i, line in enumerate(read(name).split("\n"), 1) if len(line) > 120]
        self.assertEqual(wide, [])

    def test_functions_fit_on_a_screen(self):
        found = {name: list(functions(read(name))) for name in files(".js")}
        self.assertGreater(sum(map(len, found.values())), 400)
        self.assertEqual([f"{name}:{line}: {length} lines" for name, list_ in found.items()
                          for line, length in list_ if length > MAX_FUNCTION_LINES], [])

    def test_imports_have_no_cycle(self):
        self.assertEqual([path for path in map(cycle_through, files(".js")) if path], [])

    def test_text_never_becomes_markup_or_code(self):
        unsafe = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|"
                            r"createContextualFragment|\bfetch\(|XMLHttpRequest|WebSocket|sendBeacon|import\(|\.srcdoc")
        for name in files(".js"):
            self.assertIsNone(unsafe.search(read(name)), name)


if __name__ == "__main__":
    unittest.main()
