"""Documentation, comments and --help use the words of docs/glossary.md, and the check of that finds what it should."""

import os
import unittest

import words

with open(os.path.join(words.ROOT, words.GLOSSARY), encoding="utf-8") as stream:
    GLOSSARY = stream.read()

SMALL = """
| term | meaning | retired |
|---|---|---|
| report | the verb | `told`, `tells?` |
| transient memory | what operators free | `passing memory` |
| is not | a negation | `(is\\|are) no(?! longer)` |

| retired name | name |
|---|---|
| `PassingMemory` | `TransientMemory` |
"""


def found(path, text):
    blocks = words.prose(path, text)
    small = words.retired_words(SMALL)
    return [(line, word) for block in blocks for line, word, _ in words.findings_in(block, small)]


class Words(unittest.TestCase):

    def test_the_tree_has_no_retired_word(self):
        self.assertEqual(words.check(words.ROOT, ["."]), [])

    def test_the_glossary_is_read(self):
        retired = words.retired_words(GLOSSARY)
        self.assertGreater(len(retired), 60)
        self.assertIn("OpenPlaces", words.retired_names(GLOSSARY))

    def test_no_term_of_the_glossary_is_retired(self):
        retired = words.retired_words(GLOSSARY)
        for header, rows in words.tables(GLOSSARY):
            if header[-1] == "retired":
                for row in rows:
                    self.assertEqual(list(words.findings_in([(1, row[0])], retired)), [], row[0])

    def test_a_finding_names_file_line_word_and_term(self):
        retired, names = words.retired_words(SMALL), words.retired_names(SMALL)
        line = next(words.findings_in([(3, "the size is told")], retired))
        self.assertEqual(line, (3, "told", "report"))
        self.assertEqual(names, {"PassingMemory": "TransientMemory"})

    def test_phrases_are_found_across_lines(self):
        self.assertEqual(found("a.h", "int a;\n/// The passing\n/// memory of a run.\n"), [(2, "passing memory")])
        self.assertEqual(found("a.md", "The passing\nmemory.\n\n- passing\n- memory\n"), [(1, "passing memory")])

    def test_words_are_whole_and_case_does_not_count(self):
        self.assertEqual(found("a.md", "Told. Untold, told-off, retold, tells_x."), [(1, "Told")])

    def test_legitimate_neighbours_are_left_alone(self):
        self.assertEqual(found("a.md", "It is no longer there. It is no tensor."), [(1, "is no")])

    def test_code_is_not_prose(self):
        self.assertEqual(found("a.md", "`told`\n\n```\nit tells\n```\n\n    it tells\n"), [])
        self.assertEqual(found("ir/a.cc", 'auto told = "tells"; // `told`\n'), [])
        self.assertEqual(found("a.py", "told = 'tells'\n"), [])

    def test_comments_and_docstrings_are_prose(self):
        self.assertEqual(found("ir/a.cc", 'f("//"); // told\n/* it\n * tells */\n'), [(1, "told"), (3, "tells")])
        self.assertEqual(found("a.py", '"""It\ntells."""\nx = 1  # told\n'), [(3, "told"), (2, "tells")])
        self.assertEqual(found("CMakeLists.txt", "set(told 1)  # told\n"), [(1, "told")])
        self.assertEqual(found("dev", "cat <<'END'\nit tells\nEND\n"), [(2, "tells")])

    def test_strings_of_the_command_line_are_prose(self):
        self.assertEqual(found("cli/a.cc", 'f("the passing "\n  "memory");\n'), [(1, "passing memory")])
        self.assertEqual(found("cli/a.cc", 'f(R"(one\ntwo tells)");\n'), [(2, "tells")])

    def test_retired_names_are_found_in_code_only(self):
        code = words.cpp_code('PassingMemory a; // PassingMemory\nauto b = "PassingMemory";\n')
        self.assertEqual(code.count("PassingMemory"), 1)


if __name__ == "__main__":
    unittest.main()
