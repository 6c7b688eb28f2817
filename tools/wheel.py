"""Builds a wheel of the Python package with the programs and the libraries that a system may lack.

    wheel.py --program build/release/bin/strata [--program build/release/bin/strata-view] -o out

Every library that `strata` loads, but for glibc, lies beside it, where its run path looks first. The viewer takes from
the system what belongs to the display, and the libraries that drivers load too: they may need a newer one.
Prints the path of the wheel. Equal inputs give equal bytes.
"""

import argparse
import base64
import hashlib
import os
import platform
import re
import subprocess
import sys
import tempfile
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PACKAGE = os.path.join(ROOT, "python", "strata")
# What every Linux with glibc has.
SYSTEM = re.compile(r"(linux-vdso|ld-linux.*|libc|libm|libdl|libpthread|librt|libresolv)\.so")
# What belongs to the display and its driver; only the viewer loads it.
DISPLAY = re.compile(r"lib(GL|GLX|GLdispatch|OpenGL|X11|xcb|Xau|Xdmcp|bsd|md)\.so")
# What graphics drivers load too; in a folder of its own, which is not on the run path of the viewer.
OF_DRIVERS = re.compile(r"lib(stdc\+\+|gcc_s|z|expat|zstd)\.so")
# Compiled into the program: Debian packages, for their licences.
COMPILED_IN = ["libcli11-dev", "libxxhash-dev"]
COMPILED_INTO_VIEWER = ["libimgui-dev"]
TIME = (1980, 1, 1, 0, 0, 0)
DESCRIPTION = """See, compare and trust the graphs that train models: record the passes of PyTorch programs, compare
graphs node by node, and read the logs that PyTorch writes."""


def fail(what):
    sys.exit(f"wheel: error: {what}")


def output_of(*words):
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        fail(f"{' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


def libraries(program):
    """The files that the program loads, without those of the system, by name."""
    found = {}
    for line in output_of("ldd", program).splitlines():
        match = re.match(r"\s*(\S+) => (\S+)", line)
        if match is None or SYSTEM.match(match[1]) or DISPLAY.match(match[1]):
            continue
        if match[2] == "not":
            fail(f"{program}: {match[1]} is missing")
        found[match[1]] = os.path.realpath(match[2])
    if any("libtorch" in name for name in found):
        fail(f"{program}: loads LibTorch, which a wheel cannot carry")
    return dict(sorted(found.items()))


def stripped(path):
    with tempfile.TemporaryDirectory() as folder:
        copy = os.path.join(folder, "program")
        output_of("strip", "--strip-all", "-o", copy, path)
        with open(copy, "rb") as file:
            return file.read()


def glibc_of(contents):
    """The newest version of glibc that any of the programs and libraries asks for."""
    versions = {(int(major), int(minor)) for content in contents
                for major, minor in re.findall(rb"GLIBC_(\d+)\.(\d+)", content)}
    return max(versions, default=(2, 17))


def licences(paths, compiled_in):
    """{Debian package: its copyright file} of libraries, and of the packages `compiled_in`."""
    packages = set(compiled_in)
    for path in paths:
        done = subprocess.run(["dpkg-query", "--search", path], capture_output=True, text=True, check=False)
        if done.returncode != 0:  # installed below /usr, which is another name of /
            done = subprocess.run(["dpkg-query", "--search", path.removeprefix("/usr")], capture_output=True, text=True,
                                  check=False)
        packages.update(line.partition(":")[0] for line in done.stdout.splitlines())
    texts = {}
    for package in sorted(packages):
        path = f"/usr/share/doc/{package}/copyright"
        if os.path.exists(path):
            with open(path, "rb") as file:
                texts[package] = file.read()
    return texts


def version():
    with open(os.path.join(PACKAGE, "__init__.py"), encoding="utf-8") as file:
        return re.search(r'^__version__ = "([^"]+)"', file.read(), re.MULTILINE)[1]


class Wheel:
    def __init__(self, path):
        self._zip = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED)
        self._record = []

    def add(self, name, content, mode=0o644):
        content = content.encode() if isinstance(content, str) else content
        info = zipfile.ZipInfo(name, TIME)
        info.compress_type = zipfile.ZIP_DEFLATED
        info.external_attr = (0o100000 | mode) << 16  # pip keeps the bits for execution
        self._zip.writestr(info, content)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        self._record.append(f"{name},sha256={digest},{len(content)}")

    def close(self, record):
        lines = "".join(line + "\n" for line in [*self._record, f"{record},,"])
        info = zipfile.ZipInfo(record, TIME)
        info.external_attr = 0o100644 << 16
        self._zip.writestr(info, lines)
        self._zip.close()


def build(programs, folder):
    binaries = {os.path.basename(program): stripped(program) for program in programs}
    found = {name: path for program in programs for name, path in libraries(program).items()}
    contents = {}
    for name, path in found.items():
        with open(path, "rb") as file:
            contents[name] = file.read()
    major, minor = glibc_of([*binaries.values(), *contents.values()])
    tag = f"py3-none-manylinux_{major}_{minor}_{platform.machine()}"
    number = version()
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, f"strata-{number}-{tag}.whl")
    wheel = Wheel(path)
    for name in sorted(os.listdir(PACKAGE)):
        if name.endswith(".py"):
            with open(os.path.join(PACKAGE, name), "rb") as file:
                wheel.add(f"strata/{name}", file.read())
    for name, binary in binaries.items():
        wheel.add(f"strata/_bin/{name}", binary, 0o755)
    for name, content in sorted(contents.items()):
        folder_of_library = "lib/base" if OF_DRIVERS.match(name) else "lib"
        wheel.add(f"strata/_bin/{folder_of_library}/{name}", content, 0o755)
    info = f"strata-{number}.dist-info"
    texts = licences(found.values(), COMPILED_IN + (COMPILED_INTO_VIEWER if "strata-view" in binaries else []))
    for package, text in texts.items():
        wheel.add(f"{info}/licenses/{package}", text)
    wheel.add(f"{info}/METADATA", "Metadata-Version: 2.1\nName: strata\n" f"Version: {number}\n"
              "Summary: See, compare and trust the graphs that train models\nRequires-Python: >=3.9\n"
              + "".join(f"License-File: licenses/{package}\n" for package in texts) + f"\n{DESCRIPTION}\n")
    wheel.add(f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: strata\nRoot-Is-Purelib: false\nTag: {tag}\n")
    points = "[console_scripts]\nstrata = strata.__main__:main\n"
    if os.path.exists(os.path.join(PACKAGE, "pytest_plugin.py")):
        points += "\n[pytest11]\nstrata = strata.pytest_plugin\n"
    wheel.add(f"{info}/entry_points.txt", points)
    wheel.close(f"{info}/RECORD")
    return path


def main():
    parser = argparse.ArgumentParser(description="Builds a wheel of the Python package.")
    parser.add_argument("--program", required=True, action="append", help="strata, and strata-view if it is there")
    parser.add_argument("-o", "--output", required=True, help="the folder to write into")
    arguments = parser.parse_args()
    print(build([os.path.abspath(program) for program in arguments.program], arguments.output))


if __name__ == "__main__":
    main()
