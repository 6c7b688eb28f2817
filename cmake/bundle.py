"""Writes the script or style of a page: the given files, in their order, without comments and without blanks that mean
nothing. Scripts share one strict scope. Names and statements stay as they are written.

usage: bundle.py OUT FILE…
"""

import os
import re
import sys

TOKEN = re.compile(r"""
    (?P<comment>//[^\n]*|/\*.*?\*/)
  | (?P<string>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
  | (?P<word>[\w$]+(?:\.\d+)?)
  | (?P<blank>[ \t]+)
  | (?P<newline>\n)
  | (?P<mark>.)
""", re.VERBOSE | re.DOTALL)
REGEX = re.compile(r"/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\[\n])+/[a-z]*")
# After these a slash begins a regular expression; after other words and closing brackets it divides.
BEFORE_REGEX = {"return", "typeof", "case", "in", "of", "new", "delete", "void", "throw", "do", "else"}


class Script:
    """Copies tokens and puts a blank or a line break only where two would become one."""

    def __init__(self, text):
        self.text, self.out, self.last, self.gap = text, [], "", ""

    def emit(self, token):
        word = self.last[-1:].isalnum() or self.last[-1:] in ("_", "$")
        if self.gap == "\n" and self.last and self.last not in tuple("{;,([") and token not in tuple(")]}"):
            self.out.append("\n")
        elif self.gap and word and (token[0].isalnum() or token[0] in "_$"):
            self.out.append(" ")
        elif self.gap and self.last[-1:] in ("+", "-") and token[0] == self.last[-1]:
            self.out.append(" ")
        if token == "}" and self.last == ";":
            self.out.pop()  # our sources have no empty statements
        if token == "=>" and self.out[-1] == ")" and self.out[-3:-2] == ["("] and re.fullmatch(r"[\w$]+", self.out[-2]):
            parameter = self.out[-2]
            del self.out[-3:]
            before = self.out[-1][-1:] if self.out else ""
            self.out.append((" " if before.isalnum() or before in ("_", "$") else "") + parameter)
        self.out.append(token)
        self.last, self.gap = token, ""

    def starts_regex(self):
        if self.last in BEFORE_REGEX or not self.last:
            return True
        return not (self.last[-1].isalnum() or self.last[-1] in "_$)]}\"'`")

    def template(self, at):
        """Copies a template literal that begins at `at`; returns where it ends. Its texts stay as they are."""
        begin = at
        at += 1
        while self.text[at] != "`":
            if self.text[at] == "\\":
                at += 2
            elif self.text.startswith("${", at):
                inner = Script(self.text)
                end = inner.run(at + 2, stop="}")
                self.pending(begin, at + 2, "".join(inner.out))
                begin = at = end
            else:
                at += 1
        self.pending(begin, at + 1, "")
        self.emit("".join(self.parts))
        self.parts = []
        return at + 1

    parts = []

    def pending(self, begin, end, more):
        self.parts = [*self.parts, self.text[begin:end], more]

    def run(self, at=0, stop=None):
        depth = 0
        while at < len(self.text):
            char = self.text[at]
            if char == "`":
                at = self.template(at)
                continue
            if char == "/" and self.text[at + 1] not in "/*" and self.starts_regex():
                match = REGEX.match(self.text, at)
                self.emit(match.group())
                at = match.end()
                continue
            if stop and char == stop and depth == 0:
                return at
            depth += (char == "{") - (char == "}")
            match = TOKEN.match(self.text, at)
            at = match.end()
            if match.lastgroup in ("comment", "blank"):
                self.gap = self.gap or " "
            elif match.lastgroup == "newline":
                self.gap = "\n"
            else:
                self.emit(match.group())
        return at


def script(text):
    result = Script(text)
    result.run()
    return '"use strict";\n(() => {\n' + "".join(result.out) + "\n})();\n"


def style(text):
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    text = re.sub(r"\s+", " ", text)
    return re.sub(r" ?([{};,]) ?", r"\1", re.sub(r": ", ":", text)).replace(";}", "}").replace("}", "}\n").strip() + "\n"


def main():
    out, *paths = sys.argv[1:]
    texts = []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            texts.append(file.read())
    os.makedirs(os.path.dirname(out) or ".", exist_ok=True)
    with open(out, "w", encoding="utf-8") as file:
        file.write((script if out.endswith(".js") else style)("\n".join(texts)))


main()
