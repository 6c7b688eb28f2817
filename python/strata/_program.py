"""The program `strata`: where it is, and how Python calls it."""

import os
import shutil


class Error(RuntimeError):
    """What the program could not do, in its words."""


def find_program():
    """The path of the program: STRATA_BIN, the one of the wheel, or the first on PATH that is not a Python stub."""
    named = os.environ.get("STRATA_BIN")
    if named:
        if os.access(named, os.X_OK) and not os.path.isdir(named):
            return named
        raise Error(f"no program: {named}: STRATA_BIN must name the executable 'strata'")
    here = os.path.dirname(os.path.abspath(__file__))
    # In the wheel; in a checkout that was built.
    root = os.path.dirname(os.path.dirname(here))
    for path in (os.path.join(here, "_bin", "strata"),
                 os.path.join(root, "build", "release", "bin", "strata"),
                 os.path.join(root, "build", "no-runtime", "bin", "strata")):
        if os.access(path, os.X_OK):
            return path
    found = shutil.which("strata")
    if found and _is_elf(found):
        return found
    raise Error("no program: strata: install the wheel, or set STRATA_BIN")


def _is_elf(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def call(*words, stdin=None, ok=(0,), timeout=None):
    """Runs `strata WORD…`; (exit status, what it printed). Any other exit status than those of `ok` raises Error."""
    import subprocess

    done = subprocess.run([find_program(), *map(os.fspath, words)], input=stdin, capture_output=True, text=True,
                          encoding="utf-8", errors="replace", timeout=timeout, check=False)
    if done.returncode not in ok:
        message = done.stderr.strip().removeprefix("strata: error: ")
        raise Error(message or f"strata {words[0]}: exit status {done.returncode}")
    return done.returncode, done.stdout


def run_with_warnings(*words):
    """Runs `strata WORD…`; what it warned of, line by line. An exit status other than 0 raises Error."""
    import subprocess

    done = subprocess.run([find_program(), *map(os.fspath, words)], capture_output=True, text=True, encoding="utf-8",
                          errors="replace", check=False)
    if done.returncode != 0:
        raise Error(done.stderr.strip().removeprefix("strata: error: "))
    return [line.removeprefix("strata: warning: ") for line in done.stderr.splitlines() if "warning: " in line]


def run(*words, stdin=None, timeout=None):
    """Runs `strata WORD…` and returns what it printed. An exit status other than 0 raises Error."""
    return call(*words, stdin=stdin, timeout=timeout)[1]
