// Pages beside the overview and the passes: ranks, memory, operators.

import { h } from "./dom.js";
import { go, state } from "./route.js";
import { graphsOf } from "./store.js";

/** The graph that a page shows, and the element to choose it. */
export function graphChoice(run) {
  const graphs = graphsOf(run);
  if (!graphs.includes(state.graph)) state.graph = "";
  const graph = state.graph || graphs[0],
    choice = graphs.length > 1
      ? h(
        "div.choices",
        h("select", {
          label: "Graph",
          change: (event) => go({ graph: event.target.value }),
        }, graphs.map((name) => h("option", { value: name, selected: name === graph }, name))),
      )
      : "";
  return { graph, choice };
}
