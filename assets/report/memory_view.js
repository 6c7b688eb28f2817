import { boxed, lineChart, table, td } from "./overview.js";
import { bytes, delta, plural, shortOp, shortType } from "./format.js";
import { currentRun, hashOf, linkTo, views } from "./route.js";
import { graphChoice, pageHead } from "./views_common.js";
import { h, joined, link, plain } from "./dom.js";
import { loadFacts, momentsOf, report, subjects } from "./store.js";
import { nothing } from "./tables.js";
views.set("memory", {
  label: "Memory",
  shows: () => report.runs.some((run) => run.graphs.some((graph) => graph.last.peak > 0)),
  async render() {
    const run = currentRun(),
      { graph, choice } = graphChoice(run),
      moments = momentsOf(run, graph),
      facts = await loadFacts();
    const [first, last] = [moments[0], moments[moments.length - 1]].map((moment) =>
      moment && { moment, facts: facts[moment.facts] }
    );
    const page = h(
      "div.page",
      pageHead(
        "Memory",
        `bytes alive after each node of ${
          graph || ""
        } in program order, estimated from shapes, rank ${run.rank}`,
      ),
      choice,
    );
    if (!last || !last.facts || !last.facts.live.length) {
      page.append(nothing("No sizes are known in this graph."));
      return page;
    }
    const points = (f) => f.live.map((value, i) => [i / Math.max(1, f.live.length - 1), value]),
      differs = first.facts !== last.facts && first.facts.live.join() !== last.facts.live.join();
    const top = (f, kind) => {
      const at = f.live.indexOf(Math.max(...f.live));
      return [
        at / Math.max(1, f.live.length - 1),
        f.live[at],
        kind ? "" : `peak ${bytes(f.peak)}`,
        kind,
      ];
    };
    const phases = last.facts.phases.map(([phase, end]) => `${phase} to ${Math.round(end * 100)} %`)
      .join(", ");
    page.append(h(
      "div.box.pad",
      lineChart(points(last.facts), {
        label: `Bytes alive over the program; peak ${bytes(last.facts.peak)}`,
        unit: bytes,
        left: "first node",
        right: "last node",
        fill: true,
        at: (
          i,
        ) => [
          `${plain(last.facts.live_at[i] || "")}: ${bytes(last.facts.live[i])}`,
          nodeLink(run, graph, last.facts.live_at[i]),
        ],
        before: differs ? points(first.facts) : null,
        marks: [...(differs ? [top(first.facts, "before")] : []), top(last.facts)],
      }),
      h(
        "p.quiet.small",
        joined([
          phases,
          `inputs and constants ${bytes(last.facts.inputs)}`,
          last.facts.unknown &&
          `${plural(last.facts.unknown, "value")} of unknown size counted as nothing`,
          differs
            ? `dashed: as it came, peak ${
              bytes(first.facts.peak)
            }; line: after the last pass, peak ${bytes(last.facts.peak)}`
            : moments.length > 1 && "the same before and after every pass",
        ], " · "),
      ),
    ));
    if (moments.length > 1) {
      page.append(
        boxed(
          "Peak by pass",
          "",
          table(
            ["pass", "#peak", "#Δ"],
            moments.map((moment, i) => ({
              moment,
              step: i ? moment.peak - moments[i - 1].peak : 0,
              i,
            })).filter(({ step, i }) => step || i === 0 || i === moments.length - 1).map((
              { moment, step },
            ) => [
              moment.pass ? link(linkTo(moment.pass), moment.name) : moment.name,
              bytes(moment.peak),
              td(delta(step, bytes), step < 0 ? "added" : step > 0 ? "removed" : ""),
            ]),
          ),
        ),
      );
    }
    page.append(
      boxed(
        "Largest at the peak",
        moments.length > 1 && "after the last pass",
        table(
          ["=node", "?operator", "?=type", "?module", "?phase", "#bytes"],
          last.facts.holders.map((
            [name, op, type, module, phase, size],
          ) => [
            link(nodeLink(run, graph, name), name),
            shortOp(op),
            shortType(type),
            module || "–",
            phase || "–",
            bytes(size),
          ]),
        ),
      ),
    );
    return page;
  },
});
/** A link to a node in the last scene of its graph. */
function nodeLink(run, graph, name) {
  const subject = subjects.filter((s) => s.run === run && s.graph === graph && s.detail >= 0).pop();
  return subject ? linkTo(subject, { node: name }) : hashOf({ view: "overview" });
}
