"""Measures the window of strata-view with a large graph, on a virtual display with software rendering, against budgets.

    bench.py STRATA_VIEW STRATA FOLDER

Times of commands are wall-clock times until everything is shown; "build" is the processor time that the program needs
to build a frame, without the drawing of its pixels, which a graphics card does where there is one.
"""

import os
import re
import subprocess
import sys
import time

from gui_case import SCREENSHOTS as FOLDER, STRATA, VIEW, Display

NODES = 100_000
MOST_IDLE_PERCENT = 2

SCRIPT = """
wait
run fit-all
frames 120 pan
frames 120 zoom
run open-all
run fit-all
frames 120 pan
run zoom-in 8
frames 120 pan
run zoom-in 8
frames 120 pan
run fit-all
frames 240 zoom
key j
key /
type mm_5
key Escape
key n
run table
run operators
run memory
"""

# command: (column, budget in ms); a command occurs several times, and each time counts.
BUDGETS = {"frames 120 pan": ("most", 4), "frames 120 zoom": ("most", 4), "frames 240 zoom": ("most", 4)}


def environment(display):
    return {**os.environ, "DISPLAY": display.name, "LIBGL_ALWAYS_SOFTWARE": "1", "XDG_CONFIG_HOME": "/nonexistent"}


def run_script(display, trace, script):
    path = os.path.join(FOLDER, "bench_script.txt")
    with open(path, "w", encoding="utf-8") as file:
        file.write(script)
    done = subprocess.run(["/usr/bin/env", "time", "-f", "%M", VIEW, "--bench", "--script", path, trace],
                          env=environment(display), capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    return done.stdout, int(done.stderr.split()[-1]) / 1024


def idle_percent(display, trace):
    """Processor time of a window without input."""
    process = subprocess.Popen([VIEW, trace], env=environment(display), stderr=subprocess.DEVNULL)

    def ticks():
        with open(f"/proc/{process.pid}/stat", encoding="utf-8") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return int(fields[11]) + int(fields[12])

    last = -1
    for _ in range(60):
        time.sleep(1)
        now = ticks()
        if now - last < 10:
            break
        last = now
    begin, began = ticks(), time.monotonic()
    time.sleep(5)
    used = (ticks() - begin) / os.sysconf("SC_CLK_TCK") / (time.monotonic() - began)
    process.terminate()
    process.wait()
    return used * 100


def main():
    os.makedirs(FOLDER, exist_ok=True)
    trace = os.path.join(FOLDER, "viewer.strata")
    subprocess.run([STRATA, "bench", "viewer", "--nodes", str(NODES), "-o", trace], check=True)
    display = Display()
    failed = False
    try:
        table, memory = run_script(display, trace, SCRIPT)
        print(table)
        for line in table.splitlines()[1:]:
            found = re.match(r" *\d+  (.{40}) *([\d.]+) +(\d+) +([\d.]+) +([\d.]+)$", line)
            budget = found and BUDGETS.get(found[1].strip())
            if budget and float(found[5]) > budget[1]:
                failed = True
                print(f"over budget: line {line.split()[0]}: build of a frame {found[5]} ms, at most {budget[1]} ms")
        print(f"peak memory {memory:.0f} MiB, with the driver's software rendering")
        idle = idle_percent(display, trace)
        print(f"idle {idle:.1f} % of a core, at most {MOST_IDLE_PERCENT} %")
        failed |= idle > MOST_IDLE_PERCENT
    finally:
        display.stop()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
