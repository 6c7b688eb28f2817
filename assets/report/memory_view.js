// Bytes alive over the program, the peak after each pass, and the largest values at the peak.

import { $, h, joined, link, plain } from "./dom.js";
import { boxed, nothing, pageHead, table, td } from "./elements.js";
import { bytes, delta, plural, shortOp, shortType } from "./format.js";
import { lineChart } from "./line_chart.js";
import { max, round } from "./math.js";
import { currentRun, hashOf, linkTo, views } from "./route.js";
import { loadFacts, report, snapshotsOf, subjects } from "./store.js";
import { graphChoice } from "./views_common.js";

views.set("memory", {
  label: "Memory",
  shows: () => report.runs.some((run) => run.graphs.some((graph) => graph.last.peak > 0)),
  async render() {
    const run = currentRun(),
      { graph, choice } = graphChoice(run),
      snapshots = snapshotsOf(run, graph),
      facts = await loadFacts();
    const factsOf = (snapshot) => snapshot && facts[snapshot.facts],
      first = factsOf(snapshots[0]),
      last = factsOf(snapshots.at(-1));
    const words = `bytes alive after each node of ${
      graph || ""
    } in program order, estimated from shapes, ${run.ranks}`;
    const head = [pageHead("Memory", words), choice];
    const linkOf = (name) => nodeLink(run, graph, name), several = snapshots.length > 1;
    return h(
      "div.page",
      head,
      !last?.live.length ? nothing("No sizes are known in this graph.") : [
        chartOf(first, last, linkOf, several),
        several && peakTable(snapshots),
        holderTable(last, linkOf, several),
      ],
      $("#front")?.content.cloneNode(true),
    );
  },
});

/** Bytes alive before the first pass and after the last one. */
function chartOf(first, last, linkOf, several) {
  const differs = first !== last && first.live.join() !== last.live.join(),
    share = (facts, i) => i / max(1, facts.live.length - 1),
    points = (facts) => facts.live.map((value, i) => [share(facts, i), value]);
  const top = (facts, words, kind) => {
    const at = facts.live.indexOf(max(...facts.live));
    return [share(facts, at), facts.live[at], words, kind];
  };
  const peak = `peak ${bytes(last.peak)}`,
    lastMark = top(last, peak),
    marks = differs ? [top(first, "", "before"), lastMark] : [lastMark];
  const chart = lineChart(points(last), {
    label: `Bytes alive over the program; ${peak}`,
    unit: bytes,
    left: "first node",
    right: "last node",
    fill: true,
    at(i) {
      const name = last.live_at[i];
      return [`${plain(name || "")}: ${bytes(last.live[i])}`, linkOf(name)];
    },
    before: differs && points(first),
    marks,
  });
  const phases = last.phases.map(([phase, end]) => `${phase} to ${round(end * 100)} %`),
    unknown = `${plural(last.unknown, "value")} of unknown size counted as nothing`,
    sides = differs
      ? `dashed: before the first pass, peak ${
        bytes(first.peak)
      }; line: after the last pass, ${peak}`
      : several && "the same before and after every pass";
  const words = [
    phases.join(", "),
    `inputs and constants ${bytes(last.inputs)}`,
    last.unknown && unknown,
    sides,
  ];
  return h("div.box.pad", chart, h("p.quiet.small", joined(words, " · ")));
}
/** The first and the last snapshot, and those between with another peak. */
function peakTable(snapshots) {
  const rows = snapshots.flatMap((snapshot, i) => {
    const step = i ? snapshot.peak - snapshots[i - 1].peak : 0;
    if (!step && i > 0 && i < snapshots.length - 1) return [];
    return [[
      snapshot.pass ? link(linkTo(snapshot.pass), snapshot.name) : snapshot.name,
      bytes(snapshot.peak),
      td(delta(step, bytes), step < 0 ? "added" : step > 0 ? "removed" : ""),
    ]];
  });
  return boxed("Peak by pass", "", table(["pass", "#peak", "#Δ"], rows));
}
function holderTable(facts, linkOf, several) {
  const rows = facts.holders.map(([name, op, type, module, phase, size]) => [
    link(linkOf(name), name),
    shortOp(op),
    shortType(type),
    module || "–",
    phase || "–",
    bytes(size),
  ]);
  return boxed(
    "Largest at the peak",
    several && "after the last pass",
    table(["=node", "?operator", "?=type", "?module", "?phase", "#bytes"], rows),
  );
}
/** A link to a node in the last scene of its graph. */
function nodeLink(run, graph, name) {
  const subject = subjects.filter((s) => s.run === run && s.graph === graph && s.detail >= 0).pop();
  return subject ? linkTo(subject, { node: name }) : hashOf({ view: "overview" });
}
