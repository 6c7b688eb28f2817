// How a scene is drawn: slabs, flows, edges, stubs, nodes.

/** Draws what GraphView has placed; knows nothing of pointers and keys. */
class ScenePainter {
  paint() {
    const box = prepare(this.canvas);
    if (!box) return;
    const c = box.context;
    c.save();
    c.translate(this.x, this.y);
    c.scale(this.scale, this.scale);
    this.view = {left: -this.x / this.scale, top: -this.y / this.scale, right: (box.width - this.x) / this.scale, bottom: (box.height - this.y) / this.scale};
    const shows = (b) => b.x < this.view.right && b.x + b.width > this.view.left && b.y < this.view.bottom && b.y + (b.height || 0) + 12 > this.view.top;
    for (const slab of this.slabs) if (shows(slab)) this.paintSlab(c, slab);
    if (this.scale >= 0.2) {
      for (const flow of this.flows) if (shows(flow)) this.paintFlow(c, flow);
      this.paintEdges(c, shows);
    }
    for (const node of this.boxes) if (shows(node)) this.paintBox(c, node);
    if (this.scale >= TWO_LINES) for (const [node, stubs] of this.stubs) this.paintStub(c, node, stubs);
    c.restore();
    this.zoomLabel.textContent = `${Math.round(this.scale * 100)}%`;
  }

  /** Text is never smaller than 9 px on screen; far out it keeps the size of a label. */
  font(c, weight, size, family = "sans") {
    const onScreen = this.scale >= TWO_LINES ? Math.max(size * this.scale, 9) : Math.max(9, size * 0.85);
    c.font = `${weight} ${onScreen / this.scale}px ${colors[family]}`;
  }
  static cut(c, text, width) {
    if (c.measureText(text).width <= width) return text;
    let low = 0, high = text.length;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (c.measureText(text.slice(0, middle) + "…").width <= width) low = middle;
      else high = middle - 1;
    }
    return low > 0 ? text.slice(0, low) + "…" : "";
  }

  paintSlab(c, slab) {
    const cluster = this.detail.clusters[slab.cluster];
    if (slab.cluster === 0) return;
    c.lineWidth = 1;
    c.strokeStyle = colors.rule;
    if (slab.open) {
      c.fillStyle = slab.depth % 2 ? colors.well : colors["well-2"];
      round(c, slab.x, slab.y, slab.width, slab.height, 6);
      c.fill();
      c.stroke();
    } else {
      for (let i = cluster.repeats ? 2 : 0; i > 0; i--) {
        c.fillStyle = colors.surface;
        round(c, slab.x + 5 * i, slab.y + 5 * i, slab.width - 10 * i, slab.height, 6);
        c.fill();
        c.stroke();
      }
      c.fillStyle = slab.differs || this.detail.changes.length === 0 ? colors.surface : colors.fold;
      round(c, slab.x, slab.y, slab.width, slab.height, 6);
      c.fill();
      c.stroke();
    }
    if (this.scale < 0.2) return;
    const middle = slab.y + (slab.open ? HEAD / 2 + 2 : slab.differs ? 15 : THIN / 2);
    c.fillStyle = colors["ink-2"];
    c.beginPath();
    const tx = slab.x + 13;
    if (slab.open) { c.moveTo(tx - 4, middle - 2.5); c.lineTo(tx + 4, middle - 2.5); c.lineTo(tx, middle + 3.5); }
    else { c.moveTo(tx - 2.5, middle - 4); c.lineTo(tx - 2.5, middle + 4); c.lineTo(tx + 3.5, middle); }
    c.fill();
    c.textBaseline = "middle";
    const right = this.paintBadges(c, cluster.counts, slab.x + slab.width - 10, middle);
    this.font(c, slab.differs ? 600 : 400, 12);
    c.fillStyle = slab.differs || slab.open ? colors.ink : colors["ink-3"];
    const label = ScenePainter.cut(c, plain(cluster.repeats ? `${cluster.label} ×${cluster.repeats} equal` : cluster.label), right - slab.x - 30);
    c.fillText(label, slab.x + 22, middle);
    const after = slab.x + 22 + c.measureText(label).width + 8;
    this.font(c, 400, 11);
    c.fillStyle = colors["ink-3"];
    const note = plural(cluster.counts[0], "node");
    if (after + c.measureText(note).width < right - 8) c.fillText(note, after, middle);
    if (!slab.open && slab.differs) {
      const nodes = cluster.nodes, status = this.detail.status, backward = this.detail.backward, y = slab.y + 27;
      if (this.detail.two_lanes) {
        const half = (slab.width - 44) / 2;
        drawBarcode(c, slab.x + 12, y, half, 14, nodes.filter((i) => !backward[i]), status);
        drawBarcode(c, slab.x + slab.width - 12 - half, y, half, 14, nodes.filter((i) => backward[i]).reverse(), status);
      } else {
        drawBarcode(c, slab.x + 12, y, slab.width - 24, 14, nodes, status);
      }
    }
  }

  /** Right aligned at `right`; returns where they begin. */
  paintBadges(c, counts, right, y) {
    const [, added, removed, changed, moved, derived] = counts;
    const parts = [["added", added], ["removed", removed], ["changed", changed], ["moved", moved], ["derived", derived]].filter(([, count]) => count).reverse();
    for (const [status, count] of parts) {
      this.font(c, status === "derived" ? 400 : 600, 11);
      const text = SIGN[status] + number(count);
      right -= c.measureText(text).width;
      c.fillStyle = status === "derived" ? colors["ink-3"] : colors[`${status}-text`];
      c.fillText(text, right, y);
      right -= 8;
    }
    return right;
  }

  paintFlow(c, flow) {
    c.strokeStyle = c.fillStyle = colors.edge;
    c.lineWidth = 1.5;
    const arrow = (x, up) => {
      const [from, to] = up ? [flow.y + flow.height - 3, flow.y + 3] : [flow.y + 3, flow.y + flow.height - 3];
      c.beginPath();
      c.moveTo(x, from);
      c.lineTo(x, to + (up ? 6 : -6));
      c.stroke();
      head(c, x, to, up);
    };
    if (this.detail.two_lanes) { arrow(flow.x + flow.width / 4, false); arrow(flow.x + flow.width * 3 / 4, true); }
    else arrow(flow.x + flow.width / 2, false);
  }

  paintEdges(c, shows) {
    const d = this.detail, tracks = new Map();
    this.stubs = [];
    for (const box of this.boxes) {
      if (!shows(box)) continue;
      const stubs = [], drawn = new Set();
      for (const member of box.members) {
        for (const [from, status] of d.inputs[member]) {
          const source = this.boxOf.get(from);
          if (source === box) continue;
          if (source && source.block === box.block) {
            // Several values between a fold and another box are one line.
            const once = source.members.length > 1 || box.members.length > 1;
            if (once && drawn.has(source)) continue;
            drawn.add(source);
            this.paintEdge(c, source, box, status, tracks);
          } else if (box.node >= 0) stubs.push([from, status]);
        }
      }
      if (stubs.length && this.scale >= TWO_LINES) this.stubs.push([box, stubs]);
    }
  }

  /** Orthogonal, leaving in the direction of the lane. Longer than one row: along the lane's edge, past the boxes. */
  paintEdge(c, a, b, status, tracks) {
    const near = [a.node, b.node].some((node) => node >= 0 && (node === this.selected || node === this.hover));
    c.strokeStyle = c.fillStyle = status === ADDED ? colors.added : status === REMOVED ? colors.removed : near ? colors.ink : colors.edge;
    c.lineWidth = status === ADDED ? 2 : status === REMOVED || near ? 1.5 : 1;
    c.setLineDash(status === REMOVED ? [4, 3] : []);
    const out = a.backward ? a.y : a.y + a.height, into = b.backward ? b.y + b.height : b.y;
    const sign = a.backward ? -1 : 1, port = (box, other) => box.x + box.width / 2 + Math.max(-24, Math.min(24, (other.x - box.x) / 12));
    const ax = port(a, b), bx = port(b, a), points = [[ax, out]];
    if (a.backward === b.backward && Math.abs(a.row - b.row) === 1 && (into - out) * sign > 0) {
      // Nearer to the source: the names of stubs stand at the target.
      const middle = out + (into - out) * (ax < bx ? 0.26 : 0.38);
      if (Math.abs(ax - bx) > 1) points.push([ax, middle], [bx, middle]);
    } else {
      const cross = a.backward !== b.backward;
      const key = cross ? a.block : a.block.places, track = tracks.get(key) || 0;
      tracks.set(key, track + 1);
      const offset = 4 + (track % 4) * 4.5;
      const side = cross ? (a.backward ? a.laneLeft - offset : a.laneRight + offset) : a.backward ? a.laneRight - MARGIN + 2 + offset : a.laneLeft + MARGIN - 2 - offset;
      const leave = out + sign * (6 + (track % 4) * 2.5), enter = into - (b.backward ? -1 : 1) * (18 + (track % 4) * 2.5);
      points.push([ax, leave], [side, leave], [side, enter], [bx, enter]);
    }
    points.push([bx, into + (b.backward ? 7 : -7)]);
    polyline(c, points, 5);
    c.setLineDash([]);
    head(c, bx, into, b.backward);
  }

  /** An input from elsewhere: a short arrow with the source's name; changed ones first. */
  paintStub(c, box, stubs) {
    stubs.sort((p, q) => (q[1] !== SAME) - (p[1] !== SAME));
    const [from, status] = stubs[0];
    const up = box.backward, x = box.x + 10, edge = up ? box.y + box.height : box.y;
    c.strokeStyle = c.fillStyle = status === ADDED ? colors.added : status === REMOVED ? colors.removed : colors.edge;
    c.lineWidth = status === ADDED ? 2 : 1;
    c.setLineDash(status === REMOVED ? [3, 2] : []);
    c.beginPath();
    c.moveTo(x, edge + (up ? 11 : -11));
    c.lineTo(x, edge + (up ? 6 : -6));
    c.stroke();
    c.setLineDash([]);
    head(c, x, edge, up);
    this.font(c, 400, 10, "mono");
    c.fillStyle = status === ADDED ? colors["added-text"] : status === REMOVED ? colors["removed-text"] : colors["ink-3"];
    c.textBaseline = "middle";
    const more = stubs.length > 1 ? ` +${stubs.length - 1}` : "";
    c.fillText(ScenePainter.cut(c, this.detail.nodeName(from), box.width - 44 - c.measureText(more).width) + more, x + 7, edge + (up ? 9 : -9));
  }

  paintBox(c, box) {
    if (box.node < 0) {
      c.fillStyle = colors.fold;
      round(c, box.x, box.y, box.width, box.height, 4);
      c.fill();
      if (this.scale < 0.4) return;
      this.font(c, 400, 11);
      c.fillStyle = colors["ink-3"];
      c.textAlign = "center";
      c.textBaseline = "middle";
      c.fillText(ScenePainter.cut(c, `… ${number(box.members.length)} unchanged nodes`, box.width - 12), box.x + box.width / 2, box.y + box.height / 2);
      c.textAlign = "left";
      return;
    }
    const d = this.detail, node = box.node, status = STATUS[d.status[node]];
    const {x, y, width, height} = box;
    if (node === this.selected) {
      c.strokeStyle = colors.halo;
      c.lineWidth = 6;
      round(c, x - 4, y - 4, width + 8, height + 8, 7);
      c.stroke();
      c.strokeStyle = colors.ink;
      c.lineWidth = 2;
      round(c, x - 1.5, y - 1.5, width + 3, height + 3, 5);
      c.stroke();
    } else if (node === this.hover) {
      c.strokeStyle = colors["ink-2"];
      c.lineWidth = 1;
      round(c, x - 2, y - 2, width + 4, height + 4, 5);
      c.stroke();
    }
    round(c, x, y, width, height, 4);
    c.fillStyle = colors[`${status}-fill`] || colors.surface;
    c.fill();
    if (status === "removed" && this.scale >= 0.2) hatch(c, x, y, width, height);
    c.strokeStyle = status === "same" || status === "derived" ? colors.edge : colors[status];
    c.lineWidth = status === "added" ? 2 : status === "same" || status === "derived" ? 1 : 1.5;
    c.setLineDash(this.scale < 0.4 ? [] : status === "removed" ? [5, 3] : status === "moved" ? [1.5, 2.5] : []);
    round(c, x, y, width, height, 4);
    c.stroke();
    c.setLineDash([]);
    if ((status === "changed" || status === "derived") && this.scale >= 0.2) {
      c.lineWidth = 1;
      round(c, x + 3, y + 3, width - 6, height - 6, 3);
      c.stroke();
    }
    if (this.scale < 0.4) return;
    let left = x + 10;
    if (status !== "same" && this.scale >= TWO_LINES) {
      sign(c, x + 8, y + 6, status);
      left = x + 26;
    }
    const compute = !/^(view|_unsafe_view|reshape|t|transpose|permute|detach|alias|expand|slice|select|squeeze|unsqueeze|getitem|input|output|split|as_strided)\b/.test(shortOp(d.opOf(node)));
    c.textBaseline = "middle";
    const two = this.scale >= TWO_LINES;
    this.font(c, status !== "same" || compute ? 600 : 400, 12);
    c.fillStyle = status === "removed" ? colors["ink-2"] : colors.ink;
    const label = ScenePainter.cut(c, d.opLabel(node), x + width - 8 - left);
    c.fillText(label, left, two ? y + 13 : y + height / 2);
    if (!two) return;
    const end = left + c.measureText(label).width + 8;
    this.font(c, 400, 10, "mono");
    c.fillStyle = colors["ink-3"];
    const name = d.nodeName(node), nameWidth = c.measureText(name).width;
    // Dropped, not shortened, where there is no room.
    if (x + width - 8 - nameWidth >= end) c.fillText(name, x + width - 8 - nameWidth, y + 13);
    this.font(c, 400, 10.5, "mono");
    c.fillStyle = colors["ink-2"];
    c.fillText(ScenePainter.cut(c, shortType(d.typeOf(node)) || "–", width - 20), x + 10, y + 27.5);
  }
}

function round(c, x, y, width, height, radius) {
  c.beginPath();
  c.roundRect(x, y, Math.max(0, width), Math.max(0, height), Math.min(radius, width / 2, height / 2));
}
function polyline(c, points, radius) {
  c.beginPath();
  c.moveTo(...points[0]);
  for (let i = 1; i + 1 < points.length; i++) c.arcTo(...points[i], ...points[i + 1], Math.min(radius, Math.abs(points[i][0] - points[i - 1][0]) / 2 + Math.abs(points[i][1] - points[i - 1][1]) / 2, Math.abs(points[i + 1][0] - points[i][0]) / 2 + Math.abs(points[i + 1][1] - points[i][1]) / 2));
  c.lineTo(...points[points.length - 1]);
  c.stroke();
}
function head(c, x, y, up) {
  const s = up ? 1 : -1;
  c.beginPath();
  c.moveTo(x, y);
  c.lineTo(x - 3, y + 7 * s);
  c.lineTo(x + 3, y + 7 * s);
  c.fill();
}
function hatch(c, x, y, width, height) {
  c.save();
  round(c, x, y, width, height, 4);
  c.clip();
  c.strokeStyle = colors.removed;
  c.globalAlpha = 0.25;
  c.lineWidth = 1;
  c.beginPath();
  for (let at = -height; at < width; at += 6) { c.moveTo(x + at, y + height); c.lineTo(x + at + height, y); }
  c.stroke();
  c.restore();
}
/** The badge of a node: strokes, not glyphs, so that a small ~ never reads as a minus. */
function sign(c, x, y, status) {
  const derived = status === "derived";
  round(c, x, y, 13, 13, 3);
  if (derived) { c.strokeStyle = colors["ink-3"]; c.lineWidth = 1; c.stroke(); }
  else { c.fillStyle = colors[`${status}-text`]; c.fill(); }
  c.strokeStyle = derived ? colors["ink-3"] : colors.surface;
  c.lineWidth = 1.6;
  c.beginPath();
  const mx = x + 6.5, my = y + 6.5;
  if (status === "added") { c.moveTo(mx - 3.5, my); c.lineTo(mx + 3.5, my); c.moveTo(mx, my - 3.5); c.lineTo(mx, my + 3.5); }
  else if (status === "removed") { c.moveTo(mx - 3.5, my); c.lineTo(mx + 3.5, my); }
  else if (status === "moved") { c.arc(mx, my + 1.5, 3, Math.PI, 0); c.moveTo(mx + 1, my - 0.5); c.lineTo(mx + 3, my + 2); c.lineTo(mx + 5, my - 0.5); }
  else { c.moveTo(mx - 4, my + 1); c.quadraticCurveTo(mx - 2, my - 4, mx, my); c.quadraticCurveTo(mx + 2, my + 4, mx + 4, my - 1); }
  c.stroke();
}
