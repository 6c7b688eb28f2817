// The lines between boxes of a scene that is laid out.

import { abs, max, min } from "./math.js";
import { MARGIN, NODE_H } from "./measures.js";
import { SAME } from "./status.js";

const MAX_SPAN = 7, SIDE_TRACKS = 4;
const GUTTER_TRACKS = [0, -7, 7, -14, 14];

export function routeLines(scene) {
  const tracks = new Map();
  for (const group of scene.groups) {
    for (const box of group.boxes) {
      const edges = edgesInto(scene, box);
      edges.forEach((edge, k) => {
        edge.port = box.x + box.width / 2 +
          (k - (edges.length - 1) / 2) * min(24, (box.width - 40) / edges.length);
        edge.points = pointsOf(edge, group.boxes, tracks);
        if (edge.points) {
          scene.edges.push(edge);
          edge.a.feeds = true;
          group.edges.push(edge);
          box.firstPort = min(box.firstPort ?? Infinity, edge.port);
        } else addStub(box, edge.from, edge.status);
      });
      if (box.stubs) box.stubs.sort((p, q) => (q[1] !== SAME) - (p[1] !== SAME));
    }
  }
}
/** An input that is shown by name; folds show none. */
function addStub(box, ...stub) {
  if (box.node >= 0) (box.stubs ||= []).push(stub);
}
/** The edges that end at a box, in the order of their ends; other inputs become stubs. */
function edgesInto({ detail, boxOf }, box) {
  const edges = [], seen = new Set();
  for (const member of box.members) {
    for (const [from, status] of detail.inputs(member)) {
      const source = boxOf.get(from);
      if (source === box) continue;
      // A line over many rows cannot be followed.
      if (
        !source || source.block !== box.block ||
        abs(source.row - box.row) > MAX_SPAN && box.node >= 0
      ) {
        addStub(box, from, status);
        continue;
      }
      // Several values between two boxes are one line, unless their statuses differ.
      if (seen.has(source) && status === SAME) continue;
      seen.add(source);
      edges.push({ a: source, b: box, from, status, cross: source.backward !== box.backward });
    }
  }
  return edges.sort((p, q) => q.cross - p.cross || p.a.x - q.a.x);
}
/**
 * Orthogonal: straight down where the way is free, else beside the boxes; between lanes through
 * the gutter. Null: no track is free.
 */
function pointsOf({ a, b, port, cross }, boxes, tracks) {
  const down = b.backward ? -1 : 1,
    end = b.backward ? b.y + b.height : b.y,
    last = end - down * 5;
  if (cross) {
    const track = freeTrack(tracks, a.block, "gutter", min(a.y, b.y), max(a.y, b.y)),
      x = a.gutter + GUTTER_TRACKS[track],
      turn = end - down * 17;
    if (track >= GUTTER_TRACKS.length) return null;
    const blocked = boxes.some((o) =>
      o !== a && o.y < a.y + a.height && o.y + o.height > a.y &&
      (x > a.x ? o.x > a.x && o.x < x : o.x < a.x && o.x + o.width > x)
    );
    if (!blocked) {
      return [
        [x > a.x ? a.x + a.width : a.x, a.y + a.height / 2],
        [x, a.y + a.height / 2],
        [x, turn],
        [port, turn],
        [port, last],
      ];
    }
    const out = a.backward ? a.y : a.y + a.height, step = out + (a.backward ? -1 : 1) * 12;
    return [[a.x + a.width / 2 + 24, out], [a.x + a.width / 2 + 24, step], [x, step], [x, turn], [
      port,
      turn,
    ], [port, last]];
  }
  const start = a.backward ? a.y : a.y + a.height,
    x = a.x + a.width / 2,
    near = start + down * 9,
    far = end - down * 20;
  if ((end - start) * down > 0) {
    if (abs(x - port) < 1 && isFree(boxes, x, start, end, a, b)) {
      return [[x, start], [port, last]];
    }
    if (isFree(boxes, port, near, end, a, b)) {
      return [[x, start], [x, near], [port, near], [port, last]];
    }
    if (isFree(boxes, x, start, far, a, b)) {
      return [[x, start], [x, far], [port, far], [port, last]];
    }
  }
  const track = freeTrack(
      tracks,
      a.block,
      a.backward,
      min(start, end),
      max(start, end),
    ),
    offset = 4 + track * 4.5;
  if (track >= SIDE_TRACKS) return null;
  const side = a.backward ? a.right - MARGIN + offset : a.left + MARGIN - offset;
  return [[x, start], [x, near], [side, near], [side, far], [port, far], [port, last]];
}
function isFree(boxes, x, from, to, a, b) {
  const [top, bottom] = from < to ? [from, to] : [to, from];
  return !boxes.some((o) =>
    o !== a && o !== b && x > o.x - 4 && x < o.x + o.width + 4 && bottom > o.y - 2 &&
    top < o.y + o.height + 2
  );
}
/** The first track on which nothing runs between these heights. */
function freeTrack(tracks, block, lane, top, bottom) {
  if (!tracks.has(block)) tracks.set(block, {});
  const of = tracks.get(block)[lane] ||= [];
  let track = of.findIndex((spans) => spans.every(([t, b]) => bottom < t || top > b));
  if (track < 0) {
    track = of.length;
    of.push([]);
  }
  of[track].push([top, bottom]);
  return track;
}
