// The panel of the selected node: fields, inputs, outputs, provenance.

import { codeView } from "./code_view.js";
import { current, onSelection } from "./current.js";
import { dotted, h } from "./dom.js";
import { andMore, columnHead, grid, rowHead, td } from "./elements.js";
import { number, plural, shortType } from "./format.js";
import { costWords, OVERLAYS, real } from "./overlay.js";
import { relations } from "./patterns.js";
import { linkTo, state } from "./route.js";
import { selectNode, showNode } from "./selection.js";
import { ADDED, chip, DERIVED, PHASE, REMOVED, SAME, SIGN, STATUS, statusWord } from "./status.js";
import { loadDetail, loadLines, str, titleOf } from "./store.js";
import { marked } from "./text_diff.js";

/** The panel of the selected node; it follows the selection. */
export function inspectorPanel(detail) {
  let panel = inspector(detail);
  onSelection(() => {
    const next = inspector(detail);
    next.classList.toggle("sheet-open", Boolean(state.node));
    panel.replaceWith(next);
    panel = next;
  });
  return panel;
}
function inspector(detail) {
  const node = detail.find(state.node);
  if (node === undefined) return nothingSelected(detail);
  return h(
    "aside.inspector",
    { label: "Node" },
    nodeHead(detail, node),
    h("h3", "Fields"),
    fieldTable(detail, node),
    whyDerived(detail, node),
    relationsOf(detail, node),
    flowList(detail, "Inputs", detail.inputs(node)),
    flowList(detail, "Outputs", detail.outputs(node)),
    printedLines(detail, node),
    sourceOf(detail, node),
    generatedCode(detail, node),
    historyOf(detail, node),
    matchOf(detail, node),
  );
}
const nothingSelected = (detail) =>
  h(
    "aside.inspector.none",
    { label: "Node" },
    h("h2", "No node selected"),
    h(
      "p.mid",
      detail.changes.length
        ? ["Click a node, or press ", h("kbd", "n"), " for the first change of this pass."]
        : "Click a node to see its fields, inputs and outputs.",
    ),
  );
function nodeHead(detail, node) {
  const name = detail.nodeName(node);
  return h(
    "div.node-head",
    h("h2", { title: detail.opOf(node) }, detail.opLabel(node)),
    chip(detail.statusOf(node)),
    h("span.spacer"),
    h("button.close", { label: "Close", click: () => selectNode(-1) }, "×"),
    h(
      "div.mono.mid.wrap",
      dotted(detail.was.has(node) ? `${str(detail.was.get(node))} → ${name}` : name),
    ),
  );
}
/** The printed line of the node; two lines where the pass changed it. */
function printedLines(detail, node) {
  const box = h("div");
  loadLines(detail).then((printed) => {
    if (!printed) return;
    const lineOf = (absent, old) =>
      detail.status[node] === absent ? "" : printed[state.spelling](node, old);
    const before = lineOf(ADDED, true), after = lineOf(REMOVED, false);
    if (before && after && before !== after) {
      box.append(h("h3", "Line before"), h("pre", marked(before, after)));
      box.append(h("h3", "Line after"), h("pre", marked(after, before)));
    } else if (before || after) box.append(h("h3", "Line"), h("pre", dotted(before || after)));
  });
  return box;
}
const sourceOf = (detail, node) =>
  detail.place[node] >= 0 && [
    h("h3", "Source"),
    h("div.small.mono.mid.wrap", dotted(str(detail.place[node]))),
    detail.code[node] >= 0 && h("pre", str(detail.code[node])),
  ];
const generatedCode = (detail, node) =>
  detail.kernel.has(node) && [
    h("h3", "Generated C++"),
    codeView(str(detail.kernel.get(node)), "cpp"),
  ];
function historyOf(detail, node) {
  const box = h("div");
  blame(detail, node).then((list) => {
    if (list) box.append(h("h3", "Provenance"), list);
  });
  return box;
}
/** How the differ found that both sides have this node. */
const MATCHES = {
  id: "The same identity on both sides",
  pin: "Pinned by hand",
  input: "An input at the same place",
  cone: "The whole computation above is the same",
  radius: "The neighbourhood is the same and unique",
  local: "Next to matched nodes",
  order: "Between matched nodes in order",
};
function matchOf(detail, node) {
  const via = detail.via.get(node);
  if (!via) return null;
  const rule = str(via[0]), unsure = via[1] < 0.9;
  return [
    h("h3", "Match"),
    h(
      "p",
      { class: unsure ? "unsure" : "" },
      `${MATCHES[rule] || rule}; ${unsure ? "likely the same node, " : ""}confidence ${
        via[1].toFixed(2)
      }.`,
    ),
  ];
}

/** Root causes, then derived changes, then unchanged fields. */
function fieldTable(detail, node) {
  const rows = [],
    fields = (detail.fields.get(node) || []).slice().sort((a, b) => a[3] - b[3]),
    shown = new Set(fields.map(([path]) => str(path)));
  for (const [path, before, after, derived] of fields) {
    rows.push(
      h(
        "tr",
        { class: derived ? "derived" : "cause" },
        rowHead(str(path)),
        td(str(before) || "–", "mono old"),
        td(str(after) || "–", "mono new"),
      ),
    );
  }
  const one = (field, value) => {
    if (value && !shown.has(field)) {
      rows.push(
        h("tr", rowHead(field), h("td.mono", { colspan: "2" }, dotted(value))),
      );
    }
  };
  if (!shown.has("target")) one("operator", detail.opOf(node));
  one("type", detail.typeOf(node));
  one("module", detail.moduleOf(node));
  one("phase", PHASE[detail.phase[node]]);
  if (detail.seq[node] >= 0) one("sequence", String(detail.seq[node]));
  for (const key of ["bytes", "measured", "flops", "time"]) {
    if (detail[key].has(node)) {
      one(OVERLAYS[key].label.toLowerCase(), OVERLAYS[key].unit(detail[key].get(node)));
    }
  }
  if (detail.cost.has(node)) {
    one("Δ time · bytes · peak", costWords(detail.cost.get(node)).join("  "));
  }
  if (detail.across.has(node)) one("time across ranks", OVERLAYS.across.words(detail, node));
  if (detail.values.has(node)) {
    const [elements, nan, infinite, least, greatest, mean] = detail.values.get(node);
    one(
      "values",
      `${real(least)} … ${real(greatest)}, mean ${real(mean)}, ${plural(elements, "element")}, ${
        nan + infinite ? `${number(nan)} NaN, ${number(infinite)} infinite` : "all finite"
      }`,
    );
  }
  if (detail.ranks.has(node)) one("the same on", str(detail.ranks.get(node)));
  if (detail.stream.has(node)) one("stream", String(detail.stream.get(node)));
  if (detail.tags.has(node)) {
    for (const tag of str(detail.tags.get(node)).split("\n")) {
      one(tag.slice(0, tag.indexOf("=")), tag.slice(tag.indexOf("=") + 1));
    }
  }
  return grid(
    "table.fields",
    {},
    ["field", "before", "after"].map((word) => columnHead(word)),
    rows,
  );
}
function whyDerived(detail, node) {
  const causes = detail.inputs(node).map(([from]) => from).filter((from) =>
    detail.status[from] !== SAME
  );
  if (detail.status[node] === DERIVED) {
    return [h(
      "p.mid.small",
      causes.length
        ? ["Derived: follows from ", ...nodeLinks(detail, causes.slice(0, 3)), "."]
        : "Derived: follows from changes elsewhere.",
    )];
  }
  return (detail.fields.get(node) || []).some((field) => field[3])
    ? [
      h("p.quiet.small", "Grey rows with two values are derived: they follow from the marked row."),
    ]
    : [];
}
const nodeLinks = (detail, nodes) =>
  nodes.flatMap((
    node,
    i,
  ) => [
    i ? ", " : "",
    h("button.link.mono", { click: () => showNode(node) }, detail.nodeName(node)),
  ]);
function relationsOf(detail, node) {
  const list = detail.relations.filter((r) => r.before.includes(node) || r.after.includes(node)),
    out = [];
  if (list.length) out.push(h("h3", "Relations"), relations(detail, list.slice(0, 8)));
  for (const [key, words] of [["made", "Made from"], ["gone", "In its place"]]) {
    const entry = detail[key].get(node);
    if (entry && entry[1].length && !list.length) {
      out.push(
        h("h3", words),
        h(
          "p",
          ...nodeLinks(detail, entry[1].slice(0, 12)),
          str(entry[0]) ? h("span.quiet", ` (${str(entry[0]).replace("_", " ")})`) : "",
        ),
      );
    }
  }
  return out;
}
function flowList(detail, title, list) {
  if (!list.length) return [];
  const rows = list.slice(0, 24).map(([other, edge]) =>
    h(
      "button.flow",
      { click: () => showNode(other) },
      h(
        "span",
        { class: STATUS[edge], title: statusWord(STATUS[edge]) },
        edge === SAME ? "→" : SIGN[STATUS[edge]],
      ),
      h("span.mono.cut", detail.nodeName(other)),
      h("span.mono.quiet.cut", shortType(detail.typeOf(other))),
    )
  );
  return [
    h("h3", `${title} ${list.length}`),
    ...rows,
    andMore(list, 24),
  ];
}

/** What happened to the node in every pass of its graph; null for graphs without passes. */
async function blame(detail, node) {
  const subject = current.subject;
  if (!subject.pass || !detail.life) return null;
  const life = detail.life[node], rows = [];
  let quiet = [];
  const row = (status, words, pass, more) =>
    h(
      `div.step.${status}`,
      h("i"),
      h(
        "span.cut",
        pass && pass !== subject.pass && status !== "same"
          ? h("a", { href: linkTo(pass, { node: more }), title: words }, words)
          : words,
      ),
      h("span", { class: status === "same" ? "quiet" : status }, statusWord(status)),
    );
  const flush = () => {
    if (quiet.length) {
      rows.push(row(
        "same",
        quiet.length === 1
          ? titleOf(quiet[0])
          : `#${quiet[0].index}–${quiet[quiet.length - 1].index}, ${
            plural(quiet.length, "pass", "passes")
          }`,
      ));
    }
    quiet = [];
  };
  let born = false, dead = false;
  for (const pass of subject.run.passes.filter((p) => p.graph === subject.graph)) {
    const other = await loadDetail(pass.detail), at = other && other.ofLife(life);
    if (dead || (other && at === undefined)) continue; // not born yet, or gone
    const status = other ? other.statusOf(at) : "same";
    if (!born && other && status !== "added" && !rows.length && !quiet.length) {
      rows.push(row("same", "before the first pass"));
    }
    born = true;
    if (status === "same") {
      quiet.push(pass);
      continue;
    }
    flush();
    rows.push(row(status, titleOf(pass), pass, str(other.name[at])));
    dead = status === "removed";
  }
  flush();
  return h("div.provenance", rows);
}
