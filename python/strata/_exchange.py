"""The exchange file: JSON lines that `strata import` turns into a trace. Format: docs/exchange_format.md."""

import json
import os
import socket
import sys

_FAILURES = 3
_MAX_TEXTS = 50_000


class ExchangeFile:
    """Appends records. After three failures in a row it is off: a full disk must not slow a compile down."""

    def __init__(self, folder, warn):
        self._folder = folder
        self._warn = warn
        self._descriptor = -1
        self._failures = 0
        self._texts = {}
        self._next_text = 0
        self.path = None
        self.pid = os.getpid()

    @property
    def is_on(self):
        return self._descriptor >= 0 and self._failures < _FAILURES

    def open(self, head):
        try:
            os.makedirs(self._folder, exist_ok=True)
            host = "".join(c if c.isalnum() else "-" for c in socket.gethostname())[:64] or "host"
            self.path = os.path.join(self._folder, f"{host}-{os.getpid()}-r{head['rank']}.jsonl")
            self._descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC,
                                       0o644)
        except OSError as error:
            self._warn("file", f"cannot record: {self._folder}: {error.strerror}")
            return
        self.write({"r": "head", "schema": "strata.exchange/1", **head})

    def write(self, *records):
        """Appends records with one system call."""
        if not self.is_on:
            return
        try:
            lines = [json.dumps(record, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
                     for record in records]
            rest = memoryview(("\n".join(lines) + "\n").encode("ascii"))
            while rest:
                rest = rest[os.write(self._descriptor, rest):]
            self._failures = 0
        except (OSError, ValueError) as error:
            self._failures += 1
            self._warn("write", f"cannot write the recording: {self.path}: {error}")

    def text(self, text, pending):
        """The number of a text; a new one is added to the records `pending`."""
        number = self._texts.get(text)
        if number is None:
            if len(self._texts) >= _MAX_TEXTS:  # a long run: what comes again is written again
                self._texts.clear()
            self._next_text += 1
            number = self._texts[text] = self._next_text
            pending.append({"r": "text", "id": number, "s": text})
        return number

    def close(self, tail=True):
        if tail:
            self.write({"r": "tail"})
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1


def head(torch_version):
    def number(name, default):
        text = os.environ.get(name, "")
        return int(text) if text.isdigit() else default

    rank = number("RANK", 0)
    return {
        "torch": str(torch_version), "python": sys.version.split()[0], "pid": os.getpid(), "rank": rank,
        "world": max(number("WORLD_SIZE", 1), rank + 1),
        "command": " ".join(sys.argv).encode("utf-8", "replace").decode()[:4096] if hasattr(sys, "argv") else "",
        "source": (sys.argv[0] if getattr(sys, "argv", None) else "") or "python",
    }
