// Equal changes at several places, and relations between nodes.

import { prepare } from "./barcode.js";
import { onRedraw } from "./current.js";
import { dotted, h } from "./dom.js";
import { andMore, nothing } from "./elements.js";
import { past, plural } from "./format.js";
import { ceil, floor, min } from "./math.js";
import { showNode } from "./selection.js";
import { badges, countsOf, RELATIONS } from "./status.js";
import { colors } from "./theme.js";
import { whereWords } from "./words.js";

export function patternsTab(panel, detail) {
  const placesOf = (index) => detail.hunks.filter((hunk) => hunk.pattern === index),
    repeated = (hunk) => detail.patterns[hunk.pattern] !== undefined,
    single = detail.hunks.filter((hunk) => !repeated(hunk));
  const parts = [
    ...detail.patterns.map((pattern, index) => patternPart(detail, pattern, placesOf(index))),
    single.length && singleChanges(detail, single),
    detail.relations.length && relationPart(detail),
  ].filter(Boolean);
  panel.append(
    h(
      "div.sheet",
      parts.length
        ? parts
        : nothing("No change repeats, and no node was replaced, copied or merged."),
    ),
  );
}
const patternPart = (detail, pattern, places) =>
  h(
    "section.pattern",
    h(
      "h2",
      past(pattern.title),
      " ",
      badges(countsOf(detail, places.flatMap((hunk) => hunk.nodes))),
    ),
    h(
      "p.mid",
      whereWords({ where: pattern.where, places: places.length, except: pattern.deviations }),
    ),
    pattern.deviations.length > 0 &&
      h("div.multiples", pattern.deviations.map((deviation) => deviating(detail, deviation))),
    multiples(detail, places),
  );
function singleChanges(detail, hunks) {
  const row = (hunk) =>
    h(
      "button.cause",
      { click: () => showNode(hunk.nodes[0]) },
      badges(countsOf(detail, hunk.nodes)),
      h(
        "span",
        h("b", past(hunk.title)),
        h("br"),
        h("span.mid", hunk.where || "without module"),
      ),
    );
  const largestFirst = hunks.sort((a, b) => b.nodes.length - a.nodes.length);
  return h(
    "section.pattern",
    h("h2", `${plural(hunks.length, "change")} at one place`),
    h("div", largestFirst.slice(0, 100).map(row)),
    andMore(hunks, 100, "more in the table"),
  );
}
const relationPart = (detail) =>
  h(
    "section.pattern",
    h("h2", plural(detail.relations.length, "relation")),
    h("p.mid", "Nodes that are not the same, but belong together."),
    relations(detail, detail.relations.slice(0, 200)),
    andMore(detail.relations, 200),
  );
/** Small pictures of equal changes, one per place; a click goes there. */
function multiples(detail, places) {
  const box = h("div.multiples");
  for (const hunk of places.slice(0, 48)) {
    // As high as its marks, seven in a row while all have room.
    const canvas = h("canvas", { "aria-hidden": "true" }),
      few = ceil(hunk.nodes.length / 7) <= 4;
    canvas.style.height = few ? `${ceil(hunk.nodes.length / 7) * 17 + 9}px` : "76px";
    const draw = () => {
      const area = prepare(canvas);
      if (!area) return;
      const c = area.context,
        columns = few ? 7 : ceil(Math.sqrt(hunk.nodes.length * 1.6)),
        rows = ceil(hunk.nodes.length / columns),
        size = min(14, (area.width - 12) / columns - 3, (area.height - 12) / rows - 3);
      hunk.nodes.slice(0, 400).forEach((node, i) => {
        const status = detail.statusOf(node),
          x = 6 + (i % columns) * (size + 3),
          y = 6 + floor(i / columns) * (size + 3);
        c.fillStyle = colors[`${status}-fill`] || colors.surface;
        c.strokeStyle = colors[status] || colors.edge;
        c.lineWidth = status === "added" ? 2 : 1.5;
        c.setLineDash(status === "removed" ? [3, 2] : status === "moved" ? [1.5, 1.5] : []);
        c.fillRect(x, y, size, size);
        c.strokeRect(x, y, size, size);
        if (status === "changed" && size > 7) c.strokeRect(x + 2.5, y + 2.5, size - 5, size - 5);
      });
    };
    onRedraw(draw);
    box.append(
      h(
        "button",
        { title: `Show ${hunk.where}`, click: () => showNode(hunk.nodes[0]) },
        canvas,
        h("span", h("span", dotted(hunk.where || "–")), h("span.quiet", "=")),
      ),
    );
  }
  box.append(andMore(places, 48, "equal places more"));
  return box;
}
/** A place inside the range of a pattern that lacks it: what happened there instead, or nothing. */
function deviating(detail, [place, what, hunks]) {
  const nodes = hunks.flatMap((hunk) => detail.hunks[hunk].nodes),
    cluster = detail.clusterOfPath.get(place),
    target = nodes[0] ?? (cluster === undefined ? undefined : detail.nodesOf(cluster)[0]);
  return h(
    "button.deviates",
    {
      disabled: target === undefined,
      title: past(what),
      click: () => showNode(target),
    },
    h("span.words", nodes.length ? badges(countsOf(detail, nodes)) : "no change"),
    h("span", h("span", dotted(place)), h("b", "differs")),
  );
}
export function relations(detail, list) {
  const links = (nodes) =>
    nodes.slice(0, 6).map((node) =>
      h(`button.chip.${detail.statusOf(node)}`, {
        title: detail.opOf(node),
        click: () => showNode(node),
      }, detail.nodeName(node))
    ).concat(nodes.length > 6 ? [h("span.quiet", ` and ${nodes.length - 6} more`)] : []);
  return h(
    "div.relations",
    list.map((r) =>
      h(
        "div.relation",
        h("span.mid", RELATIONS[r.kind] || r.kind),
        h("span", links(r.before)),
        h("span", { label: "to" }, "→"),
        h("span", links(r.after)),
        r.confidence < 0.9 && h("span.quiet", `likely, ${r.confidence.toFixed(2)}`),
      )
    ),
  );
}
