// What keys and commands do to a drawn graph; most return a message.

import { plain } from "./dom.js";
import { around, plural } from "./format.js";
import { grow, nextBox, shortestWay } from "./graph_search.js";
import { max, min } from "./math.js";
import { openAround } from "./open_slabs.js";
import { makeOverlay, overlaysOf } from "./overlay.js";
import { EDGE_LABELS, note, state } from "./route.js";

/** Every slab, or none. */
export function openAll(view, open) {
  view.open = new Set(open ? view.detail.clusters.keys() : [0]);
  view.refresh();
}
/** The slab that keys act on: the last one opened or closed, or the one around the selection. */
function slabOfKeys(view) {
  return view.cursor >= 0
    ? view.cursor
    : view.selected >= 0
    ? view.detail.cluster[view.selected]
    : -1;
}
export function toggleHere(view, below) {
  if (slabOfKeys(view) > 0) view.toggle(slabOfKeys(view), below);
}
/**
 * Inward: opens the current slab, or goes to its first slab or node. Outward: closes it, or the
 * slab around it. Returns a message.
 */
export function step(view, inward) {
  const { clusters } = view.detail, { slabs, boxes } = view.scene;
  let c = slabOfKeys(view);
  if (inward && c < 0) {
    const closed = slabs.find((slab) => !slab.open && slab.differs) ||
      slabs.find((slab) => !slab.open);
    if (!closed) return "Every slab is open";
    c = closed.cluster;
  } else if (inward && view.open.has(c)) {
    const [child] = clusters[c].children, box = boxes.find((b) => b.cluster === c && b.node >= 0);
    if (child === undefined && box) {
      view.select(box.node);
      view.center(box.node);
      return view.detail.nodeName(box.node);
    }
    c = child ?? c;
  } else if (!inward) {
    if (c < 0) c = [...slabs].reverse().find((slab) => slab.open).cluster;
    while (c > 0 && !view.open.has(c)) c = clusters[c].parent;
    if (c <= 0) return "Every slab around is closed";
  }
  if (view.open.has(c) !== inward) view.toggle(c);
  view.cursor = c;
  view.draw();
  return plain(clusters[c].path);
}
/** To the nearest node in a direction of the screen; false for other keys than arrows. */
export function walk(view, key) {
  const way = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] }[key];
  if (!way) return false;
  const { boxes, boxOf } = view.scene,
    from = boxOf.get(view.selected),
    best = from ? nextBox(boxes, from, way) : boxes.find((box) => box.node >= 0);
  if (best) {
    view.select(best.node);
    view.center(best.node);
  }
  return true;
}
export function undo(view, again) {
  const [from, to] = again ? [view.undone, view.done] : [view.done, view.undone],
    shape = from.pop();
  if (!shape) return again ? "Nothing to redo" : "Nothing to undo";
  to.push(view.shape);
  Object.assign(view, shape);
  view.layout();
  view.on.changed();
  view.draw();
  return again ? "Done again" : "Undone";
}
export function hide(view) {
  if (view.selected < 0) return "Select a node first";
  view.hidden.add(view.selected);
  view.refresh();
  return `${plural(view.hidden.size, "node")} hidden, X shows all`;
}
export function showAll(view) {
  view.hidden.clear();
  view.only = null;
  view.refresh();
  return "All is shown";
}
/** Shows only the selection and its neighbours; each further call adds a step. */
export function isolate(view) {
  if (view.selected < 0) return "Select a node first";
  if (!view.only || view.isolated !== view.selected) {
    Object.assign(view, { only: new Set([view.selected]), isolated: view.selected, reach: 0 });
  }
  view.only = grow(view.detail, view.only, ["inputs", "outputs"]);
  view.open = new Set([0]);
  openAround(view.open, view.detail, view.only);
  view.refresh();
  return `${plural(view.only.size, "node")} within ${plural(++view.reach, "step")}, Esc shows all`;
}
/**
 * Lights what flows into or out of the selection, a step further with each call; dims the rest.
 */
export function light(view, directions) {
  if (view.selected < 0) return "Select a node first";
  if (!view.lit || view.litBy !== directions[0]) {
    Object.assign(view, { lit: new Set([view.selected]), litBy: directions[0] });
  }
  view.lit = grow(view.detail, view.lit, directions);
  view.draw();
  return `${plural(view.lit.size, "node")} lit`;
}
/** Lights a shortest way between the last two selected nodes, in either direction of the flow. */
export function lightWay(view) {
  const [from, to] = [view.last, view.selected];
  if (from < 0 || to < 0) return "Select two nodes, one after the other";
  const there = shortestWay(view.detail, from, to),
    way = there.length ? there : shortestWay(view.detail, to, from);
  if (!way.length) return "No value flows between the two nodes";
  openAround(view.open, view.detail, way);
  view.lit = new Set(way);
  view.relayout((scene) => scene.boxOf.get(to));
  return `A way over ${plural(way.length, "node")}`;
}
/** Ends highlighting or isolation; false without either. */
export function endLight(view) {
  if (view.lit) {
    view.lit = null;
    view.draw();
    return true;
  }
  if (view.only) {
    showAll(view);
    return true;
  }
  return false;
}
/** Fits the selection, or the lit nodes; without both, everything. */
export function fitSelection(view) {
  const boxes = [...view.lit || [view.selected]].map((node) => view.scene.boxOf.get(node)).filter(
      Boolean,
    ),
    ends = (
      key,
      size,
    ) => [min(...boxes.map((b) => b[key])), max(...boxes.map((b) => b[key] + b[size]))],
    [[left, right], [top, bottom]] = [ends("x", "width"), ends("y", "height")];
  if (boxes.length) view.fit(left, top, right, bottom);
  else view.fitAll();
}
export function toggleSync(view) {
  if (view.panes.length < 2) return "Side by side only";
  view.sync = !view.sync;
  for (const pane of view.panes) pane.cam = view.sync ? view.cam : view.cam.copy();
  view.cam = view.panes[0].cam;
  view.draw();
  return view.sync ? "Both sides move together" : "Each side moves alone";
}
export function nextLabels(view) {
  const known = overlaysOf(view.detail),
    list = EDGE_LABELS.filter((key, i) => i < 4 || known.includes(key)),
    labels = list[around(list, list.indexOf(state.labels), 1)];
  note({ labels });
  view.valueLabels = makeOverlay(view.detail, labels);
  view.draw();
  return labels ? `On the lines: ${labels}` : "Nothing on the lines";
}
