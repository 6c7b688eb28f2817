"""`strata mcp`: a Model Context Protocol server on standard input and output, with commands of Strata as tools.

    strata mcp --root FOLDER [--root FOLDER…]

All tools read; none writes. Files outside of the roots are refused, also through symbolic links. A result is cut into
pages of at most 40,000 characters: `next` in it is the `cursor` that continues it.
"""

import json
import os
import re
import sys

from strata import __version__
from strata._program import Error, call

_VERSIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
_STATELESS = "2026-07-28"
_PAGE = 40_000
_TIMEOUT = 120
_REF = {"type": "string", "description": "FILE or FILE#SELECTOR: a trace, a PyTorch log or the text of a graph; "
        "selectors: run=, rank=, graph=, pass=N|NAME[:before|:after]"}

# name: (command, positional arguments, those with ? may be missing; description, fixed options)
_TOOLS = {
    "ls": ("ls", ["trace"], "List the runs, graphs and passes of a trace or log.", []),
    "show": ("show", ["ref"], "Print a graph as PyTorch's FX text.", ["--format", "fx"]),
    "diff": ("diff", ["before", "after"], "Compare two graphs node by node: changes, patterns, replacements.", []),
    "blame": ("blame", ["trace", "node"], "The history of a node across all passes.", []),
    "ranks": ("ranks", ["logs"], "Find the ranks that differ, and collectives that do not match.", []),
    "bisect": ("bisect", ["before", "after"], "Find the first pass at which two runs diverge.", []),
    "prove": ("prove", ["trace", "after?"], "Prove by exact evaluation that each pass of a trace computes what was there "
              "before; with `after`, that this graph computes what the graph `trace` does.", []),
    "profile": ("profile", ["ref"], "The time that each node took, where the trace has times.", []),
}
_PLAIN = {"node"}  # these arguments are not files


class _Refused(Exception):
    """A protocol error: (code, message)."""


def _plain(word):
    return word.removesuffix("?")


def _tool(name):
    _, arguments, description, _ = _TOOLS[name]
    properties = {word: {"type": "string", "description": "the name of a node"} if word in _PLAIN else _REF
                  for word in map(_plain, arguments)}
    properties["cursor"] = {"type": "string", "description": "`next` of the page before"}
    return {"name": name, "description": description,
            "inputSchema": {"type": "object", "properties": properties, "additionalProperties": False,
                            "required": [word for word in arguments if word == _plain(word)]},
            "annotations": {"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False}}


class Server:
    def __init__(self, roots):
        self._roots = [os.path.realpath(root) for root in roots]

    def answer(self, line):
        """The answer to one line as a dict; None for a notification."""
        try:
            message = json.loads(line)
        except ValueError:
            return _error(None, -32700, "not JSON")
        if not isinstance(message, dict) or not isinstance(message.get("method"), str):
            if isinstance(message, dict) and ("result" in message or "error" in message):
                return None
            return _error(None, -32600, "not a request")
        if "id" not in message:
            return None
        number, params = message["id"], message.get("params")
        try:
            # Clients of the stateless protocol need the type; older ones ignore it.
            result = {"resultType": "complete",
                      **self._result(message["method"], params if isinstance(params, dict) else {})}
        except _Refused as error:
            return _error(number, *error.args)
        return {"jsonrpc": "2.0", "id": number, "result": result}

    def _result(self, method, params):
        if method == "initialize":
            asked = params.get("protocolVersion")
            return {"protocolVersion": asked if asked in _VERSIONS else _VERSIONS[-1], **_about()}
        if method == "server/discover":
            return {"supportedVersions": [_STATELESS, *reversed(_VERSIONS)], **_about(),
                    "ttlMs": 3_600_000, "cacheScope": "public"}
        if method == "ping":
            return {}
        if method == "tools/list":
            return {"tools": [_tool(name) for name in _TOOLS], "ttlMs": 3_600_000, "cacheScope": "public"}
        if method == "tools/call":
            return self._call(params)
        raise _Refused(-32601, f"no method {method}")

    def _call(self, params):
        name, arguments = params.get("name"), params.get("arguments") or {}
        if name not in _TOOLS:
            raise _Refused(-32602, f"no tool {name}")
        command, words, _, options = _TOOLS[name]
        if not isinstance(arguments, dict) or not all(isinstance(value, str) for value in arguments.values()):
            raise _Refused(-32602, "arguments are strings")
        missing = [word for word in words if _plain(word) == word and word not in arguments]
        unknown = sorted(set(arguments) - {*map(_plain, words), "cursor"})
        if missing or unknown:
            raise _Refused(-32602, "missing: " + ", ".join(missing) if missing else "unknown: " + ", ".join(unknown))
        cursor = arguments.get("cursor", "0")
        if not re.fullmatch(r"\d{1,12}", cursor):
            raise _Refused(-32602, "cursor: not one of this server")
        try:
            values = [arguments[word] if word in _PLAIN else self._confined(arguments[word])
                      for word in map(_plain, words) if word in arguments]
            _, text = call(command, *options, "--", *values, ok=(0, 1), timeout=_TIMEOUT)
        except Error as error:
            return _text(str(error), is_error=True)
        except OSError as error:
            return _text(f"cannot run: {error.strerror}", is_error=True)
        except Exception as error:  # a command that takes too long
            return _text(f"{command} did not end: {type(error).__name__}", is_error=True)
        return _page(text, int(cursor))

    def _confined(self, ref):
        """A REF whose file is inside of a root, by its real path."""
        path, mark, selector = ref.partition("#")
        if not os.path.isabs(path):
            path = next((inside for inside in (os.path.join(root, path) for root in self._roots)
                         if os.path.exists(inside)), os.path.join(self._roots[0], path))
        real = os.path.realpath(path)
        if not any(real == root or real.startswith(root.rstrip(os.sep) + os.sep) for root in self._roots):
            raise Error(f"outside of the folders that may be read: {ref}")
        if not (os.path.isfile(real) or os.path.isdir(real)):
            raise Error(f"no such file: {ref}")
        return real + mark + selector


def _about():
    return {"capabilities": {"tools": {}}, "serverInfo": {"name": "strata", "version": __version__},
            "instructions": "Strata inspects and compares computation graphs of training programs. Begin with `ls` "
                            "of a trace; its refs are arguments of the other tools."}


def _page(text, start):
    page = text[start:start + _PAGE]
    if start + _PAGE < len(text):
        end = page.rfind("\n") + 1 or len(page)
        page = page[:end]
        return _text(page + f"… next: {start + end} of {len(text)} characters", {"next": str(start + end)})
    return _text(page)


def _text(text, structured=None, is_error=False):
    result = {"content": [{"type": "text", "text": text}], "isError": is_error}
    if structured:
        result["structuredContent"] = structured
    return result


def _error(number, code, message):
    return {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": message}}


def serve(words):
    """Serves until standard input ends; the exit status."""
    roots = []
    words = list(words)
    while words:
        word = words.pop(0)
        if word in ("-h", "--help"):
            print(__doc__.strip())
            return 0
        if word != "--root" or not words or not os.path.isdir(words[0]):
            print(f"strata: error: mcp: '{word}': give --root FOLDER, a folder that may be read", file=sys.stderr)
            return 2
        roots.append(words.pop(0))
    server = Server(roots or ["."])
    for line in sys.stdin.buffer:
        if not line.strip():
            continue
        answer = server.answer(line)
        if answer is not None:
            sys.stdout.buffer.write(json.dumps(answer).encode("ascii") + b"\n")
            sys.stdout.buffer.flush()
    return 0
