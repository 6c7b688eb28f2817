// Pages beside the overview and the passes: ranks, memory, operators.

import { dotted, h } from "./dom.js";
import { go, state } from "./route.js";
import { graphsOf } from "./store.js";

export const pageHead = (title, words) =>
  h("div.hero", h("h1", title), h("span.quiet.small", dotted(words)));
/** Chooses the graph that a page speaks of. */
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
