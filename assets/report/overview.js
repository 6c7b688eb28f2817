// The first page: what ran, the pass timeline, root causes, what each step executed.

import { barcodeOf } from "./barcode.js";
import { $, dotted, h, joined, link } from "./dom.js";
import { boxed, card, cards, section, table } from "./elements.js";
import { bytes, delta, flops, number, past, plural, time } from "./format.js";
import { lineChart } from "./line_chart.js";
import { max } from "./math.js";
import { currentRun, hashOf, linkTo } from "./route.js";
import { BADGES, badges, SIGN } from "./status.js";
import { graphsOf, isQuiet, report, snapshotsOf, titleOf } from "./store.js";
import { whereWords } from "./words.js";

export function overview() {
  const run = currentRun();
  return h(
    "div.page",
    h("div.hero", h("h1", report.title), h("span.quiet.small", dotted(runWords(run)))),
    run.passes.filter((pass) => pass.status === "failed").map(failure),
    cards(cardsOf(run)),
    run.passes.length > 0 &&
      section("Pass timeline", "one mark per node, left to right in program order", timeline(run)),
    rootCauses(run),
    report.code.map(([head, text]) => boxed(head, "", h("pre", text))),
    run.events.length > 0 &&
      boxed(
        "Compilations",
        run.event_words,
        table(["=compilation", "what", "?function", "~reason"], run.events),
      ),
    run.steps.length > 0 && boxed("What ran", "", lossChart(run), executed(run)),
    $("#figure") && boxed("Pipeline", "ranks over time", $("#figure").content.cloneNode(true)),
    otherGraphs(run),
    run.stages.length > 0 && stageTable(run),
    report.runs.length > 1 && runTable(run),
    report.left_out.length > 0 &&
      boxed(
        "Left out",
        "no room here; the trace has them",
        h("ul", report.left_out.map((title) => h("li", title))),
      ),
    boxed("Words", "", $("#glossary").content.cloneNode(true)),
  );
}
function otherGraphs(run) {
  const graphs = run.graphs.filter((graph) => graph.detail >= 0);
  if (!graphs.length) return null;
  const rows = graphs.map((graph) => [
    link(linkTo(graph), graph.name),
    number(graph.last.nodes),
    graph.last.peak ? bytes(graph.last.peak) : "–",
    graph.last.flops ? flops(graph.last.flops) : "–",
    graph.last.fingerprint,
  ]);
  return boxed(
    run.passes.length ? "Other graphs" : "Graphs",
    "",
    table(["graph", "#nodes", "#peak memory", "?#arithmetic", "?=fingerprint"], rows),
  );
}
function stageTable(run) {
  const difference = (stage) =>
    stage.detail >= 0 ? badges(stage.counts) : stage.compared ? "equal" : "not compared, too large";
  const rows = run.stages.map((stage) => [
    stage.detail < 0 ? stage.graph : link(linkTo(stage), stage.graph),
    stage.from,
    `${number(stage.before.nodes)} → ${number(stage.after.nodes)}`,
    difference(stage),
  ]);
  return boxed(
    "Stages of compilation",
    "each graph and the graph that the compiler made of it",
    table(["graph", "from", "?#nodes", "difference"], rows),
  );
}
function runTable(run) {
  const rows = report.runs.map((other) => [
    h("a", {
      href: hashOf({ view: "overview", run: other.id }),
      "aria-current": other === run && "true",
    }, `run ${other.id}`),
    other.ranks,
    other.kind,
    other.source,
    number(other.passes.length),
    other.status,
  ]);
  return boxed(
    "Runs of this file",
    "",
    table(["run", "ranks", "?kind", "~source", "?#passes", "status"], rows),
  );
}
const runWords = (run) =>
  ["diff", "graph"].includes(run.kind) ? run.source : [
    run.kind === "import" ? "imported log" : `${run.kind} run ${run.id}`,
    run.ranks,
    run.status,
    run.source || run.command,
  ].join(" · ");

export function failure(pass) {
  return h(
    "div.failure",
    { role: "alert" },
    h("b", `Pass ${pass.index} ${pass.name} failed. `),
    "The trace keeps the graph from before it.",
    h("pre", `strata: error: ${pass.error}`),
    pass.reproduce && h("pre", pass.reproduce),
  );
}

const sumOf = (list, value) => list.reduce((sum, item) => sum + value(item), 0);

function cardsOf(run) {
  const snapshots = snapshotsOf(run, graphsOf(run)[0]),
    [first] = snapshots,
    last = snapshots.at(-1);
  const twoSides = (title, key, unit, words) =>
    first && last[key] && beforeAfter(title, first[key], last[key], unit, words);
  return [
    run.passes.length > 0 && passCard(run),
    twoSides("Nodes", "nodes", number, `of ${graphsOf(run)[0]}`),
    first && run.passes.length > 0 && changeCard(run),
    twoSides("Peak memory", "peak", bytes, "estimated from shapes"),
    twoSides("Arithmetic", "flops", flops, "of matrix products and attention"),
    run.passes.length > 0 && attentionCard(run),
    run.steps.length > 0 && lossCard(run),
  ];
}
const failedOf = (run) => run.passes.filter((pass) => pass.status === "failed").length;
function passCard(run) {
  const changed = run.passes.filter((pass) => pass.detail >= 0).length,
    failed = failedOf(run),
    total = sumOf(run.passes, (pass) => pass.ms);
  return card(
    "Passes",
    number(run.passes.length),
    failed
      ? `${failed} failed`
      : `${changed} changed something${total > 0 ? `, ${time(total)}` : ""}`,
  );
}
export const beforeAfter = (title, before, after, unit, words) =>
  before === after
    ? card(title, unit(after), words)
    : card(title, `${unit(before)} → ${unit(after)}`, `${delta(after - before, unit)}, ${words}`);
/** Two runs differ at the end by the counts of the last row; passes of one run add up. */
function changeCard(run) {
  const passes = run.kind === "diff" ? run.passes.slice(-1) : run.passes,
    sums = BADGES.map((_, i) => sumOf(passes, (pass) => pass.counts[i])),
    derived = sums[4];
  return card(
    "Changes",
    sums.some(Boolean) ? badges([...sums.slice(0, 4), 0]) : "none",
    derived
      ? `${number(derived)} more nodes are derived`
      : run.kind === "diff"
      ? "at the end"
      : "over all passes",
  );
}
function attentionCard(run) {
  const failed = failedOf(run),
    causes = run.passes.flatMap((pass) => pass.causes),
    deviating = causes.filter((cause) => cause.except.length).length;
  const [first, ...others] = joined([
    failed && plural(failed, "failed pass", "failed passes"),
    deviating && plural(deviating, "deviating pattern"),
    run.event_words,
  ]).split(", ");
  return card(
    "Needs a look",
    first || "nothing",
    first ? others.join(", ") : "no pass failed, no pattern deviates",
  );
}
function lossCard({ steps }) {
  const mean = sumOf(steps, ([, , , ms]) => ms) / steps.length;
  return card(
    "Loss",
    `${steps[0][1].toFixed(4)} → ${steps.at(-1)[1].toFixed(4)}`,
    `${plural(steps.length, "step")}, ${time(mean)} each`,
  );
}

/** One row per pass; neighbours without change share a row. */
function timeline(run) {
  const columns = {
    longest: max(...run.passes.map((pass) => pass.ms)),
    graph: new Set(run.passes.map((pass) => pass.graph)).size > 1,
  };
  const rows = [];
  let quiet = [];
  const closeFold = () => {
    if (quiet.length) rows.push(foldedPasses(quiet));
    quiet = [];
  };
  for (const pass of run.passes) {
    if (isQuiet(pass)) quiet.push(pass);
    else {
      closeFold();
      rows.push(passRow(pass, columns));
    }
  }
  closeFold();
  const timed = columns.longest > 0;
  return h(
    "div",
    { class: timed ? "timeline box" : "timeline box untimed" },
    timelineHead(timed),
    rows,
  );
}
const timelineHead = (timed) =>
  h(
    "div.row.head",
    { "aria-hidden": "true" },
    h("span.number", "#"),
    h("span", "Pass"),
    h("span", "Where"),
    [...BADGES, "Δ peak", "Δ FLOP", timed && "time"].filter(Boolean).map((word) =>
      h("span.number.one", word)
    ),
  );
function foldedPasses(passes) {
  const names = passes.map((pass) => pass.name).join(", ");
  return h(
    "div.row.fold",
    h(
      "span.cut",
      { title: names },
      `${plural(passes.length, "pass", "passes")} without change  `,
      h("span.mono", names),
    ),
  );
}
function passRow(pass, columns) {
  const words = joined([
    pass.status === "failed" && "failed, graph kept as it was",
    columns.graph && pass.graph,
    pass.proof,
    pass.options || pass.causes[0] && past(pass.causes[0].title),
  ], " · ");
  const step = (key, unit) => h("span.number.one", delta(pass.after[key] - pass.before[key], unit));
  return h(
    `a.row.${pass.status}`,
    { id: `p${pass.index}`, href: linkTo(pass) },
    h("span.number.quiet", pass.index),
    h(
      "span",
      h("span.name.cut", { title: pass.name }, pass.name),
      words && h("span.small.quiet.cut", { title: words }, words),
      h("span.together", badges(pass.counts)),
    ),
    barcodeOf(pass.detail, `where ${pass.name} changed the graph`),
    BADGES.map((status, i) =>
      h(
        "span",
        { class: `number one ${pass.counts[i] ? status : "quiet"}` },
        pass.counts[i] ? SIGN[status] + number(pass.counts[i]) : "·",
      )
    ),
    step("peak", bytes),
    step("flops", (v) => flops(v).replace("FLOP", "")),
    columns.longest > 0 && durationCell(pass.ms, columns.longest),
  );
}
function durationCell(ms, longest) {
  const bar = h("i");
  // The policy of the page forbids inline styles in markup, not in the script.
  bar.style.width = `${max(2, ms / longest * 48)}px`;
  return h("span.number.one.duration", time(ms), bar);
}

/** The root causes of a run; a difference of two runs stays from pass to pass and is one cause. */
function rootCauses(run) {
  const same = new Map();
  for (const pass of run.passes) {
    for (const cause of pass.causes) {
      const key = run.kind === "diff" ? cause.title + whereWords(cause) : same.size;
      if (same.has(key)) same.get(key).last = pass;
      else same.set(key, { pass, cause, last: pass });
    }
  }
  const largest = [...same.values()].sort((a, b) => b.cause.nodes - a.cause.nodes).slice(0, 8);
  if (!largest.length) return null;
  return section(
    "Root causes",
    "patterns first, consequences left out",
    h("div.box", largest.map(causeRow)),
  );
}
const causeRow = ({ pass, cause, last }) =>
  h(
    "a.cause",
    { href: linkTo(pass, { tab: "patterns" }) },
    badges(cause.counts),
    h("span", h("b", past(cause.title)), h("br"), h("span.mid", whereWords(cause))),
    h("span.quiet.mono.cut", last === pass ? titleOf(pass) : `#${pass.index} … #${last.index}`),
  );

function lossChart(run) {
  const steps = run.steps.filter(([, loss]) => loss !== null),
    [first, last] = [steps[0], steps[steps.length - 1]];
  if (!first) return h("p", "No step has a finite loss.");
  return lineChart(steps.map(([, loss], i) => [i, loss]), {
    label: `Loss per step, from ${first[1]} to ${last[1]}`,
    unit: (v) => v.toFixed(3),
    left: `step ${first[0]}`,
    right: `step ${last[0]}`,
    marks: [[steps.length - 1, last[1], `loss ${last[1].toFixed(4)}`]],
  });
}
function executed(run) {
  return table(
    ["graph", "steps", "?=fingerprint", "last changed by"],
    run.executed.map((range) => {
      const pass = run.passes.find((p) => p.ref === range.ref);
      return [
        range.graph,
        `${range.first}–${range.last}`,
        range.fingerprint,
        pass ? link(linkTo(pass), titleOf(pass)) : range.ref ? "as traced" : "no recorded graph",
      ];
    }),
    "Each step executed a plan of this graph; the fingerprints are equal.",
  );
}
