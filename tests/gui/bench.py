"""Measures the window of strata-view with a large graph, on a virtual display with software rendering, against budgets.

    bench.py STRATA_VIEW STRATA FOLDER

"ms" is the time from a command until everything is shown, "cpu ms" the processor time of all threads until then, and
"build" the processor time that the program needs to build a frame. All leave out the drawing of pixels, which a
graphics card does where there is one. Other programs on the machine only make times longer, so that the best of several
runs counts.
"""

import os
import re
import subprocess
import sys
import time

from gui_case import SCREENSHOTS as FOLDER, STRATA, VIEW, Display

NODES = 100_000
LARGE_NODES = 1_000_000
MOST_IDLE_PERCENT = 2
MOST_MEMORY_MB = 600
RUNS = 3

SCRIPT = """
wait
await state kept >= 2
key j
await state kept >= 3
key j
key k
key /
type mm_5
key Escape
key n
run table
run operators
run memory
run close-tab
run fit-all
frames 120 pan
frames 120 zoom
run open-all
await state laid_out >= 2
run next-pass
await state laid_out >= 2
run previous-pass
run fit-all
frames 120 pan
run zoom-in 8
frames 120 pan
run zoom-in 8
frames 120 pan
run fit-all
frames 240 zoom
"""

LARGE_SCRIPT = """
run fit-all
frames 120 pan
frames 120 zoom
run open-all
frames 120 pan
"""

# command: (column, budget in ms); a command occurs several times, and each time counts.
FRAMES = "build most"
BUDGETS = {"(first picture)": ("ms", 1000), "frames 120 pan": (FRAMES, 4), "frames 120 zoom": (FRAMES, 4),
           "frames 240 zoom": (FRAMES, 4), "key j": ("ms", 100), "key k": ("ms", 100),
           "run next-pass": ("ms", 100), "run previous-pass": ("ms", 100), "type mm_5": ("ms", 50)}
LARGE_BUDGETS = {"frames 120 pan": (FRAMES, 16), "frames 120 zoom": (FRAMES, 16)}


LINE = re.compile(r" *\d+  (.{40}) *([\d.]+) +([\d.]+) +(\d+) +([\d.]+) +([\d.]+)$")
COLUMNS = {"ms": 2, "cpu ms": 3, FRAMES: 6}


def environment(display):
    return {**os.environ, "DISPLAY": display.name, "LIBGL_ALWAYS_SOFTWARE": "1", "XDG_CONFIG_HOME": "/nonexistent"}


def check(table, budgets):
    """Prints what is over its budget; returns whether there is any."""
    failed = False
    for line in table.splitlines()[1:]:
        found = LINE.match(line)
        column, most = found and budgets.get(found[1].strip()) or (None, 0)
        value = column and float(found[COLUMNS[column]])
        if column and value > most:
            failed = True
            print(f"over budget: line {line.split()[0]}: {column} {value} ms, at most {most} ms")
    return failed


def best(tables):
    """The table of the least numbers of all."""
    lines = zip(*(table.splitlines() for table in tables))
    header = next(lines)[0]
    rows = []
    for line in lines:
        ms, cpu, frames, mean, most = (min(float(LINE.match(text)[column]) for text in line) for column in range(2, 7))
        rows.append(f"{line[0][:46]}{ms:11.1f}{cpu:11.1f}{frames:8.0f}{mean:13.2f}{most:13.2f}")
    return "\n".join([header, *rows, ""])


def run_script(display, trace, script, runs):
    """The table of its best times, and the peak memory in MB, which counts pixels too."""
    path = os.path.join(FOLDER, "bench_script.txt")
    with open(path, "w", encoding="utf-8") as file:
        file.write(script)
    peaks, tables = [], []
    for measured in [["--bench"]] * runs + [[]]:
        done = subprocess.run(["/usr/bin/env", "time", "-f", "%M", VIEW, *measured, "--script", path, trace],
                              env=environment(display), capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(done.stderr)
        peaks.append(int(done.stderr.split()[-1]) * 1024 / 1e6)
        tables.append(done.stdout)
    return best(tables[:runs]), max(peaks)


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


def write_trace(nodes):
    trace = os.path.join(FOLDER, f"viewer_{nodes}.strata")
    subprocess.run([STRATA, "bench", "viewer", "--nodes", str(nodes), "-o", trace], check=True)
    return trace


def main():
    os.makedirs(FOLDER, exist_ok=True)
    trace, large = write_trace(NODES), write_trace(LARGE_NODES)
    display = Display()
    try:
        table, memory = run_script(display, trace, SCRIPT, RUNS)
        print(table)
        failed = check(table, BUDGETS)
        print(f"peak memory {memory:.0f} MB, at most {MOST_MEMORY_MB} MB, with the driver's software rendering")
        failed |= memory > MOST_MEMORY_MB
        idle = idle_percent(display, trace)
        print(f"idle {idle:.1f} % of a core, at most {MOST_IDLE_PERCENT} %\n")
        failed |= idle > MOST_IDLE_PERCENT
        table, memory = run_script(display, large, LARGE_SCRIPT, 1)
        print(f"{LARGE_NODES:,} nodes:\n{table}\npeak memory {memory:.0f} MB")
        failed |= check(table, LARGE_BUDGETS)
    finally:
        display.stop()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
