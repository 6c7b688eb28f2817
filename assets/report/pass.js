// One pass or graph: rail, head, tabs, and the graph with its tools.

import { $, $$, button, h, stepOf } from "./dom.js";
import { ADDED, badges, CHANGED, DERIVED, MOVED, REMOVED, SAME, STATUS } from "./status.js";
import { GraphView } from "./graph.js";
import { matcher, MINUS, number, past, plural, time } from "./format.js";
import { makeOverlay, OVERLAYS, overlaysOf } from "./overlay.js";
import { go, linkTo, note, state, TABS } from "./route.js";
import { copyMenu } from "./copy.js";
import { current } from "./current.js";
import { failure } from "./overview.js";
import { inspector, refreshInspector } from "./inspector.js";
import { isQuiet, isTwin, str, subjects } from "./store.js";
import { patternsTab } from "./patterns.js";
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

export function passView(subject) {
  const detail = current.detail, work = h("div.work"), graph = state.tab === "graph";
  const wide = graph && detail && modeOf(detail) === "side";
  const page = h("div", { class: `pass${wide ? " wide" : ""}` }, wide ? null : rail(subject), work);
  const words = subject.pass && subject.pass.causes.length
    ? past(subject.pass.causes[0].title)
    : "";
  work.append(
    h(
      "div.pass-head",
      subject.pass && h("span.quiet", `#${subject.index}`),
      h("h1.cut", { title: subject.name }, subject.name),
      whatOf(subject, detail),
      h("span.quiet.small.cut.optional", { title: words }, words),
      h("span.spacer"),
      rankWords(subject),
      detail && copyMenu(subject, detail),
    ),
  );
  if (!detail) {
    work.append(
      h(
        "div.empty",
        subject.pass && subject.pass.status === "failed"
          ? failure(subject.pass)
          : subject.detail >= 0
          ? h(
            "div",
            h("h2", "Left out"),
            h("p", "The graphs of this pass did not fit into the report; the trace has them."),
          )
          : h(
            "div",
            h("h2", "No changes in this pass"),
            h(
              "p",
              "The fingerprint before and after is the same: ",
              h("code", subject.last.fingerprint),
              ". Press ",
              h("kbd", "J"),
              " for the next pass with changes.",
            ),
          ),
      ),
    );
    return page;
  }
  const tabs = [["graph", "Graph", 0], ["table", "Table", detail.changes.length || detail.count], [
    "text",
    "Text",
    0,
  ], ["patterns", "Patterns", detail.patterns.length]];
  work.append(
    h(
      "div.tabs",
      { role: "tablist", label: "Views of the pass", keydown: stepTab },
      tabs.map(([key, label, count]) =>
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
          label,
          count ? h("span.quiet", ` ${number(count)}`) : null,
        )
      ),
    ),
  );
  const panel = h("div.panel", {
    id: "panel",
    role: "tabpanel",
    "aria-labelledby": `tab-${state.tab}`,
  });
  work.append(panel);
  ({ graph: graphTab, table: tableTab, text: textTab, patterns: patternsTab })[state.tab](
    panel,
    detail,
  );
  if (!wide && state.tab !== "patterns") page.append(inspector(detail));
  return page;
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
  const tab = TABS[(TABS.indexOf(state.tab) + step + TABS.length) % TABS.length];
  go({ tab }).then(() => $(`#tab-${tab}`).focus());
}

function graphTab(panel, detail) {
  const view = current.graphView = new GraphView(detail, modeOf(detail), {
    select: (node) => {
      note({ node: node >= 0 ? str(detail.name[node]) : "" });
      refreshInspector(true);
    },
    changed: () => {
      keepView();
      note({ open: view.openPaths().join(";") });
    },
  });
  view.hops = state.hops;
  if (state.open) view.setOpen(state.open.split(";"));
  else if (kept.graph === graphKey() && kept.open) view.setOpen(kept.open);
  else view.openFirst();
  if (view.open.size === 1 && !state.open) view.openFirst();
  view.overlay = makeOverlay(detail, state.overlay);
  view.hits = state.filter ? new Set(detail.search(state.filter)) : null;
  view.layout();

  const check = h("input", {
    type: "checkbox",
    id: "changed-only",
    change: (event) => setHops(event.target.checked ? "1" : "all"),
  });
  check.checked = state.hops !== "all";
  const hops = h(
    "select",
    {
      label: "Unchanged nodes shown around a change",
      change: (event) => setHops(event.target.value),
    },
    [0, 1, 2, 3].map((k) =>
      h("option", { value: k, selected: state.hops === `${k}` }, plural(k, "hop"))
    ),
  );
  const overlays = overlaysOf(detail), differs = detail.changes.length > 0;
  const colour = h(
    "select",
    { label: "Colour by", change: (event) => setOverlay(event.target.value) },
    h("option", { value: "" }, "Colour: status"),
    overlays.map((key) =>
      h("option", { value: key, selected: key === state.overlay }, OVERLAYS[key].label)
    ),
    detail.ranksLeftOut && h("option", { disabled: true }, "Ranks: not compared, too many nodes"),
  );
  const modes = [["unified", "Unified"], ["side", "Side by side"], ["blink", "Blink"]];
  panel.append(
    h(
      "div.toolbar",
      differs &&
        h(
          "div.segments",
          { role: "group", label: "How both graphs are shown" },
          modes.map(([mode, label]) =>
            h("button", {
              "aria-pressed": String(state.mode === mode),
              click: () => go({ mode, cam: "" }),
            }, label)
          ),
        ),
      differs && [h("label.optional", check, "Changed only +"), h("span.optional", hops)],
      (overlays.length > 0 || detail.ranksLeftOut) && h("span.optional", colour),
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
    ),
  );
  panel.append(view.element, legend(detail, view));
  const node = detail.find(state.node);
  requestAnimationFrame(() => {
    if (current.graphView !== view) return;
    if (node !== undefined) view.selected = node;
    if (kept.graph === graphKey() && kept.camera && !state.cam) view.keepCamera(kept.camera);
    else view.home();
    if (node !== undefined && !state.cam) view.reveal(node);
  });
}
/** One graph has no two sides. */
const modeOf = (detail) => detail.changes.length ? state.mode : "unified";
const graphKey = () => `${current.subject.run.id} ${current.subject.graph}`;
/**
 * Remembers what is open and where the middle of the screen is, for the next pass of the same
 * graph.
 */
export function keepView() {
  if (!current.graphView || !current.subject || !current.graphView.fitted) return;
  kept.graph = graphKey();
  kept.open = current.graphView.openPaths();
  kept.camera = current.graphView.anchor();
}
/** What is nearest to the middle of the screen, by name or path, and where on the screen it is. */
GraphView.prototype.anchor = function () {
  const { room, height } = this.size(),
    d = this.detail,
    distance = (b) =>
      Math.abs(this.x + (b.x + b.width / 2) * this.scale - room / 2) +
      Math.abs(this.y + (b.y + Math.min(b.height, 40) / 2) * this.scale - height / 2);
  const near = (list) =>
    list.reduce((best, b) => !best || distance(b) < distance(best) ? b : best, null);
  const box = near(this.scene.boxes.filter((b) => b.node >= 0)),
    slab = near(this.scene.slabs.filter((s) => s.cluster > 0)),
    at = (b) => [this.x + b.x * this.scale, this.y + b.y * this.scale];
  return {
    scale: this.scale,
    life: box && d.life ? d.life[box.node] : -1,
    node: box ? at(box) : null,
    path: slab ? d.clusters[slab.cluster].path : "",
    slab: slab ? at(slab) : null,
  };
};
/** Unchanged nodes stay where they were on the screen. */
GraphView.prototype.keepCamera = function ({ scale, life, node, path, slab }) {
  const d = this.detail,
    box = node && d.ofLife(life) !== undefined ? this.scene.boxOf.get(d.ofLife(life)) : null,
    other = slab && this.scene.slabOf.get(d.clusterOfPath.get(path));
  if (!box && !other) {
    this.home();
    return;
  }
  const [[x, y], target] = box ? [node, box] : [slab, other];
  Object.assign(this, { scale, fitted: true, x: x - target.x * scale, y: y - target.y * scale });
  this.draw();
};
export function setHops(hops) {
  note({ hops, cam: "" });
  if (!current.graphView) return;
  current.graphView.hops = hops;
  current.graphView.unfolded.clear();
  const check = $("#changed-only");
  if (check) check.checked = hops !== "all";
  current.graphView.relayout((scene) =>
    scene.boxOf.get(current.graphView.selected) || scene.slabs[1]
  );
}
export function setOverlay(overlay) {
  note({ overlay });
  if (!current.graphView) return;
  current.graphView.overlay = makeOverlay(current.detail, overlay);
  $(".legend").replaceWith(legend(current.detail, current.graphView));
  current.graphView.draw();
}
function legend(detail, view) {
  const present = new Set(detail.status),
    marks = [[ADDED, "added"], [REMOVED, "removed"], [CHANGED, "changed"], [DERIVED, "derived"], [
      MOVED,
      "moved",
    ], [SAME, "unchanged"]].filter(([status]) => present.has(status));
  const box = h(
    "div.legend",
    marks.map(([status, word]) => h("span", h(`i.key.${STATUS[status]}`), word)),
  );
  if (view.overlay) box.append(h("b", view.overlay.label));
  if (view.overlay) {
    for (const [word, fill] of view.overlay.legend) {
      const key = h("i.key");
      key.style.background = fill;
      box.append(h("span", key, word));
    }
  }
  box.append(
    h("span.spacer"),
    h(
      "span.optional",
      detail.twoLanes ? "forward runs down on the left, backward up on the right" : "runs down",
    ),
  );
  return box;
}
