// The positions of boxes, lines and folds of a scene with some slabs open, in pixels at zoom 1.
// scene/layout.cc computes rows and columns; here they become pixels, and rows far from every
// difference are folded.

import { routeLines } from "./layout_lines.js";
import { abs, max } from "./math.js";
import {
  FOLD_H,
  GAP_X,
  GAP_Y,
  GUTTER,
  HEAD,
  MARGIN,
  NODE_H,
  NODE_W,
  PAD,
  RAIL,
  ROW_GAP,
  SLAB,
  THIN,
} from "./measures.js";
import { SAME } from "./status.js";

const MIN_WIDTH = 480, MIN_RUN = 3;
const PITCH = NODE_H + GAP_Y, HALF = (NODE_W + GAP_X) / 2;

/**
 * Rows of a block from the top, without those of hidden nodes; a run of them is one fold, but for
 * a single node that was not hidden by hand.
 */
function foldRows(block, hidden, wanted) {
  const lanes = [[], []];
  for (const place of block.places) (lanes[place.backward][place.row] ||= []).push(place);
  const shown = lanes.map((rows) => {
    const out = [];
    let pending = [];
    const flush = () => {
      const members = pending.map((place) => place.node);
      if (members.length === 1 && !wanted(members[0])) {
        out.push([{ node: members[0], members, x: pending[0].x }]);
      } else if (members.length) {
        out.push([{ node: -1, members, x: 0, wanted: members.some(wanted) }]);
      }
      pending = [];
    };
    for (const row of rows.filter(Boolean)) {
      const visible = row.filter((place) => !hidden(place.node));
      if (visible.length) {
        flush();
        out.push(visible.map((place) => ({ node: place.node, members: [place.node], x: place.x })));
      }
      pending.push(...row.filter((place) => hidden(place.node)));
    }
    flush();
    return out;
  });
  // Backward runs up: its first nodes stand at the bottom.
  const height = max(shown[0].length, shown[1].length), boxes = [];
  shown.forEach((rows, backward) =>
    rows.forEach((row, i) =>
      row.forEach((box) =>
        boxes.push({ ...box, backward, row: backward ? height - rows.length + i : i })
      )
    )
  );
  return { boxes, height };
}

export class SceneLayout {
  /**
   * `open`: clusters; `hops`: how far from a difference nodes are shown; `unfolded`: blocks that
   * show all; `hidden`: nodes that are not; `only`: if not null, nodes beside which none is.
   */
  constructor(detail, { open, hops, unfolded, hidden, only }) {
    Object.assign(this, {
      detail,
      open,
      hops,
      unfolded,
      hidden,
      only,
      slabs: [],
      boxes: [],
      groups: [],
      flows: [],
      skips: [],
      edges: [],
      boxOf: new Map(),
      slabOf: new Map(),
      folded: new Map(),
    });
    let pads = 0, reach = 0;
    for (const c of open) {
      let sum = 0;
      for (let p = c; p >= 0; p = detail.clusters[p].parent) sum += this.padOf(p);
      pads = max(pads, sum);
      for (const block of detail.clusters[c].blocks) {
        if (!block.places) continue;
        this.folded.set(block, foldRows(block, ...this.isHidden(block)));
        for (const box of this.folded.get(block).boxes) reach = max(reach, abs(box.x));
      }
    }
    // Lanes are as wide as the widest row needs, the same in all slabs, so that they stand in one
    // line.
    this.lane = NODE_W + 2 * reach * HALF + 2 * MARGIN;
    this.width = max(MIN_WIDTH, detail.twoLanes ? 2 * this.lane + GUTTER : this.lane) +
      2 * pads;
    this.height = this.place(0, 0, 0, this.width, 0);
    routeLines(this);
  }
  padOf(cluster) {
    return cluster === 0 ? 0 : PAD + (this.detail.clusters[cluster].skips ? RAIL : 0);
  }
  /** Tests of a node: whether it is hidden, and whether by hand. */
  isHidden(block) {
    const { status, distance, changes } = this.detail,
      all = this.hops === "all" || changes.length === 0,
      wanted = (node) => this.hidden.has(node) || Boolean(this.only && !this.only.has(node));
    if (this.unfolded.has(block)) return [() => false, wanted];
    return [
      (node) =>
        wanted(node) || !all && !this.only && status[node] === SAME && distance[node] > this.hops,
      wanted,
    ];
  }

  place(cluster, x, y, width, depth) {
    const c = this.detail.clusters[cluster],
      slab = { cluster, x, y, width, depth, open: this.open.has(cluster), differs: c.differs };
    this.slabs.push(slab);
    this.slabOf.set(cluster, slab);
    if (!slab.open) {
      slab.height = c.differs || c.repeats ? SLAB : THIN;
      return slab.height + (c.repeats ? 10 : 0);
    }
    const pad = this.padOf(cluster), left = x + pad, inner = width - 2 * pad, sequence = [];
    let at = y + (cluster === 0 ? 0 : HEAD + 4), previous = null;
    const gap = (lanes) => {
      if (previous) {
        this.flows.push({
          x: left,
          y: at,
          width: inner,
          height: ROW_GAP,
          forward: previous[0] && lanes[0],
          backward: previous[1] && lanes[1],
        });
        at += ROW_GAP;
      }
      previous = lanes;
    };
    for (const block of c.blocks) {
      if (block.clusters) {
        for (const row of c.repeats ? this.runsOf(block.clusters) : this.rowsOf(block.clusters)) {
          gap(this.lanesOf(row));
          const each = (inner - (row.length - 1) * GAP_X) / row.length;
          let tallest = 0;
          if (row.run) tallest = this.placeRun(row, left, at, inner, depth + 1);
          else {row.forEach((child, i) => {
              tallest = max(
                tallest,
                this.place(child, left + i * (each + GAP_X), at, each, depth + 1),
              );
            });}
          for (const child of row) sequence.push({ y: at, height: this.slabOf.get(child).height });
          at += tallest;
        }
      } else {
        gap([block.places.some((p) => !p.backward), block.places.some((p) => p.backward)]);
        const height = this.placeNodes(block, cluster, left, at + 14, inner) + 28;
        sequence.push({ y: at, height });
        at += height;
      }
    }
    this.placeSkips(c, slab, sequence);
    slab.height = at - y + (cluster === 0 ? 0 : PAD);
    return slab.height;
  }
  /**
   * Equal neighbours that are closed are one slab, so that an open one among them stays in sight.
   */
  runsOf(clusters) {
    const rows = [];
    for (const child of clusters) {
      const row = rows[rows.length - 1];
      if (row && !this.open.has(child) && !this.open.has(row[0])) row.push(child);
      else rows.push([child]);
    }
    return rows.flatMap((row) =>
      row.length < MIN_RUN ? row.map((child) => [child]) : [Object.assign(row, { run: true })]
    );
  }
  placeRun(row, x, y, width, depth) {
    const slab = {
      cluster: row[0],
      run: row,
      x,
      y,
      width,
      height: SLAB,
      depth,
      open: false,
      differs: this.detail.clusters[row[0]].differs,
    };
    this.slabs.push(slab);
    for (const child of row) this.slabOf.set(child, slab);
    return SLAB + 10;
  }
  lanesOf(clusters) {
    const d = this.detail, lanes = [false, false];
    if (!d.twoLanes) return [true, false];
    for (const cluster of clusters) {
      const c = d.clusters[cluster];
      c.lanes ||= d.nodesOf(cluster).reduce((seen, i) => {
        seen[d.backward[i]] = true;
        return seen;
      }, [false, false]);
      lanes[0] ||= c.lanes[0];
      lanes[1] ||= c.lanes[1];
    }
    return lanes;
  }
  /** Closed independent neighbours share a row; an open slab has one of its own. */
  rowsOf(clusters) {
    const rows = [], d = this.detail;
    for (const child of clusters) {
      const row = rows[rows.length - 1];
      const joins = row && row.length < 3 && d.clusters[child].joins && !this.open.has(child) &&
        row.every((c) =>
          !this.open.has(c) &&
          (d.clusters[c].differs || d.clusters[c].repeats > 0) ===
            (d.clusters[child].differs || d.clusters[child].repeats > 0)
        );
      if (joins) row.push(child);
      else rows.push([child]);
    }
    return rows;
  }
  placeNodes(block, cluster, x, y, width) {
    const two = this.detail.twoLanes, middle = x + width / 2, laneWidth = this.lane;
    const lane = [
      two ? middle - GUTTER / 2 - laneWidth / 2 : middle,
      middle + GUTTER / 2 + laneWidth / 2,
    ];
    const { boxes, height } = this.folded.get(block);
    // Groups are tested for visibility first: a scene may have thousands of boxes.
    this.groups.push({ x, y: y - 14, width, height: height * PITCH + 14, boxes, edges: [] });
    for (const box of boxes) {
      const tall = box.node >= 0 ? NODE_H : FOLD_H;
      Object.assign(box, {
        block,
        cluster,
        x: lane[box.backward] + box.x * HALF - NODE_W / 2,
        y: y + box.row * PITCH + (NODE_H - tall) / 2,
        width: NODE_W,
        height: tall,
        left: lane[box.backward] - laneWidth / 2,
        right: lane[box.backward] + laneWidth / 2,
        gutter: middle,
      });
      this.boxes.push(box);
      for (const member of box.members) this.boxOf.set(member, box);
    }
    return max(0, height * PITCH - GAP_Y);
  }
  placeSkips(c, slab, sequence) {
    const used = [0, 0];
    for (let k = 0; k < (c.skips || []).length; k += 4) {
      const [from, to, backward, status] = c.skips.slice(k, k + 4),
        a = sequence[from],
        b = sequence[to];
      if (!a || !b || a.y === b.y || used[backward] === 3) continue;
      const track = used[backward]++,
        side = backward ? 1 : -1,
        edge = backward ? slab.x + slab.width - PAD - RAIL : slab.x + PAD + RAIL;
      this.skips.push({
        x: edge,
        rail: edge + side * (7 + 6 * track),
        from: backward ? a.y + 8 : a.y + a.height - 8,
        to: backward ? b.y + b.height - 8 : b.y + 10,
        status,
      });
    }
  }
}
