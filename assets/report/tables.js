// A pass as a table of nodes, as text, and as patterns.

import { ADDED, CHANGED, chip, DERIVED, MOVED, PHASE, REMOVED, SAME } from "./status.js";
import { OVERLAYS } from "./overlay.js";
import { copyText, h, plain } from "./dom.js";
import { go, state } from "./route.js";
import { markdownTable } from "./copy.js";
import { number, plural, shortOp, shortType } from "./format.js";
import { selectNode } from "./inspector.js";
import { str } from "./store.js";
import { td } from "./overview.js";

/** Root causes first: what a reader of the table looks for. */
const TABLE_ORDER = { [CHANGED]: 0, [ADDED]: 1, [REMOVED]: 2, [MOVED]: 3, [DERIVED]: 4, [SAME]: 5 };
const MAX_ROWS = 400;

export function whatChanged(detail, node) {
  const fields = detail.fields.get(node) || [],
    own = fields.filter((field) => !field[3]),
    shown = own.length ? own : fields;
  // On a phone there is no room for a whole target.
  const side = (path, text) =>
    text < 0 ? "–" : innerWidth < 900 && path === "target" ? shortOp(str(text)) : str(text);
  return shown.slice(0, 3).map(([path, before, after]) =>
    plain(`${str(path)}: ${side(str(path), before)} → ${side(str(path), after)}`)
  ).join("; ") + (shown.length > 3 ? `; and ${shown.length - 3} more` : "");
}
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
/** Appends the rows of a list as they are asked for; long lists would stall the page. */
export function inPortions(list, box, add, words) {
  let at = 0;
  const more = h("button.more-rows", { click: () => next() });
  const next = () => {
    add(list.slice(at, at + MAX_ROWS));
    at += MAX_ROWS;
    more.textContent = `Show ${number(Math.min(MAX_ROWS, list.length - at))} more of ${
      number(list.length - at)
    } ${words}`;
    more.hidden = at >= list.length;
  };
  box.append(more);
  next();
}
export const nothing = (...what) => h("div.empty", ...what);

export function tableTab(panel, detail) {
  const nodes = nodesFor(detail), sheet = h("div.sheet");
  if (detail.changes.length) {
    const all = h("input", {
      type: "checkbox",
      change: () => go({ hops: all.checked ? "all" : "1" }),
    });
    all.checked = state.hops === "all";
    panel.append(
      h(
        "div.toolbar",
        h("label", all, "Unchanged nodes too"),
        h("span.quiet.small", plural(nodes.length, "node")),
        h("span.spacer"),
        h(
          "button.optional",
          { click: () => copyText(markdownTable(detail, nodes), "Table") },
          "Copy as Markdown",
        ),
      ),
    );
  }
  panel.append(sheet);
  if (!nodes.length) {
    sheet.append(nothing(`Nothing matches “${state.filter}”.`));
    return;
  }
  const columns = columnsOf(detail),
    extra = [...columns.values()].find(([, show]) => show),
    body = h("tbody"),
    selected = detail.find(state.node);
  sheet.append(h(
    "table.nodes",
    h(
      "thead",
      h(
        "tr",
        [...columns.keys()].map((word) => {
          const next = { [word]: `-${word}`, [`-${word}`]: "" }[state.sort] ?? word,
            way = next === "" ? "descending" : next === word ? null : "ascending";
          return h(
            "th",
            { scope: "col", "aria-sort": way },
            h(
              "button.sort",
              {
                id: `sort-${word}`,
                title: "Sort",
                click: () => go({ sort: next }),
              },
              word,
              way ? way === "ascending" ? " ↑" : " ↓" : "",
            ),
          );
        }),
      ),
    ),
    body,
  ));
  inPortions(nodes, sheet, (list) =>
    body.append(...list.map((i) => {
      const was = detail.was.has(i) ? `${str(detail.was.get(i))} → ` : "";
      return h(
        "tr",
        {
          "data-node": i,
          "aria-selected": String(selected === i),
          tabindex: "0",
          click: () => selectNode(i),
          keydown: (event) => {
            if (event.key === "Enter") selectNode(i);
          },
        },
        h("td", chip(detail.statusOf(i))),
        td(was + detail.nodeName(i), "mono"),
        td(detail.opLabel(i)),
        td(whatChanged(detail, i) || "–", "mono"),
        extra && td(extra[1](i) || "–"),
        td(shortType(detail.typeOf(i)) || "–", "mono"),
        td(detail.moduleOf(i) || "–"),
        td(PHASE[detail.phase[i]] || "–"),
      );
    })), "nodes");
}
