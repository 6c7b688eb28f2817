#!/usr/bin/env python3
"""Prints runtime/train/data/nfc_tables.inc: Unicode's canonical decompositions and combining classes.

    tools/make_nfc_tables.py > runtime/train/data/nfc_tables.inc

Needs `pip install tokenizers==0.23.3`: tokens must be those of that library, whose Unicode is older (9), so what it
does not know is left out.
"""

import sys
import unicodedata

from tokenizers import normalizers

HANGUL = range(0xAC00, 0xD7A4)


def rows(items, per_line):
    for i in range(0, len(items), per_line):
        yield "    " + " ".join(items[i:i + per_line])


def is_known_mark(char):
    """Whether the library orders it, as a mark of its class, before or after one of another class."""
    other = "\u0338" if unicodedata.combining(char) > 1 else "\u0345"
    swapped = char + other if other == "\u0338" else other + char
    return normalizers.NFD().normalize_str("a" + swapped) != "a" + swapped


def main():
    decompositions, classes = [], []
    for code in range(sys.maxunicode + 1):
        if 0xD800 <= code < 0xE000:
            continue
        char = chr(code)
        text = unicodedata.decomposition(char)
        is_known = normalizers.NFD().normalize_str(char) != char
        if text and not text.startswith("<") and code not in HANGUL and is_known:
            parts = [int(part, 16) for part in text.split()]
            first, second = (parts + [0])[:2]
            composes = second and unicodedata.normalize("NFC", chr(first) + chr(second)) == char
            decompositions.append(f"{{0x{code:x}, 0x{first:x}, 0x{second:x}, {'true' if composes else 'false'}}},")
        if unicodedata.combining(char) and is_known_mark(char):
            if classes and classes[-1][1] == code - 1 and classes[-1][2] == unicodedata.combining(char):
                classes[-1][1] = code
            else:
                classes.append([code, code, unicodedata.combining(char)])
    print("// Unicode as the library tokenizers knows it, by tools/make_nfc_tables.py.")
    print("constexpr Decomposition kDecompositions[] = {")
    print("\n".join(rows(decompositions, 3)))
    print("};")
    print("constexpr CombiningRange kCombining[] = {")
    print("\n".join(rows([f"{{0x{a:x}, 0x{b:x}, {c}}}," for a, b, c in classes], 4)))
    print("};")


if __name__ == "__main__":
    main()
