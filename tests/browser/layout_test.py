"""What a reader sees at once: five pages, and all others, in light and dark, wide and on a phone. Every label is whole, and
pictures for the eye lie in SCREENSHOTS: golden_PAGE_THEME_WIDTH.png, page_PAGE_light_WIDTH.png of the others.

usage: layout_test.py STRATA SCREENSHOTS
"""

import os

from browser import PASS, PHONE, ROOT, WIDE, run
from checks import CUT, FITS
from log_test import log, rank_logs


def golden(site):
    return {
        "overview": (site.training(), ""),
        "pass": (site.training(), PASS),
        "node": (site.training(), PASS + "&node=view_0"),
        "log": (log(site), "#log"),
        "ranks": (site.ranks(), "#ranks"),
    }


def others(site):
    return {
        "side": (site.training(), PASS + "&mode=side"),
        "overlay": (site.training(), PASS + "&overlay=bytes&hops=all"),
        "table": (site.training(), PASS + "&tab=table"),
        "text": (site.training(), PASS + "&tab=text"),
        "patterns": (site.training(), PASS + "&tab=patterns"),
        "memory": (site.training(), "#memory"),
        "operators": (site.training(), "#operators"),
        "compilation": (log(site), "#log&graph=0/0"),
        "record": (log(site), "#log&graph=0/0&node=5"),
        "guards": (log(site), "#log&graph=0/0&node=7"),
        "provenance": (log(site), "#log&graph=0/0&node=12"),
        "failed": (log(site), "#log&graph=2/0"),
        "log_ranks": (rank_logs(site), "#log"),
        "ranks_pair": (site.ranks(), "#run=3,graph=before_fuse_pass,pass=0"),
        "stages": (site.report(os.path.join(ROOT, "tests", "data", "logs", "compile_torch2.11.log.zst")), ""),
        "two_runs": (site.two_runs(), ""),
        "profile": (site.profiled() or site.training(), PASS + "&overlay=mean&hops=all"),
        "profile_memory": (site.profiled() or site.training(), "#memory"),
        "profile_overview": (site.profiled() or site.training(), ""),
    }


def look(site, pages, prefix, shown=("light", "dark")):
    """`shown`: themes that pictures are made of."""
    wrong = []
    for size in (WIDE, (1000, 800), PHONE):
        site.resize(size)
        for name, (url, fragment) in pages.items():
            site.open(url, fragment)
            if site.count("canvas.graph"):
                site.drawn()
            for theme in ("light", "dark"):
                site.theme(theme)
                # Colours change within 120 ms; a picture should not show them on their way.
                site.js("document.getAnimations().forEach((a) => a.finish())")
                if site.count("canvas.graph"):
                    site.drawn()
                problems = site.js(FITS) + (site.js(CUT) if theme == "light" else [])
                wide = site.js("return document.documentElement.scrollWidth - innerWidth")
                if wide > 0:
                    problems.append(f"{wide} px wider than the screen")
                wrong += [f"{name} {size[0]} {theme}: {problem}" for problem in problems]
                if theme in shown:
                    site.shot(f"{prefix}{name}_{theme}_{size[0]}")
    site.theme("light")
    site.resize(WIDE)
    assert not wrong, "\n" + "\n".join(wrong)


def golden_pages(site):
    look(site, golden(site), "golden_")


def other_pages(site):
    look(site, others(site), "page_", shown=("light",))


run((golden_pages, other_pages))
