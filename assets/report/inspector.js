// What is told of the selected node.

import { $, $$, dotted, h } from "./dom.js";
import { ADDED, chip, DERIVED, PHASE, REMOVED, SAME, SIGN, STATUS, statusWord } from "./status.js";
import { OVERLAYS, real } from "./overlay.js";
import { current } from "./current.js";
import { go, linkTo, note, state } from "./route.js";
import { loadDetail, loadLines, str, titleOf } from "./store.js";
import { marked } from "./text_diff.js";
import { number, plural, shortType } from "./format.js";
import { relations } from "./patterns.js";
import { td } from "./overview.js";

export function inspector(detail) {
  const node = detail.find(state.node),
    box = h("aside", { class: node === undefined ? "inspector none" : "inspector", label: "Node" });
  if (node === undefined) {
    box.append(
      h("h2", "No node selected"),
      h(
        "p.mid",
        detail.changes.length
          ? ["Click a node, or press ", h("kbd", "n"), " for the first change of this pass."]
          : "Click a node to see its fields, inputs and outputs.",
      ),
    );
    return box;
  }
  const name = detail.nodeName(node);
  box.append(
    h(
      "div.node-head",
      h("h2", { title: detail.opOf(node) }, detail.opLabel(node)),
      chip(detail.statusOf(node)),
      h("span.spacer"),
      h("button.close", { label: "Close", click: () => selectNode(-1) }, "×"),
      h(
        "div.mono.mid.wrap",
        dotted(detail.was.has(node) ? `${str(detail.was.get(node))} → ${name}` : name),
      ),
    ),
  );
  box.append(
    h("h3", "Fields"),
    fieldTable(detail, node),
    ...whyDerived(detail, node),
    ...relationsOf(detail, node),
  );
  box.append(
    ...flowList(detail, "Inputs", detail.inputs(node)),
    ...flowList(detail, "Outputs", detail.outputs(node)),
  );
  const lines = h("div");
  box.append(lines);
  loadLines(detail).then((printed) => {
    if (!printed) return;
    const [before, after] = [true, false].map((old) =>
      detail.status[node] === (old ? ADDED : REMOVED) ? "" : printed[state.spelling](node, old)
    );
    if (before && before !== after) {
      lines.append(
        h("h3", after ? "Line before" : "Line"),
        h("pre", after ? marked(before, after) : dotted(before)),
      );
    }
    if (after) {
      lines.append(
        h("h3", before && before !== after ? "Line after" : "Line"),
        h("pre", before && before !== after ? marked(after, before) : dotted(after)),
      );
    }
  });
  if (detail.place[node] >= 0) {
    box.append(
      h("h3", "Source"),
      h("div.small.mono.mid.wrap", dotted(str(detail.place[node]))),
      detail.code[node] >= 0 && h("pre", str(detail.code[node])),
    );
  }
  const history = h("div");
  box.append(history);
  blame(detail, node).then((list) => {
    if (list) history.append(h("h3", "Provenance"), list);
  });
  const via = detail.via.get(node);
  if (via) {
    const words = {
      id: "The same identity on both sides",
      pin: "Pinned by hand",
      input: "An input at the same place",
      cone: "The whole computation above is the same",
      radius: "The neighbourhood is the same and unique",
      local: "Next to matched nodes",
      order: "Between matched nodes in order",
    };
    box.append(
      h("h3", "Match"),
      h(
        "p",
        { class: via[1] < 0.9 ? "unsure" : "" },
        `${words[str(via[0])] || str(via[0])}; ${
          via[1] < 0.9 ? "likely the same node, " : ""
        }confidence ${via[1].toFixed(2)}.`,
      ),
    );
  }
  return box;
}

/** Root causes, then what follows from them, then fields that are as they were. */
function fieldTable(detail, node) {
  const rows = [],
    fields = (detail.fields.get(node) || []).slice().sort((a, b) => a[3] - b[3]),
    told = new Set(fields.map(([path]) => str(path)));
  for (const [path, before, after, derived] of fields) {
    rows.push(
      h(
        "tr",
        { class: derived ? "derived" : "cause" },
        h("th", { scope: "row" }, str(path)),
        td(str(before) || "–", "mono old"),
        td(str(after) || "–", "mono new"),
      ),
    );
  }
  const one = (field, value) => {
    if (value && !told.has(field)) {
      rows.push(
        h("tr", h("th", { scope: "row" }, field), h("td.mono", { colspan: "2" }, dotted(value))),
      );
    }
  };
  if (!told.has("target")) one("operator", detail.opOf(node));
  one("type", detail.typeOf(node));
  one("module", detail.moduleOf(node));
  one("phase", PHASE[detail.phase[node]]);
  if (detail.seq[node] >= 0) one("sequence", String(detail.seq[node]));
  for (const key of ["bytes", "measured", "flops", "time"]) {
    if (detail[key].has(node)) {
      one(OVERLAYS[key].label.toLowerCase(), OVERLAYS[key].unit(detail[key].get(node)));
    }
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
  return h(
    "table.fields",
    h(
      "thead",
      h("tr", ["field", "before", "after"].map((word) => h("th", { scope: "col" }, word))),
    ),
    h("tbody", rows),
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
    list.length > 24 ? h("p.quiet", `and ${number(list.length - 24)} more`) : "",
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
      rows.push(row("same", "as it came"));
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

export function refreshInspector(sheet = false) {
  const old = $(".inspector");
  if (old && current.detail) {
    old.replaceWith(inspector(current.detail));
    $(".inspector").classList.toggle("sheet-open", sheet && Boolean(state.node));
  }
  const node = current.detail ? current.detail.find(state.node) : undefined;
  for (const row of $$("[data-node]")) {
    row.setAttribute("aria-selected", String(Number(row.dataset.node) === node));
  }
}
/** Selects in whatever tab is shown; `reveal` brings it to the middle of the graph. */
export function selectNode(node, reveal = false) {
  note({ node: node >= 0 ? str(current.detail.name[node]) : "" });
  if (current.graphView && node >= 0 && reveal) current.graphView.reveal(node);
  else if (current.graphView) {
    current.graphView.setSelected(node);
    current.graphView.draw();
  }
  refreshInspector(true);
}
/** As a link to the node: in the graph, whatever tab one comes from. */
export function showNode(node) {
  if (current.graphView) selectNode(node, true);
  else if (state.tab === "graph" || state.tab === "patterns") {
    go({ tab: "graph", node: str(current.detail.name[node]) });
  } else selectNode(node);
}
