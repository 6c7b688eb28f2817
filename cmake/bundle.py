"""Writes the script or style of a page: the given files, in their order, without comments, without blanks that mean
nothing, and, in scripts, with short names for what only the script itself can see, also for texts that it says often,
and `let` for `const`. Scripts share one strict scope.

usage: bundle.py OUT FILE…
"""

import collections
import itertools
import os
import re
import string
import sys

TOKEN = re.compile(r"""
    (?P<comment>//[^\n]*|/\*.*?\*/)
  | (?P<string>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
  | (?P<word>[A-Za-z_$][\w$]*)
  | (?P<number>\d[\w.]*)
  | (?P<blank>[ \t]+)
  | (?P<newline>\n)
  | (?P<mark>\.\.\.|\?\.|=>|.)
""", re.VERBOSE | re.DOTALL)
REGEX = re.compile(r"/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\[\n])+/[a-z]*")

KEYWORDS = set("async await break case catch class const constructor continue delete do else extends false finally for "
               "function get if in instanceof let new null of return set static super switch this throw true try typeof "
               "undefined void while yield".split())
# After these a slash begins a regular expression; after other words and closing brackets it divides.
BEFORE_REGEX = {"return", "typeof", "case", "in", "of", "new", "delete", "void", "throw", "do", "else"}
# After these words a brace begins an object or a pattern.
BEFORE_OBJECT = {"return", "const", "let", "of", "in", "case", "typeof", "throw", "yield", "await", "new"}
# What browsers provide, and the page uses. A name that is missing here is renamed, and the page's tests say so.
GLOBALS = set("Array BigInt Blob Boolean CSS Date Error DecompressionStream Event Float64Array HTMLInputElement HTMLSelectElement HTMLTextAreaElement "
              "Infinity Int32Array Intl IntersectionObserver JSON KeyboardEvent Map Math NaN Number Object Promise RegExp ResizeObserver Response Set "
              "String TextDecoder URL Uint16Array Uint32Array Uint8Array addEventListener atob clearTimeout console "
              "decodeURIComponent devicePixelRatio dispatchEvent document encodeURIComponent getComputedStyle history "
              "innerHeight innerWidth isNaN localStorage location matchMedia navigator parseFloat parseInt performance print "
              "removeEventListener requestAnimationFrame screen setTimeout structuredClone Symbol WeakMap window".split())

# Of these, what is used often has a short name of the script's own: none of them ever changes, and none of their functions
# asks what it was called on.
STEADY = set("Array JSON Map Math Number Object Set String document".split())
LITERALS = set("null true false undefined".split())

Token = collections.namedtuple("Token", "kind text")


def tokens(text, at=0, stop=None):
    """Tokens without comments; returns them and where they end. A template literal is a token of its own kind, a list
    of its texts and, between them, tokens."""
    result, depth, last = [], 0, None
    while at < len(text):
        char = text[at]
        if stop and char == stop and depth == 0:
            break
        if char == "`":
            parts, at = template(text, at + 1)
            result.append(Token("template", parts))
            last = result[-1]
            continue
        if char == "/" and text[at + 1] not in "/*" and begins_regex(last):
            match = REGEX.match(text, at)
            kind = "regex"
        else:
            match = TOKEN.match(text, at)
            kind = match.lastgroup
        at = match.end()
        depth += (match.group() == "{") - (match.group() == "}")
        if kind == "comment":
            kind = "blank"
        result.append(Token(kind, match.group()))
        if kind not in ("blank", "newline"):
            last = result[-1]
    return result, at


def begins_regex(last):
    if last is None or last.kind == "word":
        return last is None or last.text in BEFORE_REGEX
    return last.kind == "mark" and last.text not in (")", "]", "}")


def template(text, at):
    parts, begin = [], at
    while text[at] != "`":
        if text[at] == "\\":
            at += 2
        elif text.startswith("${", at):
            inner, end = tokens(text, at + 2, "}")
            parts += [text[begin:at + 2], inner]
            begin = at = end
        else:
            at += 1
    return [*parts, text[begin:at]], at + 1


class Names:
    """Short names for variables, functions and classes. One name has one short form everywhere, so scopes stay as they
    are; names of properties stay: `{name}` becomes `{name:a}`."""

    def __init__(self, all_tokens):
        self.uses, self.kept = collections.Counter(), KEYWORDS | GLOBALS
        self.count(all_tokens)
        wanted = [name for name, _ in self.uses.most_common() if name not in self.kept]
        taken = self.kept | set(self.uses) - set(wanted)
        letters = string.ascii_letters + "_$"
        candidates = (a + b for size in (0, 1) for a in ([""] if size == 0 else letters)
                      for b in (letters if size == 0 else letters + string.digits))
        free = (name for name in itertools.chain(candidates, (f"_{i}" for i in itertools.count())) if name not in taken)
        self.short = {name: next(free) for name in wanted}
        self.texts = {}
        said = collections.Counter(texts(all_tokens))
        # With two letters: what it costs to say each time, and once more to declare the name.
        for text, count in sorted(said.items(), key=lambda item: (-item[1] * (len(item[0]) - 2), item[0])):
            if count * (len(text) - 2) > len(text) + 5:
                self.texts[text] = next(free)

    def of(self, name):
        return self.short.get(name, name)

    def count(self, all_tokens, is_value=False):
        for i, role in roles(all_tokens, is_value):
            if role != "property":
                self.uses[all_tokens[i].text] += 1
        for token in all_tokens:
            if token.kind == "template":
                for part in token.text[1::2]:
                    self.count(part, True)


def texts(all_tokens):
    """String literals that are values; those that are keys of an object stay."""
    for i, token in enumerate(all_tokens):
        if token.kind == "template":
            for part in token.text[1::2]:
                yield from texts(part)
        elif token.kind == "string" and not is_key(all_tokens, i):
            yield token.text


def is_key(all_tokens, i):
    solid = [token for token in all_tokens[max(0, i - 3):i] if token.kind not in ("blank", "newline")]
    after = next((token.text for token in all_tokens[i + 1:i + 4] if token.kind not in ("blank", "newline")), "")
    return after == ":" and bool(solid) and solid[-1].text in ("{", ",")


def roles(all_tokens, is_value=False):
    """(index, role) of each word: "variable", "property", or "both" in a shorthand. `is_value`: inside a template."""
    solid = [i for i, token in enumerate(all_tokens) if token.kind not in ("blank", "newline")]
    brackets = []
    for at, i in enumerate(solid):
        token = all_tokens[i]
        before = all_tokens[solid[at - 1]] if at else Token("", "")
        after = all_tokens[solid[at + 1]] if at + 1 < len(solid) else Token("", "")
        if token.kind == "mark" and token.text in "([{":
            # Braces of an object or a pattern stand where a value may stand; the others hold statements or methods.
            is_block = token.text == "{" and (before.text in (")", "=>", ";", "{", "}") or not before.text and not is_value or
                                              (before.kind == "word" and before.text not in BEFORE_OBJECT))
            brackets.append("block" if is_block else token.text)
        elif token.kind == "mark" and token.text in ")]}" and brackets:
            brackets.pop()
        if token.kind != "word" or token.text in KEYWORDS:
            continue
        inside = brackets[-1] if brackets else ""
        role = "variable"
        if before.text in (".", "?."):
            role = "property"
        elif inside == "{" and before.text in ("{", ",") and after.text == ":":
            role = "property"
        elif inside == "{" and before.text in ("{", ",") and after.text in (",", "}", "="):
            role = "both"
        elif inside in ("{", "block") and after.text == "(" and before.text in ("{", "}", ";", ",", "async", "get", "set", "static"):
            if is_method(all_tokens, solid, at + 1):
                role = "property"
        yield i, role


def is_method(all_tokens, solid, at):
    """The parenthesis at `at` closes before a brace: parameters of a method, not a call."""
    depth = 0
    for k in range(at, len(solid)):
        text = all_tokens[solid[k]].text
        depth += (text == "(") - (text == ")")
        if depth == 0:
            return k + 1 < len(solid) and all_tokens[solid[k + 1]].text == "{"
    return False


def written(all_tokens, names, is_value=False):
    """The tokens as text, with a blank or a line break only where two would become one."""
    role_of = dict(roles(all_tokens, is_value))
    out, last, gap = [], "", ""
    declares = [False]  # for each open bracket: the statement there is a declaration
    for i, token in enumerate(all_tokens):
        if token.kind in ("blank", "newline"):
            gap = "\n" if token.kind == "newline" else gap or " "
            continue
        text = token.text
        if token.kind == "template":
            text = "`" + "".join(part if k % 2 == 0 else written(part, names, True) for k, part in enumerate(text)) + "`"
        elif token.kind == "word" and role_of.get(i) == "variable":
            text = names.of(text)
        elif token.kind == "string" and text in names.texts and not is_key(all_tokens, i):
            text = names.texts[text]
        elif text in ("const", "let"):
            text = "let"  # what must not be assigned was checked where it was written
            if last == ";" and declares[-1]:
                out[-1], last, gap = ",", ",", ""  # one declaration goes on
                continue
            declares[-1] = True
        elif token.kind == "word" and role_of.get(i) == "both" and names.of(text) != text:
            text = f"{text}:{names.of(text)}"
        if last == ";" and text not in ("let", ";"):
            declares[-1] = False
        if token.kind == "mark" and text in "([{":
            declares.append(False)
        elif token.kind == "mark" and text in ")]}":
            declares.pop()
        word = last[-1:].isalnum() or last[-1:] in ("_", "$")
        if text == "}" and last == ";":
            out.pop()  # sources have no empty statements
        if gap == "\n" and last and last not in tuple("{;,([}") and text not in tuple(")]}"):
            out.append("\n")
        elif gap and word and (text[0].isalnum() or text[0] in "_$"):
            out.append(" ")
        elif gap and last[-1:] in ("+", "-") and text[0] == last[-1]:
            out.append(" ")
        if text == "=>" and out[-1] == ")" and out[-3:-2] == ["("] and re.fullmatch(r"[\w$]+", out[-2]):
            parameter = out[-2]  # `(x) =>` is `x =>`
            del out[-3:]
            before = out[-1][-1:] if out else ""
            out.append((" " if before.isalnum() or before in ("_", "$") else "") + parameter)
        out.append(text)
        last, gap = text, ""
    return "".join(out)


def steady(all_tokens):
    """(begin, end, text) of what the language and browsers provide: `null`, `Math.max`, or `Map` alone."""
    for i, token in enumerate(all_tokens):
        if token.kind == "word" and token.text in LITERALS and not is_key(all_tokens, i) and all_tokens[i - 1].text != ".":
            yield i, i + 1, token.text
    for i, role in roles(all_tokens):
        if role != "variable" or all_tokens[i].text not in STEADY:
            continue
        member = [token.text for token in all_tokens[i:i + 3]]
        is_member = member[0] in ("Array", "JSON", "Math", "Object") and member[1:2] == ["."]
        yield i, i + 3 if is_member else i + 1, "".join(member) if is_member else member[0]


def parts_of(all_tokens):
    """Lists of tokens: this one, and those inside of its templates."""
    yield all_tokens
    for token in all_tokens:
        if token.kind == "template":
            for part in token.text[1::2]:
                yield from parts_of(part)


def with_own_names(all_tokens):
    """What browsers provide, and the script says often, as variables; their declaration is in front."""
    said = collections.Counter(text for part in parts_of(all_tokens) for _, _, text in steady(part))
    often = {text: "own_" + text.replace(".", "_") for text, count in said.items() if (count - 1) * (len(text) - 2) > 6}
    for part in parts_of(all_tokens):
        for begin, end, text in sorted(steady(part), reverse=True):
            if text in often:
                part[begin:end] = [Token("word", often[text])]
    declared, _ = tokens("".join(f"{',' if i else 'const '}{name}={text}" for i, (text, name) in enumerate(often.items())))
    return [*declared, *tokens(";\n")[0], *all_tokens] if often else all_tokens


def script(text):
    all_tokens = with_own_names(tokens(text)[0])
    names = Names(all_tokens)
    said = ",".join(f"{name}={text}" for text, name in names.texts.items())
    return '"use strict";\n(() => {\n' + (f"let {said};\n" if said else "") + written(all_tokens, names) + "\n})();\n"


def style(text):
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    text = re.sub(r"\s+", " ", text)
    return re.sub(r" ?([{};,]) ?", r"\1", re.sub(r": ", ":", text)).replace(";}", "}").strip() + "\n"


def main():
    out, *paths = sys.argv[1:]
    texts = []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            texts.append(file.read())
    os.makedirs(os.path.dirname(out) or ".", exist_ok=True)
    with open(out, "w", encoding="utf-8") as file:
        file.write((script if out.endswith(".js") else style)("\n".join(texts)))


if __name__ == "__main__":
    main()
