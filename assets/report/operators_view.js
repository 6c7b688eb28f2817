// How often a graph calls each operator, before the first pass and after the last one.

import { h, svg } from "./dom.js";
import { nothing, pageHead, table, td } from "./elements.js";
import { delta, matcher, number, plural } from "./format.js";
import { abs, max, min } from "./math.js";
import { currentRun, state, views } from "./route.js";
import { loadFacts, report, snapshotsOf } from "./store.js";
import { graphChoice } from "./views_common.js";

views.set("operators", {
  label: "Operators",
  shows: () => report.runs.some((run) => run.graphs.length > 0),
  async render() {
    const run = currentRun(),
      { graph, choice } = graphChoice(run),
      snapshots = snapshotsOf(run, graph),
      rows = operatorCounts(snapshots, await loadFacts());
    const words = `${plural(rows.length, "operator")} of ${graph || ""}${
      snapshots.length > 1 ? ", before the first pass and after the last pass" : ""
    }`;
    return h("div.page", pageHead("Operators", words), choice, operatorTable(rows));
  },
});

/** [operator, calls before, calls after] of those that match the search, most calls first. */
function operatorCounts(snapshots, facts) {
  const countsAt = (snapshot) =>
    new Map(snapshot && facts[snapshot.facts] ? facts[snapshot.facts].ops : []);
  const before = countsAt(snapshots[0]), after = countsAt(snapshots.at(-1));
  const names = [...new Set([...before.keys(), ...after.keys()])].filter(matcher(state.filter)),
    rows = names.map((op) => [op, before.get(op) || 0, after.get(op) || 0]),
    most = ([, old, now]) => max(old, now);
  return rows.sort((a, b) => most(b) - most(a) || (a[0] < b[0] ? -1 : 1));
}
function operatorTable(rows) {
  if (!rows.length) {
    return nothing(
      state.filter ? `Nothing matches “${state.filter}”.` : "This graph calls no operator.",
    );
  }
  const most = max(...rows.map(([, before, after]) => max(before, after)));
  const cells = rows.slice(0, 400).map(([op, before, after]) => {
    const kind = after < before ? "removed" : after > before ? "added" : "quiet";
    return [
      op,
      number(before),
      number(after),
      td(delta(after - before, number), kind),
      td(callBar(before / most, after / most), "wide"),
    ];
  });
  return h("div.box.pad", table(["=~operator", "#before", "#after", "#Δ", "?calls"], cells));
}
/** The calls of both sides in grey, and the difference in its colour. */
function callBar(before, after) {
  const percent = (share) => `${(share * 100).toFixed(1)}%`, common = min(before, after);
  const both = { x: 0, y: 2, width: percent(common), height: 8, fill: "var(--tick-2)" },
    difference = {
      x: percent(common),
      y: 2.5,
      width: percent(abs(after - before)),
      height: 7,
      class: after < before ? "less" : "more",
    };
  return svg(
    "svg",
    { class: "bar", "aria-hidden": "true" },
    svg("rect", both),
    before !== after && svg("rect", difference),
  );
}
