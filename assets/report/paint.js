// How a scene is drawn, from the back to the front.

import { Brush } from "./brush.js";
import {
  edgeBounds,
  paintEdge,
  paintRelations,
  paintStubs,
  paintValueLabel,
} from "./paint_edges.js";
import { paintBox, paintMark } from "./paint_nodes.js";
import { paintFlow, paintSkip, paintSlab, skipBounds } from "./paint_slabs.js";

/** Draws what `shows`, a test of a rectangle, accepts; `look` as Brush takes it. */
export function paintScene(c, layout, look, shows) {
  const brush = new Brush(c, layout, look),
    slabs = layout.slabs.filter(shows),
    groups = layout.groups.filter(shows),
    boxes = groups.flatMap((group) => group.boxes.filter(shows));
  for (const slab of slabs) if (slab.open) paintSlab(brush, slab);
  if (brush.lines) paintLines(brush, groups, shows);
  for (const slab of slabs) if (!slab.open) paintSlab(brush, slab);
  for (const box of boxes) {
    if (brush.lines) paintBox(brush, box);
    else paintMark(brush, box);
  }
  if (brush.two) {
    for (const box of boxes) {
      if (box.stubs) paintStubs(brush, box);
      if (brush.valueLabels && box.feeds && box.node >= 0) paintValueLabel(brush, box);
    }
  }
  if (brush.lines && brush.selected >= 0) paintRelations(brush);
}
function paintLines(brush, groups, shows) {
  const { flows, skips } = brush.layout;
  for (const flow of flows) if (shows(flow)) paintFlow(brush, flow);
  for (const skip of skips) if (shows(skipBounds(skip))) paintSkip(brush, skip);
  for (const { edges } of groups) {
    for (const edge of edges) if (shows(edgeBounds(edge))) paintEdge(brush, edge);
  }
}
