// Ranks: their graphs after each pass, and their collectives in order.

import { refWord } from "./copy.js";
import { $$, h, joined, link } from "./dom.js";
import { boxed, columnHead, grid, pageHead, rowHead } from "./elements.js";
import { matching, number, plural } from "./format.js";
import { max, min } from "./math.js";
import { goTo, linkTo, views } from "./route.js";
import { graphsOf, loadFacts, report, snapshotsOf, subjects } from "./store.js";

const LETTER = (i) => i < 26 ? String.fromCharCode(65 + i) : `${i + 1}`;
const COLLECTIVE = [
  [/all_gather/, "AG"],
  [/reduce_scatter/, "RS"],
  [/all_reduce/, "AR"],
  [/all_to_all/, "A2A"],
  [/broadcast/, "BC"],
  [/./, "?"],
];

views.set("ranks", {
  label: "Ranks",
  shows: () => true,
  async render() {
    const runs = report.runs,
      page = h(
        "div.page",
        pageHead(
          "Ranks",
          plural(runs.length, "run"),
        ),
      );
    if (runs.length < 2) {
      page.append(
        h(
          "div.empty",
          runs[0]?.is_of_all_ranks ? h("h2", `All ${runs[0].world} ranks run these graphs`) : [
            h("h2", "One rank in this file"),
            h("p", "Join the traces of all ranks to compare them pass by pass."),
            h("pre", "strata merge rank0.strata rank1.strata -o all.strata"),
          ],
        ),
      );
      return page;
    }
    const name = (run) =>
      new Set(runs.map((r) => r.rank)).size === runs.length ? `rank ${run.rank}` : `run ${run.id}`;
    page.append(matrix(runs, name), await collectiveLanes(runs, name) || "");
    const left = report.rank_pairs.filter((pair) => pair.detail < 0);
    if (left.length) {
      page.append(
        h(
          "p.quiet.small",
          `${plural(left.length, "pair")} of graphs that differ ${
            left.length === 1 ? "is" : "are"
          } not compared node by node, beyond 20,000 nodes: ${
            left.slice(0, 4).map((pair) => pair.name).join("; ")
          }${left.length > 4 ? "; …" : ""}`,
        ),
      );
    }
    return page;
  },
});

/** "ranks 0–4, 6": names that end in neighbouring numbers as ranges. */
function ranges(group, name) {
  const word = name(group[0]).replace(/ \d+$/, ""),
    numbers = group.map((run) => Number(/\d+$/.exec(name(run))[0])).sort((a, b) => a - b),
    spans = [];
  for (const n of numbers) {
    const last = spans[spans.length - 1];
    if (last && n === last[1] + 1) last[1] = n;
    else spans.push([n, n]);
  }
  return `${word}${group.length > 1 ? "s" : ""} ${
    spans.map(([from, to]) => from === to ? from : `${from}–${to}`).join(", ")
  }`;
}
const printOf = (entry) => {
  const s = entry && (entry.after || entry.last);
  return s ? s.program || s.fingerprint : "";
};
/**
 * The passes of all runs, and their graphs without passes, as columns: {title, head, entries,
 * groups}. `entries` has one pass or graph per run, `groups` the number of its fingerprint.
 */
function columnsOf(runs) {
  const places = runs.map((run) => {
    const hasPass = (graph) => run.passes.some((pass) => pass.graph === graph.name),
      entries = [...run.passes, ...run.graphs.filter((graph) => !hasPass(graph))];
    return new Map(entries.map((e) => [`${e.graph}\n${e.index}\n${e.name}`, e]));
  });
  const keys = new Set(places.flatMap((entries) => [...entries.keys()]));
  return [...keys].map((key) => {
    const entries = places.map((of) => of.get(key)),
      prints = entries.map(printOf),
      kinds = [...new Set(prints)],
      { name: title, index } = entries.find(Boolean);
    return {
      title,
      head: index === undefined ? title : `#${index}`,
      entries,
      groups: prints.map((print) => kinds.indexOf(print)),
    };
  });
}
/** The graph of every rank after each pass, as letters: equal letters are equal graphs. */
function matrix(runs, name) {
  const columns = columnsOf(runs),
    split = columns.find((column) => column.groups.some((group) => group > 0)),
    chooser = new CellChooser();
  const words = split
    ? `Ranks diverge at ${[...new Set([split.head, split.title])].join(" ")}: ${
      groupWords(split, runs, name)
    }.`
    : "All ranks run the same after every pass.";
  const head = (column) =>
    columnHead(h("span.cut", column.head), {
      title: column.title,
      class: column === split && "parting",
    });
  const row = (run, i) =>
    h(
      "tr",
      rowHead(name(run)),
      columns.map((column) => h("td", chooser.cell(column, i, name(run)))),
    );
  const cells = grid(
    "table.matrix",
    { label: words },
    [columnHead(""), columns.map(head)],
    runs.map(row),
  );
  return boxed(
    "Graphs after each pass",
    `equal letters: one program${split ? "; underlined: where ranks diverge" : ""}`,
    summaryAnd(words, cells),
    chooser.hint,
  );
}
function groupWords({ groups }, runs, name) {
  const members = [...new Set(groups)].map((group) => runs.filter((_, i) => groups[i] === group));
  return members.map((group) => ranges(group, name)).join(" | ");
}
const CHOOSE = "Choose two cells to compare them.";
/** The first cell is kept; the second one opens the difference between both. */
class CellChooser {
  constructor() {
    this.hint = h("p.mid", { role: "note" }, CHOOSE);
    this.first = null;
  }
  cell(column, i, rank) {
    const entry = column.entries[i], group = column.groups[i], letter = LETTER(group);
    if (!entry) return h("span.cell.none", "none");
    const title = `${rank}, ${column.title}: group ${letter}`;
    return h("button", {
      class: `cell ${"abcd"[min(3, group)]}`,
      title,
      "aria-pressed": "false",
      click: (event) => this.choose(event.currentTarget, entry, title),
    }, letter);
  }
  choose(button, entry, title) {
    const { first } = this;
    this.first = first ? null : entry;
    for (const cell of $$(".matrix .cell")) {
      cell.setAttribute("aria-pressed", String(!first && cell === button));
    }
    if (first) this.compare(first, entry);
    else {
      const subject = subjects.find((s) => s.ref === entry.ref && !s.base);
      this.hint.replaceChildren(
        title,
        ": ",
        subject ? link(linkTo(subject), "open it") : "no pass changed it",
        ", or choose a second cell to compare it with.",
      );
    }
  }
  compare(first, second) {
    const pair = pairOf(first, second);
    if (pair) goTo(pair);
    else if (printOf(first) === printOf(second)) {
      this.hint.replaceChildren(first === second ? CHOOSE : "Both run the same.");
    } else {
      this.hint.replaceChildren(
        "These two were not compared here. This command compares them:",
        h("pre", `strata diff ${refWord(first.ref)} ${refWord(second.ref)}`),
      );
    }
  }
}
/** The comparison in this file of two graphs after the same pass. */
function pairOf(first, second) {
  const prints = (a, b) => [printOf(a), printOf(b)].sort().join(), wanted = prints(first, second);
  return subjects.find((s) =>
    s.group === "between ranks" && s.graph === (second.graph || second.name) &&
    s.index === (second.index ?? -1) && prints({ last: s.before }, s) === wanted
  );
}
const summaryAnd = (words, cells) => [h("p.mid.told", words), h("div.scroll", cells)];

/** Collectives in order: a lane per rank, a column for each that any rank has. */
async function collectiveLanes(runs, name) {
  const facts = await loadFacts(), lanes = runs.map((run) => collectivesOf(run, facts));
  if (!lanes.some((lane) => lane.length)) return null;
  const reference = lanes.reduce(merged),
    aligned = lanes.map((lane) => align(reference, lane)),
    first = reference.findIndex((_, i) => !aligned.every((lane) => lane[i])),
    from = max(0, first - 6),
    to = min(reference.length, from + 60);
  const lacking = runs.filter((_, r) => first >= 0 && !aligned[r][first]),
    words = collectiveWords(reference, first) +
      (lacking.length ? ` Missing on ${joined(lacking.map(name))}.` : "");
  const wanted = reference.slice(from, to);
  const row = (run, r) =>
    h(
      "tr",
      rowHead(name(run)),
      aligned[r].slice(from, to).map((c) => h("td", collectiveMark(c))),
    );
  const cells = grid(
    "table.lanes",
    { label: words },
    [columnHead(""), wanted.map((_, k) => columnHead(String(from + k)))],
    runs.map(row),
  );
  const part = reference.length > to - from ? `; ${to - from} of ${number(reference.length)}` : "";
  return boxed(
    "Collectives in order",
    `of ${graphsOf(runs[0])[0]} after the last pass${part}`,
    summaryAnd(words, cells),
  );
}
function collectivesOf(run, facts) {
  const last = snapshotsOf(run, graphsOf(run)[0]).at(-1), known = last && facts[last.facts];
  const groups = [];
  return (known && known.collectives || []).map(([, op, type, group, , , place]) => {
    // "sum, tp": what is reduced, and the group.
    const last = group.split(", ").at(-1);
    if (!groups.includes(last)) groups.push(last);
    const nth = group.slice(0, -last.length) + groups.indexOf(last);
    return { op, type, group, place, nth };
  });
}
/** Groups have other names on other ranks: the n-th is the n-th. */
const isSame = (a, b) => a.op === b.op && a.type === b.type && a.nth === b.nth;
/** A lane in the columns: equal collectives in order. */
function align(columns, lane) {
  const at = columns.length * lane.length > 1e6
    ? columns.map((c, i) => lane[i] && isSame(c, lane[i]) ? i : -1)
    : matching(columns, lane, isSame);
  return at.map((k) => lane[k]);
}
/** The columns with one for each collective that only this lane has. */
function merged(columns, lane) {
  const known = new Map(align(columns, lane).map((c, i) => [c, columns[i]])),
    out = [];
  let next = 0;
  for (const c of lane) {
    const column = known.get(c);
    if (!column) out.push(c);
    else while (out.at(-1) !== column) out.push(columns[next++]);
  }
  return [...out, ...columns.slice(next)];
}
function collectiveMark(c) {
  if (!c) return h("span.collective.missing", "none");
  const [, short] = COLLECTIVE.find(([shape]) => shape.test(c.op));
  return h("span.collective", { title: `${c.op} ${c.type} ${c.group} ${c.place}` }, short);
}
function collectiveWords(reference, first) {
  if (first < 0) {
    return `All ${plural(reference.length, "collective")} agree in operator, type and group.`;
  }
  const { op, type, place } = reference[first];
  return `Collective ${first} is the first that differs: ${op} ${type} ${place}.`;
}
