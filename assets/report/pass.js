// One pass or graph: rail, head, tabs, and the graph with its tools.

import { copyMenu } from "./copy.js";
import { current } from "./current.js";
import { costsTab } from "./costs.js";
import { $, $$, button, h, stepOf } from "./dom.js";
import { around, matcher, MINUS, number, past, plural, time } from "./format.js";
import { GraphView } from "./graph.js";
import { inspectorPanel } from "./inspector.js";
import { openFirst } from "./open_slabs.js";
import { makeOverlay, OVERLAYS, overlaysOf } from "./overlay.js";
import { failure } from "./overview.js";
import { patternsTab } from "./patterns.js";
import { go, linkTo, note, state, TABS } from "./route.js";
import { noteSelection } from "./selection.js";
import {
  ADDED,
  badges,
  CHANGED,
  DERIVED,
  MOVED,
  REMOVED,
  SAME,
  STATUS,
  statusWord,
} from "./status.js";
import { isQuiet, isTwin, subjects } from "./store.js";
import { tableTab } from "./tables.js";
import { textTab } from "./text_diff.js";

/** What stays from pass to pass while one steps: open slabs by path, and where the camera was. */
const kept = { graph: "", open: null, camera: null };

function rail(subject) {
  const list = h("div.passes"),
    several = new Set(subject.run.passes.map((pass) => pass.graph)).size > 1;
  let heading = null;
  for (const other of subjects.filter((s) => s.run === subject.run)) {
    const words = other.group || (several ? `graph ${other.graph}` : "");
    if (words && words !== heading) list.append(h("div.group", words));
    heading = words || heading;
    const failed = other.pass && other.pass.status === "failed",
      quiet = other.detail < 0 && !failed;
    list.append(h(
      "a",
      {
        class: quiet ? "entry unchanged" : "entry",
        "aria-current": other === subject && "true",
        title: other.name,
        href: linkTo(other, {
          tab: state.tab,
          mode: state.mode,
          spelling: state.spelling,
          hops: state.hops,
          overlay: state.overlay,
        }),
      },
      h("span.number.quiet", other.pass && other.index),
      h("span.cut", other.name),
      !quiet &&
        h(
          "span.more",
          failed ? h("b.removed", "failed") : whatOf(other),
          h("span.quiet", other.ms > 0 && time(other.ms)),
        ),
    ));
  }
  const filter = h("input.search", {
    type: "search",
    placeholder: "Filter passes",
    label: "Filter passes",
    input: () => {
      const fits = matcher(filter.value);
      for (const entry of $$(".entry", list)) entry.hidden = !fits(entry.title);
    },
  });
  const passes = subject.run.passes, total = passes.reduce((sum, pass) => sum + pass.ms, 0);
  return h(
    "nav.rail",
    { label: "Passes" },
    h("div.top", filter),
    list,
    h(
      "div.foot.quiet.small",
      h("span", `${passes.filter(isQuiet).length} without change`),
      h("span", total > 0 && `${time(total)} in all`),
    ),
  );
}
/** Counts of a difference; of a graph alone its size. */
const whatOf = (subject, detail) =>
  subject.group === "other graphs"
    ? h("span.quiet", plural(subject.last.nodes, "node"))
    : badges((detail || subject).counts);

const PANELS = {
  graph: graphTab,
  table: tableTab,
  text: textTab,
  patterns: patternsTab,
  costs: costsTab,
};
/** A graph by itself has no costs that changed. */
const tabsOf = (detail) => detail.costs ? TABS : TABS.slice(0, -1);

export function passView(subject) {
  const { detail } = current,
    wide = state.tab === "graph" && detail && modeOf(detail) === "side",
    page = h("div", { class: wide ? "pass wide" : "pass" }, !wide && rail(subject));
  if (!detail) {
    page.append(h("div.work", passHead(subject), h("div.empty", whyEmpty(subject))));
    return page;
  }
  if (!tabsOf(detail).includes(state.tab)) state.tab = TABS[0];
  const panel = h("div.panel", {
    id: "panel",
    role: "tabpanel",
    "aria-labelledby": `tab-${state.tab}`,
  });
  page.append(h("div.work", passHead(subject, detail), tabList(detail), panel));
  PANELS[state.tab](panel, detail);
  if (!wide && TABS.indexOf(state.tab) < 3) page.append(inspectorPanel(detail));
  return page;
}
function passHead(subject, detail) {
  const [cause] = subject.pass ? subject.pass.causes : [], words = cause ? past(cause.title) : "";
  return h(
    "div.pass-head",
    subject.pass && h("span.quiet", `#${subject.index}`),
    h("h1.cut", { title: subject.name }, subject.name),
    whatOf(subject, detail),
    h("span.quiet.small.cut.optional", { title: words }, words),
    h("span.spacer"),
    rankWords(subject),
    detail && copyMenu(subject, detail),
  );
}
function whyEmpty(subject) {
  if (subject.pass && subject.pass.status === "failed") return failure(subject.pass);
  if (subject.detail >= 0) {
    return [
      h("h2", "Left out"),
      h("p", "The graphs of this pass did not fit into the report; the trace has them."),
    ];
  }
  return [
    h("h2", "No changes in this pass"),
    h(
      "p",
      "The fingerprint before and after is the same: ",
      h("code", subject.last.fingerprint),
      ". Press ",
      h("kbd", "J"),
      " for the next pass with changes.",
    ),
  ];
}
function tabList(detail) {
  const counts = { table: detail.changes.length || detail.count, patterns: detail.patterns.length };
  const tab = (key) =>
    h(
      "button",
      {
        role: "tab",
        id: `tab-${key}`,
        "aria-controls": "panel",
        "aria-selected": String(state.tab === key),
        tabindex: state.tab === key ? "0" : "-1",
        click: () => go({ tab: key, cam: "" }),
      },
      key[0].toUpperCase() + key.slice(1),
      counts[key] ? h("span.quiet", ` ${number(counts[key])}`) : null,
    );
  return h(
    "div.tabs",
    { role: "tablist", label: "Views of the pass", keydown: stepTab },
    tabsOf(detail).map(tab),
  );
}
/** Which other ranks have this very graph. */
function rankWords(subject) {
  const others = subjects.filter((s) => s.run !== subject.run && isTwin(s, subject)),
    differ = others.filter((s) => s.last.fingerprint !== subject.last.fingerprint);
  if (!others.length) return null;
  const ranks = differ.slice(0, 4).map((s) => s.run.rank).join(", ") +
    (differ.length > 4 ? ", …" : "");
  return h(
    "a.small.optional",
    { href: "#ranks" },
    differ.length
      ? `other on ${differ.length === 1 ? "rank" : "ranks"} ${ranks}`
      : "equal on all ranks",
  );
}
function stepTab(event) {
  const step = stepOf(event, "ArrowLeft", "ArrowRight");
  if (!step) return;
  const tabs = tabsOf(current.detail), tab = tabs[around(tabs, tabs.indexOf(state.tab), step)];
  go({ tab }).then(() => $(`#tab-${tab}`).focus());
}

function graphTab(panel, detail) {
  const view = current.graphView = new GraphView(detail, modeOf(detail), {
    select: noteSelection,
    changed() {
      keepView();
      note({ open: view.openPaths().join(";") });
    },
  });
  view.hops = state.hops;
  openSlabs(view);
  view.overlay = makeOverlay(detail, state.overlay);
  view.valueLabels = makeOverlay(detail, state.labels);
  view.hits = state.filter ? new Set(detail.search(state.filter)) : null;
  view.layout();
  panel.append(toolbar(detail, view), view.element, legend(detail, view));
  requestAnimationFrame(() => {
    if (current.graphView === view) placeCamera(view, detail.find(state.node));
  });
}
/** The slabs of the link, else those of the pass before, else the way to the first change. */
function openSlabs(view) {
  if (state.open) {
    view.setOpen(state.open.split(";"));
    return;
  }
  if (kept.graph === graphKey() && kept.open) view.setOpen(kept.open);
  if (view.open.size === 1) openFirst(view.open, view.detail);
}
function placeCamera(view, node) {
  const hasNode = node !== undefined;
  if (hasNode) view.selected = node;
  if (kept.graph === graphKey() && kept.camera && !state.cam) view.keepCamera(kept.camera);
  else view.home();
  if (hasNode && !state.cam) view.reveal(node);
}
function toolbar(detail, view) {
  const differs = detail.changes.length > 0;
  return h(
    "div.toolbar",
    differs && [modeButtons(), hopChoice()],
    colourChoice(detail),
    h(
      "span.tools",
      view.countLabel,
      h(
        "div.segments",
        h("button", { label: "Zoom out", click: () => view.zoom(0.8) }, MINUS),
        view.zoomLabel,
        h("button", { label: "Zoom in", click: () => view.zoom(1.25) }, "+"),
        button(() => view.fitAll(), "Fit"),
      ),
    ),
  );
}
const MODE_LABELS = { unified: "Unified", side: "Side by side", blink: "Blink" };
const modeButtons = () =>
  h(
    "div.segments",
    { role: "group", label: "How both graphs are shown" },
    Object.entries(MODE_LABELS).map(([mode, label]) =>
      h("button", {
        "aria-pressed": String(state.mode === mode),
        click: () => go({ mode, cam: "" }),
      }, label)
    ),
  );
/** Whether only changes are shown, and how many unchanged nodes around them. */
function hopChoice() {
  const check = h("input", {
    type: "checkbox",
    id: "changed-only",
    change: () => setHops(check.checked ? "1" : "all"),
  });
  check.checked = state.hops !== "all";
  const hops = h(
    "select",
    {
      label: "Unchanged nodes shown around a change",
      change: () => setHops(hops.value),
    },
    [0, 1, 2, 3].map((k) =>
      h("option", { value: k, selected: state.hops === `${k}` }, plural(k, "hop"))
    ),
  );
  return [h("label.optional", check, "Changed only +"), h("span.optional", hops)];
}
function colourChoice(detail) {
  const overlays = overlaysOf(detail);
  if (!overlays.length && !detail.ranksLeftOut) return null;
  const choice = h(
    "select",
    { label: "Colour by", change: () => setOverlay(choice.value) },
    h("option", { value: "" }, "Colour: status"),
    overlays.map((key) =>
      h("option", { value: key, selected: key === state.overlay }, OVERLAYS[key].label)
    ),
    detail.ranksLeftOut && h("option", { disabled: true }, "Ranks: not compared, too many nodes"),
  );
  return h("span.optional", choice);
}
/** One graph has no two sides. */
const modeOf = (detail) => detail.changes.length ? state.mode : "unified";
const graphKey = () => `${current.subject.run.id} ${current.subject.graph}`;
/**
 * Remembers what is open and where the middle of the screen is, for the next pass of the same
 * graph.
 */
export function keepView() {
  const { graphView: view } = current;
  if (!view || !view.fitted) return;
  Object.assign(kept, { graph: graphKey(), open: view.openPaths(), camera: view.anchor() });
}
export function setHops(hops) {
  note({ hops, cam: "" });
  const { graphView: view } = current;
  if (!view) return;
  view.hops = hops;
  view.unfolded.clear();
  const check = $("#changed-only");
  if (check) check.checked = hops !== "all";
  view.relayout((scene) => scene.boxOf.get(view.selected) || scene.slabs[1]);
}
export function setOverlay(overlay) {
  note({ overlay });
  const { detail, graphView: view } = current;
  if (!view) return;
  view.overlay = makeOverlay(detail, overlay);
  $(".legend").replaceWith(legend(detail, view));
  view.draw();
}
const LEGEND = [ADDED, REMOVED, CHANGED, DERIVED, MOVED, SAME];
function legend(detail, { overlay }) {
  const marks = LEGEND.filter((status) => detail.status.includes(status));
  const colorMark = ([word, fill]) => {
    const key = h("i.key");
    key.style.background = fill;
    return h("span", key, word);
  };
  return h(
    "div.legend",
    marks.map((status) => h("span", h(`i.key.${STATUS[status]}`), statusWord(STATUS[status]))),
    overlay && [h("b", overlay.label), overlay.legend.map(colorMark)],
    h("span.spacer"),
    h(
      "span.optional",
      detail.twoLanes ? "forward runs down on the left, backward up on the right" : "runs down",
    ),
  );
}
