"""Finds words that docs/glossary.md retires, in prose: documentation, comments and the strings of the command line.

    words.py PATH…     lists every retired word below the paths, as `file:line: 'word': use 'term'`

Prose is:
  - Markdown, without code blocks and code spans;
  - comments of C++, JavaScript, CSS, Python, CMake, TOML, YAML and shell sources, docstrings, usage texts of ./dev;
  - string literals of C++ sources below cli/.

Lines of one paragraph or comment are joined, so a phrase may be broken across lines. Code spans in backticks are skipped
everywhere. Retired identifiers are searched in the code of C++ sources, outside of comments and strings.
"""

import functools
import io
import os
import re
import sys
import tokenize

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GLOSSARY = "docs/glossary.md"

# Never read: the glossary itself, and data.
EXCLUDED = ["docs/glossary.md", "tests/data/", "assets/report/vendor/"]

CPP = (".h", ".cc", ".js", ".css", ".cu")
HASH = (".cmake", "CMakeLists.txt", ".toml", ".yml", ".yaml", ".sh", ".clang-tidy", ".env")
SHELL = ("dev", "tools/setup", ".ci/run")


# --- The glossary -----------------------------------------------------------------------------------------------------


def cells(row):
    """The cells of a table row; `\\|` is a bar inside a cell."""
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", row.strip())[1:-1]]


def tables(text):
    """(header, rows) of each table."""
    block = []
    for line in text.splitlines() + [""]:
        if line.startswith("|"):
            block.append(cells(line))
        elif block:
            yield block[0], block[2:]
            block = []


def spans(cell):
    return re.findall(r"`([^`]+)`", cell)


def retired_words(text):
    """[(regular expression, term)] of the tables with a column `retired`."""
    words = []
    for header, rows in tables(text):
        if header[-1] == "retired":
            for row in rows:
                words += [(span, row[0]) for span in spans(row[-1])]
    return words


def retired_names(text):
    """{identifier: name that replaces it}, of the table that begins with `retired name`."""
    names = {}
    for header, rows in tables(text):
        if header[0] == "retired name":
            for row in rows:
                names.update(zip(spans(row[0]), spans(row[1])))
    return names


# --- Prose of a file, as blocks: lists of (line number, text) ---------------------------------------------------------

TOKEN = re.compile(
    r'//(?P<line>[^\n]*)|/\*(?P<block>.*?)\*/'
    r'|R"(?P<mark>[^(\s]*)\((?P<raw>.*?)\)(?P=mark)"'
    r'|"(?P<string>(?:\\.|[^"\\\n])*)"'
    r"|(?<![\w])'(?:\\.|[^'\\\n])*'"
    r"|`(?P<template>(?:\\.|[^`\\])*)`", re.DOTALL)


def line_at(text, offset):
    return text.count("\n", 0, offset) + 1


def join_lines(items):
    """Joins (line, text) of consecutive lines into blocks."""
    block = []
    for line, text in items:
        if block and line > block[-1][0] + 1:
            yield block
            block = []
        block.append((line, text))
    if block:
        yield block


def cpp_comments(text):
    items = []
    for match in TOKEN.finditer(text):
        if match["line"] is not None:
            items.append((line_at(text, match.start()), match["line"].lstrip("/<")))
        elif match["block"] is not None:
            first = line_at(text, match.start())
            items += [(first + i, line.strip(" *")) for i, line in enumerate(match["block"].split("\n"))]
    yield from join_lines(items)


def cpp_strings(text):
    """String literals that are prose, with adjacent literals joined."""
    block, end = [], 0
    for match in TOKEN.finditer(text):
        literal = match["string"] if match["string"] is not None else match["raw"]
        if literal is None:
            continue
        if block and text[end:match.start()].strip():
            yield block
            block = []
        first = line_at(text, match.start())
        block += [(first + i, line) for i, line in enumerate(re.sub(r"\\[nt]", " ", literal).split("\n"))]
        end = match.end()
    if block:
        yield block


def cpp_code(text):
    """The text without comments and strings."""
    return TOKEN.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def python_prose(text):
    comments, docstrings = [], []
    begins_line = True
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            comments.append((token.start[0], token.string.lstrip("#")))
        elif token.type == tokenize.STRING and begins_line:
            docstrings.append([(token.start[0] + i, line)
                               for i, line in enumerate(token.string.strip("rRbB\"'").split("\n"))])
        if token.type in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT):
            begins_line = True
        elif token.type not in (tokenize.COMMENT, tokenize.NL):
            begins_line = False
    yield from join_lines(comments)
    yield from docstrings


def hash_comments(text):
    yield from join_lines((number, match[1]) for number, line in enumerate(text.split("\n"), start=1)
                          if (match := re.search(r"(?:^|\s)#+(?!!)(.*)", line)))


def here_documents(text):
    for match in re.finditer(r"<<'END'\n(.*?)\nEND\n", text, re.DOTALL):
        first = line_at(text, match.start(1))
        yield [(first + i, line) for i, line in enumerate(match[1].split("\n"))]


def markdown_prose(text):
    block, fence = [], None
    for number, line in enumerate(text.split("\n"), start=1):
        if mark := re.match(r"\s*(```+|~~~+)", line):
            fence = None if fence == mark[1] else fence or mark[1]
        begins = re.match(r"\s*([-*|>#]|\d+\.)\s?", line)
        if fence or mark or not line.strip() or (begins and block) or line.startswith("    "):
            if block:
                yield block
            block = []
        if not fence and not mark and line.strip() and not line.startswith("    "):
            block.append((number, line))
    if block:
        yield block


def prose(path, text):
    name = os.path.basename(path)
    if path.endswith(".md"):
        yield from markdown_prose(text)
    elif path.endswith(CPP):
        yield from cpp_comments(text)
        if path.startswith("cli/"):
            yield from cpp_strings(text)
    elif path.endswith(".py"):
        yield from python_prose(text)
    elif path.endswith(HASH) or name in HASH:
        yield from hash_comments(text)
    elif path in SHELL:
        yield from hash_comments(text)
        yield from here_documents(text)


# --- Findings ---------------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=None)
def whole_words(expressions):
    """Matches one of the regular expressions where it is whole words."""
    return re.compile(rf"(?<![\w-])(?:{'|'.join(expressions)})(?![\w-])", re.IGNORECASE)


def findings_in(block, words):
    """(line, word, term) of a block of prose."""
    text, starts = "", []
    for line, part in block:
        if part.strip():
            starts.append((len(text), line))
            text += " ".join(part.split()) + " "  # patterns are written with single spaces
    text = re.sub(r"``?[^`]+``?", lambda span: "`" * len(span[0]), text)
    if not whole_words(tuple(word for word, _ in words)).search(text):
        return  # most prose, for which one search is faster than one for each word
    for word, term in words:
        for match in whole_words((word,)).finditer(text):
            line = max(line for start, line in starts if start <= match.start())
            yield line, match[0], term


def findings(root, path, words, names):
    """Every retired word or name of one file, as `file:line: 'word': use 'term'`."""
    with open(os.path.join(root, path), encoding="utf-8") as file:
        text = file.read()
    found = [finding for block in prose(path, text) for finding in findings_in(block, words)]
    if path.endswith((".h", ".cc")):
        for match in re.finditer(r"[A-Za-z_]\w*", cpp_code(text)):
            if match[0] in names:
                found.append((line_at(text, match.start()), match[0], names[match[0]]))
    return [f"{path}:{line}: '{word}': use '{term}'" for line, word, term in sorted(set(found))]


def files(root, entries):
    """Files below the entries that are prose or have comments, as sorted paths relative to `root`."""
    found = set()
    for entry in entries:
        top = os.path.join(root, entry)
        if os.path.isfile(top):
            found.add(os.path.normpath(entry))
        for directory, folders, names in os.walk(top):
            folders[:] = [folder for folder in folders
                          if folder not in ("build", "out", ".git") and not folder.startswith(".venv")]
            found.update(os.path.relpath(os.path.join(directory, name), root) for name in names)
    return sorted(path for path in found if not any(path == no or path.startswith(no) for no in EXCLUDED)
                  and (path.endswith((".md", ".py") + CPP + HASH) or os.path.basename(path) in HASH or path in SHELL))


def check(root, entries):
    with open(os.path.join(root, GLOSSARY), encoding="utf-8") as file:
        glossary = file.read()
    words, names = retired_words(glossary), retired_names(glossary)
    return [finding for path in files(root, entries) for finding in findings(root, path, words, names)]


if __name__ == "__main__":
    print("\n".join(check(ROOT, [os.path.relpath(path, ROOT) for path in sys.argv[1:]])))
