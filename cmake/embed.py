"""Writes STEM.h and STEM.cc, which hold the given files as string views, and the SHA-256 of each in base64, as a
Content-Security-Policy names it (`kReportCssSha256`).

usage: embed.py STEM NAMESPACE FILE…
"""

import base64
import hashlib
import os
import re
import sys

BYTES_PER_LINE = 96


def constant_name(path):
    words = re.split(r"[^A-Za-z0-9]+", os.path.basename(path))
    return "k" + "".join(word[:1].upper() + word[1:] for word in words if word)


def literal(data):
    """One C++ literal per line; octal escapes have three digits, so the next character cannot join them."""
    def spell(byte):
        char = chr(byte)
        if char in '"\\?':
            return "\\" + char
        if 32 <= byte < 127:
            return char
        return "\\n" if char == "\n" else f"\\{byte:03o}"

    lines = [data[i:i + BYTES_PER_LINE] for i in range(0, len(data), BYTES_PER_LINE)] or [b""]
    return "\n".join('    "' + "".join(map(spell, line)) + '"' for line in lines)


def main():
    stem, namespace, *paths = sys.argv[1:]
    os.makedirs(os.path.dirname(stem), exist_ok=True)
    header = ["#pragma once", "#include <string_view>", f"namespace {namespace} {{"]
    source = [f'#include "embedded/{os.path.basename(stem)}.h"', f"namespace {namespace} {{"]
    for path in paths:
        with open(path, "rb") as file:
            data = file.read()
        name = constant_name(path)
        header.append(f"extern const std::string_view {name};")
        source.append(f"const std::string_view {name}{{\n{literal(data)},\n    {len(data)}}};")
        digest = base64.b64encode(hashlib.sha256(data).digest()).decode()
        header.append(f"extern const std::string_view {name}Sha256;")
        source.append(f'const std::string_view {name}Sha256 = "{digest}";')
    for path, lines in ((stem + ".h", header), (stem + ".cc", source)):
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(lines + [f"}}  // namespace {namespace}"]) + "\n")


main()
