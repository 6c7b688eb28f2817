"""docs/cli.md shows each command's help as the program prints it.

    docs_test.py STRATA [--update]

A block of the document that begins with `$ strata … --help` must continue with that output; each command of
`strata --help` must have one. `--update` writes them.
"""

import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
DOCUMENT = os.path.join(ROOT, "docs", "cli.md")
BLOCK = re.compile(r"^```text\n\$ strata( [^\n]*)?--help\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def help_of(strata, command):
    done = subprocess.run([strata, *command.split(), "--help"], capture_output=True, text=True, check=False)
    # A build without LibTorch cannot train, and says so.
    return done.stdout if done.returncode == 0 else None


def block(command, text):
    words = " ".join(["strata", *command.split(), "--help"])
    return f"```text\n$ {words}\n{text}```"


def main():
    strata, update = os.path.abspath(sys.argv[1]), "--update" in sys.argv
    with open(DOCUMENT, encoding="utf-8") as file:
        document = file.read()
    commands = re.findall(r"^  (\S+) ", help_of(strata, "").split("COMMAND [")[1], re.MULTILINE)
    problems, seen = [], set()

    def check(match):
        command = (match[1] or "").strip()
        seen.add(command)
        text = help_of(strata, command)
        if text is None or text == match[2]:
            return match[0]
        problems.append(f"the help of 'strata {command}' changed")
        return block(command, text)

    updated = BLOCK.sub(check, document)
    for command in commands:
        if command in seen:
            continue
        problems.append(f"'strata {command}' is missing")
        updated += f"\n## strata {command}\n\n{block(command, help_of(strata, command) or '')}\n"
    if update:
        with open(DOCUMENT, "w", encoding="utf-8") as file:
            file.write(updated)
        return 0
    for problem in problems:
        print(f"docs/cli.md: {problem}: run tests/integration/cli/docs_test.py {sys.argv[1]} --update")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
