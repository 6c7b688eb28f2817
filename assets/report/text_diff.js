// The text of a pass: both sides line by line.

import { copyGraph } from "./copy.js";
import { $, dotted, h } from "./dom.js";
import { inPortions, nothing } from "./elements.js";
import { matching, MINUS, plural } from "./format.js";
import { go, state } from "./route.js";
import { selectNode } from "./selection.js";
import { ADDED, REMOVED } from "./status.js";
import { loadLines } from "./store.js";

/** Marks the words in which two lines differ: common words, in order, stay plain. */
export function marked(line, other) {
  const words = (text) => text.match(/[A-Za-z0-9_.]+|\s+|./gu) || [],
    a = words(line),
    b = words(other);
  let begin = 0, end = 0;
  while (begin < a.length && begin < b.length && a[begin] === b[begin]) begin++;
  while (
    end < a.length - begin && end < b.length - begin &&
    a[a.length - 1 - end] === b[b.length - 1 - end]
  ) end++;
  const [x, y] = [a.slice(begin, a.length - end), b.slice(begin, b.length - end)],
    same = x.length * y.length < 40000 ? matching(x, y) : [];
  const parts = [a.slice(0, begin).join("")];
  for (let i = 0; i < x.length;) {
    const isSame = (k) => same[k] >= 0, plainWord = isSame(i), from = i;
    while (i < x.length && isSame(i) === plainWord) i++;
    const text = x.slice(from, i).join("");
    parts.push(plainWord ? text : h("mark", dotted(text)));
  }
  parts.push(a.slice(a.length - end).join(""));
  return parts.map(dotted);
}
/** Rows of the text difference: changes with the lines around them, and folds between. */
function textRows(detail, lines, spelling, context) {
  const rows = [], fits = state.filter ? new Set(detail.search(state.filter)) : null;
  let quiet = [], old = 0, now = 0;
  const flush = (last) => {
    const head = rows.length ? context : 0, tail = last ? 0 : context;
    if (detail.changes.length && quiet.length > head + tail + 1) {
      rows.push(
        ...quiet.slice(0, head),
        { fold: quiet.slice(head, quiet.length - tail) },
        ...quiet.slice(quiet.length - tail),
      );
    } else rows.push(...quiet);
    quiet = [];
  };
  for (let i = 0; i < detail.count; i++) {
    const before = detail.status[i] === ADDED ? "" : lines[spelling](i, true),
      after = detail.status[i] === REMOVED ? "" : lines[spelling](i, false);
    if (before) old++;
    if (after) now++;
    if (!before && !after) continue;
    if (before === after && !(fits && fits.has(i))) {
      quiet.push({ node: i, old, now, text: after });
      continue;
    }
    if (fits && !fits.has(i)) continue;
    flush(false);
    if (before === after) rows.push({ node: i, old, now, text: after });
    if (before && before !== after) {
      rows.push({ node: i, old, sign: MINUS, text: before, other: after });
    }
    if (after && before !== after) {
      rows.push({ node: i, now, sign: "+", text: after, other: before });
    }
  }
  flush(true);
  return rows;
}
export async function textTab(panel, detail) {
  panel.append(textTools(detail));
  const sheet = h("div.sheet.text", { tabindex: "0", role: "region", label: "Text of the graphs" });
  panel.append(sheet);
  const lines = await loadLines(detail);
  if (!lines) {
    sheet.append(nothing("The lines did not fit into this report; the trace has them."));
    return;
  }
  const rows = textRows(detail, lines, state.spelling, 3);
  if (!rows.length) {
    sheet.append(
      nothing(
        state.filter
          ? `No line matches “${state.filter}”.`
          : "No line differs; the table has differences of types and source locations.",
      ),
    );
    return;
  }
  const draw = rowPainter(detail);
  inPortions(rows, sheet, (list) => {
    $(".more-rows", sheet).before(...list.flatMap(draw));
  }, "lines");
  const first = $("[aria-selected=true]", sheet);
  if (first) first.scrollIntoView({ block: "center" });
}
function textTools(detail) {
  const choose = (spelling, label) =>
    h("button", {
      "aria-pressed": String(state.spelling === spelling),
      click: () => go({ spelling }),
    }, label);
  return h(
    "div.toolbar",
    h(
      "div.segments",
      { role: "group", label: "Spelling" },
      choose("native", "Native"),
      choose("fx", "FX"),
    ),
    h("span.quiet.small.optional", "differences inside a line are marked"),
    h("span.spacer"),
    h("button", { click: () => copyGraph(detail) }, "Copy graph"),
  );
}
/** Makes the elements of a row; the first line of each module has the module's path above it. */
function rowPainter(detail) {
  const selected = detail.find(state.node);
  let module = null;
  const draw = (row) => {
    if (row.fold) {
      const fold = h("button.line.fold-line", {
        click: () => fold.replaceWith(...row.fold.flatMap(draw)),
      }, `… ${plural(row.fold.length, "unchanged line")}`);
      module = null;
      return [fold];
    }
    const line = textLine(row, row.node === selected), place = detail.moduleOf(row.node);
    if (place === module) return [line];
    module = place;
    return [h("div.place", place || "without module"), line];
  };
  return draw;
}
function textLine(row, selected) {
  const kind = row.sign === "+" ? "plus" : row.sign ? "minus" : "";
  return h(
    `div.line.${kind}`,
    {
      "data-node": row.node,
      "aria-selected": String(selected),
      click: () => selectNode(row.node),
    },
    h("span.nr", row.old && kind !== "plus" ? String(row.old) : ""),
    h("span.nr", row.now && kind !== "minus" ? String(row.now) : ""),
    h("span.sign", row.sign || " "),
    h("span.source", row.other ? marked(row.text, row.other) : row.text),
  );
}
