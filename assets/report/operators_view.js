import { currentRun, state, views } from "./route.js";
import { delta, matcher, number, plural } from "./format.js";
import { graphChoice, pageHead } from "./views_common.js";
import { h, svg } from "./dom.js";
import { loadFacts, momentsOf, report } from "./store.js";
import { nothing } from "./tables.js";
import { table, td } from "./overview.js";
views.set("operators", {
  label: "Operators",
  shows: () => report.runs.some((run) => run.graphs.length > 0),
  async render() {
    const run = currentRun(),
      { graph, choice } = graphChoice(run),
      moments = momentsOf(run, graph),
      facts = await loadFacts(),
      fits = matcher(state.filter);
    const page = h("div.page"),
      [first, last] = [moments[0], moments[moments.length - 1]].map((moment) =>
        new Map(moment && facts[moment.facts] ? facts[moment.facts].ops : [])
      );
    const list = [...new Set([...first.keys(), ...last.keys()])].filter(fits).map((
      op,
    ) => [op, first.get(op) || 0, last.get(op) || 0]).sort((a, b) =>
      Math.max(b[1], b[2]) - Math.max(a[1], a[2]) || (a[0] < b[0] ? -1 : 1)
    );
    page.append(
      pageHead(
        "Operators",
        `${plural(list.length, "operator")} of ${graph || ""}${
          moments.length > 1 ? ", as it came and after the last pass" : ""
        }`,
      ),
      choice,
    );
    if (!list.length) {
      page.append(
        nothing(
          state.filter ? `Nothing matches “${state.filter}”.` : "This graph calls no operator.",
        ),
      );
      return page;
    }
    const most = Math.max(...list.map(([, before, after]) => Math.max(before, after)));
    const bar = (before, after) => {
      const share = (count) => `${(count / most * 100).toFixed(1)}%`,
        step = after - before,
        box = svg(
          "svg",
          { class: "bar", "aria-hidden": "true" },
          svg("rect", {
            x: 0,
            y: 2,
            width: share(Math.min(before, after)),
            height: 8,
            fill: "var(--tick-2)",
          }),
        );
      if (step) {
        box.append(
          svg("rect", {
            x: share(Math.min(before, after)),
            y: 2.5,
            width: share(Math.abs(step)),
            height: 7,
            class: step < 0 ? "less" : "more",
          }),
        );
      }
      return box;
    };
    page.append(
      h(
        "div.box.pad",
        table(
          ["=~operator", "#before", "#after", "#Δ", "?calls"],
          list.slice(0, 400).map((
            [op, before, after],
          ) => [
            op,
            number(before),
            number(after),
            td(
              delta(after - before, number),
              after < before ? "removed" : after > before ? "added" : "quiet",
            ),
            td(bar(before, after), "wide"),
          ]),
        ),
      ),
    );
    return page;
  },
});
