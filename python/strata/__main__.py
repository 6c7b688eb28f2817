"""`python -m strata …` and the command `strata`: the program itself, or a server written in Python."""

import os
import sys


def main():
    words = sys.argv[1:]
    if words[:1] == ["mcp"]:
        from strata._mcp import serve

        sys.exit(serve(words[1:]))
    from strata._program import Error, find_program

    try:
        program = find_program()
    except Error as error:
        print(f"strata: error: {error}", file=sys.stderr)
        sys.exit(2)
    os.execv(program, [program, *words])


if __name__ == "__main__":
    main()
