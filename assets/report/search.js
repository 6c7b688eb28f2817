// Search over everything, and the command palette.

import { current } from "./current.js";
import { $, h, plain, say } from "./dom.js";
import { around, matcher, plural, shortOp, shortType } from "./format.js";
import { brackets, searchRecords } from "./log_data.js";
import { goTo, linkTo, note, renderSoon, state } from "./route.js";
import { selectNode, showNode } from "./selection.js";
import { loadDetail, nameOf, str, subjects } from "./store.js";

let hits = [];
/** Runs as one types: hits are framed in the graph, and filter tables and text. */
export function doSearch(text) {
  const begin = performance.now();
  hits = current.detail ? current.detail.search(text) : [];
  if (current.graphView) {
    current.graphView.hits = text ? new Set(hits) : null;
    current.graphView.draw();
  }
  const fits = matcher(text),
    passes = text ? subjects.filter((s) => fits(`${s.name} ${s.graph} ${s.options || ""}`)) : [];
  showResults(text, passes, searchRecords(text), performance.now() - begin);
  note({ filter: text });
  if (
    state.view === "operators" || state.view === "log" ||
    (state.view === "subject" && state.tab !== "graph")
  ) renderSoon();
}
function showResults(text, passes, records, ms) {
  const box = $("#results"), d = current.detail;
  box.hidden = !text;
  if (!text) return;
  const fits = matcher(text);
  // Why it is a hit: the property that matched.
  const why = (i) =>
    fits(str(d.name[i]))
      ? shortType(d.typeOf(i))
      : [d.opOf(i), d.moduleOf(i), d.typeOf(i)].find(fits) || "";
  box.replaceChildren(
    h(
      "div.group",
      `${d ? plural(hits.length, "node") : "no graph"}${
        passes.length ? `, ${plural(passes.length, "pass", "passes")}` : ""
      } · ${ms.toFixed(0)} ms`,
    ),
    ...passes.slice(0, 6).map((s) =>
      h(
        "a.item",
        { href: linkTo(s) },
        h("span", nameOf(s)),
        h("span.quiet", s.pass ? "pass" : "graph"),
      )
    ),
    ...records.slice(0, 6).map(([record, href]) =>
      h(
        "a.item",
        { href },
        h("span.cut", record.name),
        h("span.quiet", `record ${record.compile && brackets(record.compile)}`),
      )
    ),
    ...hits.slice(0, 12).map((i) =>
      h(
        "button.item",
        { click: () => showNode(i) },
        h("span.mono.cut", d.nodeName(i)),
        h("span.quiet.cut", `${shortOp(d.opOf(i))} · ${why(i)}`),
      )
    ),
    hits.length ? h("div.group", "Enter for the next, Shift Enter for the one before") : h(
      "button.item",
      { click: () => searchElsewhere(text) },
      h(
        "span",
        passes.length ? "Look for nodes in all passes" : "Nothing here; look in all passes",
      ),
      h("span"),
    ),
  );
}
/** The first pass, after this one and around, that has a node that matches. */
async function searchElsewhere(text) {
  const start = subjects.indexOf(current.subject);
  for (let k = 1; k <= subjects.length; k++) {
    const subject = subjects[(start + k + subjects.length) % subjects.length],
      detail = await loadDetail(subject.detail),
      found = detail ? detail.search(text) : [];
    if (!found.length) continue;
    await goTo(subject, { node: str(detail.name[found[0]]) });
    say(`${plural(found.length, "node")} in ${plain(subject.name)}`);
    return;
  }
  say(`Nothing matches “${text}”`);
}
export function searchNext(direction) {
  if (!state.filter) return;
  if (!hits.length) {
    searchElsewhere(state.filter);
    return;
  }
  const next = around(hits, hits.indexOf(current.detail.find(state.node)), direction);
  selectNode(hits[next], true);
  say(`hit ${next + 1} of ${hits.length}: ${current.detail.nodeName(hits[next])}`);
}
