"""Classes that are defined twice: two files that define one qualified name break the one-definition rule.

The linker silently keeps one of two inline functions of one name. `twice(root)` lists every class, struct, union
and enum whose qualified name occurs in more than one file, as `name: file:line, file:line`. Anonymous namespaces and
function bodies are private to their file and are not looked into.
"""

import re

import includes

TOKEN = re.compile(
    r"""
      (?P<skip> //(?:\\\n|[^\n])* | /\*.*?\*/ | ^[ \t]*\#(?:\\\n|[^\n])* | \n | [^\S\n]+ )
    | (?P<raw>  (?:u8|[uUL])?R"(?P<delimiter>[^()\s\\]*)\(.*?\)(?P=delimiter)" )
    | (?P<string> "(?:\\.|[^"\\])*" | '(?:\\.|[^'\\])*' )
    | (?P<word> [A-Za-z_]\w* )
    | (?P<number> \d (?:'?[\w.])* )
    | (?P<sign> :: | \[\[ | \]\] | . )
    """, re.VERBOSE | re.DOTALL | re.MULTILINE)

KEYS = ("class", "struct", "union", "enum")
# What a scope does with the definitions in it: adds its name to theirs, or hides them.
NAMED, HIDDEN = "named", "hidden"


def tokens(text):
    """(line, token) without comments, preprocessor lines and whitespace; every literal is `""`."""
    found, line = [], 1
    for match in TOKEN.finditer(text):
        if match.lastgroup not in ("skip", "delimiter") or match["raw"] is not None:
            found.append((line, '""' if match["raw"] is not None or match["string"] is not None else match[0]))
        line += match[0].count("\n")
    return found


def closing(words, at, opening, end):
    """The index after the bracket that closes words[at]."""
    depth = 0
    while at < len(words):
        depth += (words[at] == opening) - (words[at] == end)
        at += 1
        if depth == 0:
            break
    return at


def class_head(words, at):
    """(name, index of `{`) if words[at] begins a definition, else None. A specialization's name has its arguments."""
    at += 1
    if words[at - 1] == "enum" and words[at] in ("class", "struct"):
        at += 1
    while words[at] in ("[[", "alignas"):
        at = closing(words, at, "[[", "]]") if words[at] == "[[" else closing(words, at + 1, "(", ")")
    name = ""
    while re.fullmatch(r"\w+|::", words[at]) and words[at] != "final":
        if name and words[at] != "::" and not name.endswith("::"):
            return None  # `struct stat info`
        name += words[at]
        at += 1
    if words[at] == "<" and name:
        end = closing(words, at, "<", ">")
        name += " ".join(words[at:end])
        at = end
    if words[at] == "final":
        at += 1
    if words[at] == ":":
        while words[at] not in ("{", ";", ")", ""):
            at += 1
    return (name, at) if words[at] == "{" and name else None


def definitions(text):
    """(line, qualified name) of each class, struct, union and enum that other files can see."""
    lines_of, words = zip(*(tokens(text) + [(0, "")] * 3))
    found, scopes, at = [], [], 0
    while words[at]:
        word = words[at]
        if word == "namespace" and (head := re.match(r"((?:\w+ (?::: )?)*)\{", " ".join(words[at + 1:at + 16]))):
            name = head[1].replace("inline ", "").replace(" ", "")
            scopes.append((NAMED, name) if name else (HIDDEN, ""))
            at = words.index("{", at)
        elif word == "extern" and words[at + 1] == '""' and words[at + 2] == "{":
            scopes.append((NAMED, ""))
            at += 2
        elif word in KEYS and (head := class_head(words, at)):
            name, body = head
            if all(kind == NAMED for kind, _ in scopes):
                found.append((lines_of[at], "::".join([scope for _, scope in scopes if scope] + [name])))
            scopes.append((NAMED, name))
            at = body
        elif word == "{":
            scopes.append((HIDDEN, ""))
        elif word == "}" and scopes:
            scopes.pop()
        at += 1
    return found


def twice_in(texts):
    """`texts`: by path. A class inside a class that is itself defined twice is not named again."""
    places = {}
    for path, text in sorted(texts.items()):
        for line, name in definitions(text):
            places.setdefault(name, {}).setdefault(path, line)
    doubles = {name for name, where in places.items() if len(where) > 1}
    found = []
    for name in sorted(doubles):
        parts = name.split("::")
        if not any("::".join(parts[:size]) in doubles for size in range(1, len(parts))):
            where = ", ".join(f"{path}:{line}" for path, line in sorted(places[name].items()))
            found.append(f"{name}: {where}")
    return found


def twice(root):
    texts = {}
    for path in includes.sources(root):
        with open(f"{root}/{path}", encoding="utf-8") as file:
            texts[path] = file.read()
    return twice_in(texts)
