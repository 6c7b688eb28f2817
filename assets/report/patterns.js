// Equal changes at several places, and relations between nodes.

import { badges, countsOf, RELATIONS } from "./status.js";
import { colors } from "./theme.js";
import { dotted, h } from "./dom.js";
import { nothing } from "./tables.js";
import { number, past, plural } from "./format.js";
import { onRedraw } from "./current.js";
import { prepare } from "./barcode.js";
import { showNode } from "./inspector.js";
import { whereWords } from "./overview.js";

export function patternsTab(panel, detail) {
  const sheet = h("div.sheet"), shown = new Set();
  panel.append(sheet);
  detail.patterns.forEach((pattern, index) => {
    const places = detail.hunks.filter((hunk) => hunk.pattern === index),
      counts = countsOf(detail, places.flatMap((hunk) => hunk.nodes));
    places.forEach((hunk) => shown.add(hunk));
    sheet.append(
      h(
        "section.pattern",
        h("h2", past(pattern.title), " ", badges(counts)),
        h(
          "p.mid",
          whereWords({ where: pattern.where, places: places.length, except: pattern.deviations }),
        ),
        pattern.deviations.length > 0 &&
          h("div.multiples", pattern.deviations.map((deviation) => deviating(detail, deviation))),
        multiples(detail, places),
      ),
    );
  });
  const single = detail.hunks.filter((hunk) => !shown.has(hunk)).sort((a, b) =>
    b.nodes.length - a.nodes.length
  );
  if (single.length) {
    sheet.append(
      h(
        "section.pattern",
        h("h2", `${plural(single.length, "change")} at one place`),
        h(
          "div",
          single.slice(0, 100).map((hunk) =>
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
            )
          ),
        ),
        single.length > 100 && h("p.quiet", `and ${number(single.length - 100)} more in the table`),
      ),
    );
  }
  if (detail.relations.length) {
    sheet.append(
      h(
        "section.pattern",
        h("h2", plural(detail.relations.length, "relation")),
        h("p.mid", "Nodes that are not the same, but belong together."),
        relations(detail, detail.relations.slice(0, 200)),
        detail.relations.length > 200 &&
          h("p.quiet", `and ${number(detail.relations.length - 200)} more`),
      ),
    );
  }
  if (!sheet.children.length) {
    sheet.append(nothing("No change repeats, and no node was replaced, copied or merged."));
  }
}
/** Small pictures of equal changes, one per place; a click goes there. */
function multiples(detail, places) {
  const box = h("div.multiples");
  for (const hunk of places.slice(0, 48)) {
    // As high as its marks, seven in a row while all have room.
    const canvas = h("canvas", { "aria-hidden": "true" }),
      few = Math.ceil(hunk.nodes.length / 7) <= 4;
    canvas.style.height = few ? `${Math.ceil(hunk.nodes.length / 7) * 17 + 9}px` : "76px";
    const draw = () => {
      const area = prepare(canvas);
      if (!area) return;
      const c = area.context,
        columns = few ? 7 : Math.ceil(Math.sqrt(hunk.nodes.length * 1.6)),
        rows = Math.ceil(hunk.nodes.length / columns),
        size = Math.min(14, (area.width - 12) / columns - 3, (area.height - 12) / rows - 3);
      hunk.nodes.slice(0, 400).forEach((node, i) => {
        const status = detail.statusOf(node),
          x = 6 + (i % columns) * (size + 3),
          y = 6 + Math.floor(i / columns) * (size + 3);
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
  if (places.length > 48) {
    box.append(h("span.quiet.small", `and ${number(places.length - 48)} equal places more`));
  }
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
