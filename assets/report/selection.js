// The selected node: in the fragment, on the canvas, in the inspector and in rows.

import { current, selectionChanged } from "./current.js";
import { $$ } from "./dom.js";
import { go, note, state } from "./route.js";
import { str } from "./store.js";

const nameOfNode = (node) => node >= 0 ? str(current.detail.name[node]) : "";

/** Writes the node into the fragment, and marks it in the inspector and in rows. */
export function noteSelection(node) {
  note({ node: nameOfNode(node) });
  selectionChanged();
  const shown = current.detail.find(state.node);
  for (const row of $$("[data-node]")) {
    row.setAttribute("aria-selected", String(Number(row.dataset.node) === shown));
  }
}
/** Selects a node in the tab that is shown; `reveal` centers it in the graph. */
export function selectNode(node, reveal = false) {
  const { graphView } = current;
  if (graphView && node >= 0 && reveal) graphView.reveal(node);
  else if (graphView) {
    graphView.setSelected(node);
    graphView.draw();
  }
  noteSelection(node);
}
/** Follows a link to a node: in the graph, from every tab except table and text. */
export function showNode(node) {
  if (current.graphView) selectNode(node, true);
  else if (["graph", "patterns", "costs"].includes(state.tab)) {
    go({ tab: "graph", node: nameOfNode(node) });
  } else selectNode(node);
}
