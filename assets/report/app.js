// The start of the page, its frame, and the view that the fragment names.

import { current, redrawAll, showCurrent } from "./current.js";
import { $, $$, h, hear, link, plain, say } from "./dom.js";
import { nothing } from "./elements.js";
import { plural } from "./format.js";
import { mainBox, searchBox } from "./frame.js";
import { onKey, openPalette } from "./keys.js";
import { overview } from "./overview.js";
import { keepView, passView } from "./pass.js";
import {
  currentRun,
  findSubject,
  go,
  goTo,
  hashOf,
  linkTo,
  note,
  readHash,
  refOf,
  render,
  renderWith,
  state,
  views,
} from "./route.js";
import { doSearch, searchNext } from "./search.js";
import { isTwin, loadDetail, loadReport, report, subjects } from "./store.js";
import { initialTheme, setTheme } from "./theme.js";

import "./log.js";
import "./memory_view.js";
import "./operators_view.js";
import "./ranks_view.js";

/** Connects the elements of frame.html. */
function frame() {
  const finder = $(".finder"), results = $("#results");
  hear($(".skip"), "click", (event) => {
    event.preventDefault();
    mainBox.focus();
  });
  hear(searchBox, "input", () => doSearch(searchBox.value));
  hear(searchBox, "focus", () => {
    if (searchBox.value) doSearch(searchBox.value);
  });
  hear(searchBox, "keydown", (event) => {
    if (event.key === "Enter") searchNext(event.shiftKey ? -1 : 1);
  });
  hear(finder, "focusout", (event) => {
    if (!finder.contains(event.relatedTarget)) results.hidden = true;
  });
  hear($("#commands"), "click", openPalette);
  for (const choice of $$("[data-theme-button]")) {
    hear(choice, "click", () => {
      setTheme(choice.dataset.themeButton, true);
      redrawAll();
    });
  }
  if (innerWidth < 1100) searchBox.placeholder = "Search";
  $("#app").hidden = false;
}
function refreshFrame(subject) {
  const run = currentRun() || {},
    own = subjects.filter((s) => s.run === run),
    first = subject || own.find((s) => s.detail >= 0) || own[0] || subjects[0];
  const entry = (
    key,
    label,
    href = hashOf({ view: key, run: report.runs.length > 1 ? String(run.id) : "" }),
  ) =>
    h("a", {
      href,
      id: `nav-${key}`,
      "aria-current": (subject ? "subject" : state.view) === key && "page",
    }, label);
  $(".pages").replaceChildren(
    entry("overview", "Overview"),
    first
      ? entry("subject", subjects.some((s) => s.pass) ? "Passes" : "Graphs", linkTo(first))
      : "",
    ...[...views].filter(([, view]) => view.shows()).map(([key, view]) => entry(key, view.label)),
  );
  const choose = (event) => {
    const next = report.runs[event.target.value];
    if (subject) {
      const own = subjects.filter((s) => s.run === next);
      goTo(
        own.find((s) => isTwin(s, subject)) || own.find((s) => s.detail >= 0) || own[0] || subject,
      );
    } else go({ run: String(next.id), graph: "" });
  };
  $(".run").replaceChildren(
    report.runs.length > 1
      ? h(
        "select",
        { label: "Run", change: choose },
        report.runs.map((r, i) =>
          h(
            "option",
            { value: i, selected: r === run },
            `Run ${r.id} · ${r.ranks}${r.kind === report.runs[0].kind ? "" : ` · ${r.kind}`}`,
          )
        ),
      )
      : h("span.quiet.cut", report.title),
  );
}

let renderNumber = 0;
/** Shows the state; an error replaces the view. */
async function show() {
  try {
    await draw();
  } catch (error) {
    mainBox.replaceChildren(
      h(
        "div.empty",
        { role: "alert" },
        h("h2", "This view cannot be shown"),
        h("p", error.message),
        link("#overview", "To the overview"),
      ),
    );
    document.documentElement.dataset.ready = String(renderNumber);
    throw error;
  }
}
async function draw() {
  keepView();
  const mine = ++renderNumber,
    subject = state.view === "subject" && subjects.length
      ? findSubject(state.ref, state.from)
      : null;
  const slow = setTimeout(() => say("Reading the graphs of this pass"), 300),
    detail = subject ? await loadDetail(subject.detail) : null;
  clearTimeout(slow);
  if (mine !== renderNumber) return; // a newer state is being shown
  showCurrent(subject, detail);
  const active = document.activeElement && document.activeElement.id, scroll = mainBox.scrollTop;
  if (subject) note(refOf(subject));
  refreshFrame(subject);
  if (searchBox.value !== state.filter) searchBox.value = state.filter;
  const page = !report.runs.length
    ? nothing("This file holds no run.")
    : subject
    ? passView(subject)
    : await (views.has(state.view) ? views.get(state.view).render() : overview());
  if (mine !== renderNumber) return;
  const railScroll = $(".passes") ? $(".passes").scrollTop : 0;
  mainBox.replaceChildren(page);
  mainBox.scrollTop = subject ? 0 : scroll;
  const rows = $(".passes"),
    current = $(".passes [aria-current=true]"),
    again = active && document.getElementById(active);
  if (rows) rows.scrollTop = railScroll;
  if (current) current.scrollIntoView({ block: "nearest" });
  if (again) again.focus();
  const words = subject && detail
    ? `${plain(subject.name)} · ${plural(detail.count, "node")}${
      detail.changes.length
        ? ` in both graphs · ${plural(detail.changes.length, "difference")}`
        : ""
    }`
    : `${plain(report.title)} · ${plural(report.runs.length, "run")}`;
  const pageName = subject ? `${plain(subject.name)} – ` : "";
  document.title = `${pageName}${plain(report.title)} – Strata`;
  $("#words").textContent = words;
  redrawAll();
  performance.mark("ready");
  document.documentElement.dataset.ready = String(renderNumber);
}
async function start() {
  setTheme(initialTheme(), false);
  renderWith(show);
  await loadReport();
  frame();
  // A frame of a notebook has no fragment: its page says where to start.
  readHash(location.hash || document.documentElement.dataset.start || "");
  hear(window, "popstate", () => {
    readHash(location.hash);
    render();
  });
  if (location.protocol === "about:") {
    // In a frame, a fragment is one of the page around it.
    hear(window, "click", (event) => {
      const link = event.target.closest('a[href^="#"]');
      if (!link) return;
      event.preventDefault();
      location.hash = link.getAttribute("href");
    });
  }
  hear(window, "resize", redrawAll);
  hear(window, "keydown", onKey);
  hear(window, "keyup", (event) => {
    if (event.key === "b" && current.graphView) current.graphView.showBefore(false);
  });
  await render();
}
start().catch((error) => {
  $("#app").hidden = false;
  $("#app").replaceChildren(
    h(
      "p.empty",
      `This report cannot be shown: ${error.message}. It needs a browser of 2023 or later.`,
    ),
  );
  throw error;
});
