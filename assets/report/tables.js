// A pass as a table of nodes.

import { markdownTable } from "./copy.js";
import { copyText, h } from "./dom.js";
import { columnHead, grid, inPortions, nothing, td } from "./elements.js";
import { plural, shortType } from "./format.js";
import { OVERLAYS } from "./overlay.js";
import { go, state } from "./route.js";
import { selectNode } from "./selection.js";
import { ADDED, CHANGED, chip, DERIVED, MOVED, PHASE, REMOVED, SAME } from "./status.js";
import { str } from "./store.js";
import { whatChanged } from "./words.js";

/** Root causes first: what a reader of the table looks for. */
const TABLE_ORDER = { [CHANGED]: 0, [ADDED]: 1, [REMOVED]: 2, [MOVED]: 3, [DERIVED]: 4, [SAME]: 5 };

/**
 * Columns of the table: heading → what it sorts by. The property that the graph is coloured by has
 * one, too.
 */
function columnsOf(detail) {
  const overlay = OVERLAYS[state.overlay], values = overlay && overlay.map && overlay.map(detail);
  return new Map(
    [
      ["status", (i) => TABLE_ORDER[detail.status[i]]],
      ["node", (i) => detail.nodeName(i)],
      ["operator", (i) => detail.opLabel(i)],
      ["what changed", (i) => whatChanged(detail, i)],
      ...overlay
        ? [[
          overlay.label.toLowerCase(),
          values ? (i) => values.get(i) ?? -Infinity : (i) => overlay.kind(detail, i),
          (i) =>
            !values
              ? overlay.kind(detail, i)
              : values.has(i)
              ? (overlay.words ? overlay.words(detail, i) : overlay.unit(values.get(i)))
              : "–",
        ]]
        : [],
      ["type", (i) => shortType(detail.typeOf(i))],
      ["module", (i) => detail.moduleOf(i)],
      ["phase", (i) => detail.phase[i]],
    ].map(([word, ...rest]) => [word, rest]),
  );
}
function nodesFor(detail) {
  const hits = state.filter ? new Set(detail.search(state.filter)) : null,
    pool = detail.changes.length && state.hops !== "all"
      ? detail.changes
      : Array.from({ length: detail.count }, (_, i) => i);
  const down = state.sort.startsWith("-"),
    [key] = columnsOf(detail).get(state.sort.slice(down)) || [(i) => TABLE_ORDER[detail.status[i]]],
    compare = new Intl.Collator("en", { numeric: true }).compare;
  return pool.filter((i) => !hits || hits.has(i)).map((i) => [key(i), i]).sort(([a, i], [b, j]) =>
    (down ? -1 : 1) * (typeof a === "number" ? a - b || 0 : compare(a, b)) || i - j
  ).map(([, i]) => i);
}
export function tableTab(panel, detail) {
  const nodes = nodesFor(detail), sheet = h("div.sheet");
  if (detail.changes.length) panel.append(tableTools(detail, nodes));
  panel.append(sheet);
  if (!nodes.length) {
    sheet.append(nothing(`Nothing matches “${state.filter}”.`));
    return;
  }
  const columns = columnsOf(detail),
    [, extra] = [...columns.values()].find(([, show]) => show) || [],
    box = grid("table.nodes", {}, [...columns.keys()].map(sortHead)),
    selected = detail.find(state.node);
  sheet.append(box);
  inPortions(nodes, sheet, (list) => {
    box.tBodies[0].append(...list.map((node) => nodeRow(detail, node, node === selected, extra)));
  }, "nodes");
}
function tableTools(detail, nodes) {
  const all = h("input", {
    type: "checkbox",
    change: () => go({ hops: all.checked ? "all" : "1" }),
  });
  all.checked = state.hops === "all";
  return h(
    "div.toolbar",
    h("label", all, "Unchanged nodes too"),
    h("span.quiet.small", plural(nodes.length, "node")),
    h("span.spacer"),
    h(
      "button.optional",
      { click: () => copyText(markdownTable(detail, nodes), "Table") },
      "Copy as Markdown",
    ),
  );
}
/** A click sorts by the column, the next one backwards, the third not at all. */
function sortHead(word) {
  const orders = {
    [word]: { next: `-${word}`, sort: "ascending", arrow: " ↑" },
    [`-${word}`]: { next: "", sort: "descending", arrow: " ↓" },
  };
  const { next, sort, arrow } = orders[state.sort] || { next: word, arrow: "" };
  const sorter = h(
    "button.sort",
    { id: `sort-${word}`, title: "Sort", click: () => go({ sort: next }) },
    word,
    arrow,
  );
  return columnHead(sorter, { "aria-sort": sort });
}
function nodeRow(detail, node, selected, extra) {
  const was = detail.was.has(node) ? `${str(detail.was.get(node))} → ` : "";
  return h(
    "tr",
    {
      "data-node": node,
      "aria-selected": String(selected),
      tabindex: "0",
      click: () => selectNode(node),
      keydown: (event) => {
        if (event.key === "Enter") selectNode(node);
      },
    },
    h("td", chip(detail.statusOf(node))),
    td(was + detail.nodeName(node), "mono"),
    td(detail.opLabel(node)),
    td(whatChanged(detail, node) || "–", "mono"),
    extra && td(extra(node) || "–"),
    td(shortType(detail.typeOf(node)) || "–", "mono"),
    td(detail.moduleOf(node) || "–"),
    td(PHASE[detail.phase[node]] || "–"),
  );
}
