// The first page: what ran, the pass timeline, root causes, what each step executed.

import { $, $$, dotted, h, hear, joined, link, plain, rectOf, say, stepOf, svg } from "./dom.js";
import { BADGES, badges, SIGN } from "./status.js";
import { barcodeOf } from "./barcode.js";
import { bytes, delta, flops, number, past, plural, time } from "./format.js";
import { currentRun, hashOf, linkTo } from "./route.js";
import { graphsOf, isQuiet, momentsOf, report, titleOf } from "./store.js";

export const card = (title, value, words) =>
  h("div.card", h("div.quiet.small", title), h("div.value", value), h("div.quiet.small", words));
/** Rows of about as many cards, as wide as the page. */
export function cards(list) {
  const box = h("div.cards", list),
    fit = Math.max(
      1,
      Math.floor((Math.min(innerWidth, 1312) - 48) / (innerWidth < 900 ? 160 : 240)),
    );
  box.style.setProperty("--columns", Math.ceil(list.length / Math.ceil(list.length / fit)));
  return box;
}
export const section = (title, words, ...content) =>
  h("section", h("div.section", h("h2", title), words && h("span.quiet.small", words)), ...content);
export const boxed = (title, words, ...content) =>
  section(title, words, h("div.box.pad", ...content));
const KINDS = { "?": "optional", "#": "number", "=": "mono", "~": "wrap" };
/**
 * Heads begin with marks of their columns: no room on a phone, numbers, code, breaks anywhere.
 * Cells are whatever stands in them, or made by `td`.
 */
export function table(heads, rows, caption) {
  const kinds = heads.map((head) => /^[?#=~]*/.exec(head)[0].split("").map((mark) => KINDS[mark]));
  const cells = (row) =>
    row.map((cell, i) => {
      const box = cell && cell.tagName === "TD" ? cell : td(cell);
      box.classList.add(...kinds[i]);
      return box;
    });
  return h(
    "table",
    caption && h("caption", caption),
    h(
      "thead",
      h(
        "tr",
        heads.map((head, i) =>
          h(
            "th",
            { scope: "col", class: kinds[i].filter((kind) => kind !== "mono").join(" ") },
            head.replace(/^[?#=~]*/, ""),
          )
        ),
      ),
    ),
    h("tbody", rows.map((row) => h("tr", cells(row)))),
  );
}
export const td = (content, kind) => h("td", { class: kind }, dotted(content));

export async function overview() {
  const run = currentRun(), page = h("div.page");
  page.append(h("div.hero", h("h1", report.title), h("span.quiet.small", dotted(runWords(run)))));
  for (const pass of run.passes) if (pass.status === "failed") page.append(failure(pass));
  page.append(cards(cardsOf(run)));
  if (run.passes.length) {
    page.append(
      section("Pass timeline", "one mark per node, left to right in program order", timeline(run)),
    );
  }
  const causes = causesOf(run);
  if (causes.length) {
    page.append(
      section("Root causes", "patterns first, consequences left out", h("div.box", causes)),
    );
  }
  if (run.steps.length) page.append(boxed("What ran", "", lossChart(run), executed(run)));
  const others = run.graphs.filter((graph) => graph.detail >= 0);
  if (others.length) {
    page.append(
      boxed(
        run.passes.length ? "Other graphs" : "Graphs",
        "",
        table(
          ["graph", "#nodes", "#peak memory", "?#arithmetic", "?=fingerprint"],
          others.map((
            graph,
          ) => [
            link(linkTo(graph), graph.name),
            number(graph.last.nodes),
            graph.last.peak ? bytes(graph.last.peak) : "–",
            graph.last.flops ? flops(graph.last.flops) : "–",
            graph.last.fingerprint,
          ]),
        ),
      ),
    );
  }
  if (run.stages.length) {
    page.append(
      boxed(
        "Stages of compilation",
        "what became of a graph on its way through the compiler",
        table(
          ["graph", "from", "?#nodes", "difference"],
          run.stages.map((
            stage,
          ) => [
            stage.detail < 0 ? stage.graph : link(linkTo(stage), stage.graph),
            stage.from,
            `${number(stage.before.nodes)} → ${number(stage.after.nodes)}`,
            stage.detail >= 0
              ? badges(stage.counts)
              : stage.compared
              ? "equal"
              : "not compared, too large",
          ]),
        ),
      ),
    );
  }
  if (report.runs.length > 1) {
    page.append(
      boxed(
        "Runs of this file",
        "",
        table(
          ["run", "#rank", "?kind", "~source", "?#passes", "status"],
          report.runs.map((
            other,
          ) => [
            h("a", {
              href: hashOf({ view: "overview", run: other.id }),
              "aria-current": other === run && "true",
            }, `run ${other.id}`),
            other.rank,
            other.kind,
            other.source,
            number(other.passes.length),
            other.status,
          ]),
        ),
      ),
    );
  }
  if (report.left_out.length) {
    page.append(
      boxed(
        "Left out",
        "this report reached its size limit; the trace has them",
        h("ul", report.left_out.map((title) => h("li", title))),
      ),
    );
  }
  page.append(boxed("Words", "", $("#glossary").content.cloneNode(true)));
  return page;
}
const runWords = (run) =>
  ["diff", "graph"].includes(run.kind) ? run.source : [
    run.kind === "import" ? "imported log" : `${run.kind} run ${run.id}`,
    `rank ${run.rank}${run.world > 1 ? ` of ${run.world}` : ""}`,
    run.status,
    run.source || run.command,
  ].join(" · ");

export function failure(pass) {
  return h(
    "div.failure",
    { role: "alert" },
    h("b", `Pass ${pass.index} ${pass.name} failed. `),
    "The trace keeps the graph from before it.",
    h("pre", `strata: error: ${pass.error}`),
    pass.reproduce && h("pre", pass.reproduce),
  );
}

function cardsOf(run) {
  const changed = run.passes.filter((pass) => pass.detail >= 0).length,
    failed = run.passes.filter((pass) => pass.status === "failed").length,
    total = run.passes.reduce((sum, pass) => sum + pass.ms, 0);
  const list = [],
    moments = momentsOf(run, graphsOf(run)[0]),
    [first, last] = [moments[0], moments[moments.length - 1]];
  if (run.passes.length) {
    list.push(card(
      "Passes",
      number(run.passes.length),
      failed
        ? `${failed} failed`
        : `${changed} changed something${total > 0 ? `, ${time(total)}` : ""}`,
    ));
  }
  const ways = (title, value, unit, words) => {
    const [before, after] = [value(first), value(last)];
    if (after) {
      list.push(
        card(
          title,
          before === after ? unit(after) : `${unit(before)} → ${unit(after)}`,
          before === after ? words : `${delta(after - before, unit)}, ${words}`,
        ),
      );
    }
  };
  if (first) {
    ways("Nodes", (m) => m.nodes, number, `of ${graphsOf(run)[0]}`);
    // Two runs differ at the end by what the last row says; passes of one run add up.
    const sum = run.passes.reduce(
      (all, pass) => all.map((count, i) => (run.kind === "diff" ? 0 : count) + pass.counts[i]),
      [0, 0, 0, 0, 0],
    );
    if (run.passes.length) {
      list.push(card(
        "Changes",
        sum.some(Boolean) ? badges([...sum.slice(0, 4), 0]) : "none",
        sum[4]
          ? `${number(sum[4])} more nodes are derived`
          : run.kind === "diff"
          ? "at the end"
          : "over all passes",
      ));
    }
    ways("Peak memory", (m) => m.peak, bytes, "estimated from shapes");
    ways("Arithmetic", (m) => m.flops, flops, "of matrix products and attention");
  }
  const deviating =
    run.passes.flatMap((pass) => pass.causes).filter((cause) => cause.except.length).length;
  if (run.passes.length) {
    list.push(
      card(
        "Needs a look",
        joined([
          failed && plural(failed, "failed pass", "failed passes"),
          deviating && plural(deviating, "pattern"),
        ]) || "nothing",
        deviating
          ? "with places that deviate"
          : failed
          ? ""
          : "no pass failed, no pattern deviates",
      ),
    );
  }
  if (run.steps.length) {
    const end = run.steps[run.steps.length - 1];
    list.push(
      card(
        "Loss",
        `${run.steps[0][1].toFixed(4)} → ${end[1].toFixed(4)}`,
        `${plural(run.steps.length, "step")}, ${
          time(run.steps.reduce((sum, s) => sum + s[3], 0) / run.steps.length)
        } each`,
      ),
    );
  }
  return list;
}

function timeline(run) {
  const timed = run.passes.some((pass) => pass.ms > 0),
    longest = Math.max(...run.passes.map((pass) => pass.ms)),
    several = new Set(run.passes.map((pass) => pass.graph)).size > 1;
  const box = h("div", { class: timed ? "timeline box" : "timeline box untimed" });
  box.append(
    h(
      "div.row.head",
      { "aria-hidden": "true" },
      h("span.number", "#"),
      h("span", "Pass"),
      h("span", "Where"),
      BADGES.map((word) => h("span.number.one", word)),
      h("span.number.one", "Δ peak"),
      h("span.number.one", "Δ FLOP"),
      timed ? h("span.number.one", "time") : null,
    ),
  );
  let quiet = [];
  const flush = () => {
    const words = quiet.map((pass) => pass.name).join(", ");
    if (words) {
      box.append(
        h(
          "div.row.fold",
          h(
            "span.cut",
            { title: words },
            `${plural(quiet.length, "pass", "passes")} without change  `,
            h("span.mono", words),
          ),
        ),
      );
    }
    quiet = [];
  };
  for (const pass of run.passes) {
    if (isQuiet(pass)) {
      quiet.push(pass);
      continue;
    }
    flush();
    const words = joined([
      pass.status === "failed" && "failed, graph kept as it was",
      several && pass.graph,
      pass.options || pass.causes[0] && past(pass.causes[0].title),
    ], " · ");
    box.append(
      h(
        `a.row.${pass.status}`,
        { id: `p${pass.index}`, href: linkTo(pass) },
        h("span.number.quiet", pass.index),
        h(
          "span",
          h("span.name.cut", { title: pass.name }, pass.name),
          words && h("span.small.quiet.cut", { title: words }, words),
          h("span.together", badges(pass.counts)),
        ),
        barcodeOf(pass.detail, `where ${pass.name} changed the graph`),
        BADGES.map((status, i) =>
          h(
            "span",
            { class: `number one ${pass.counts[i] ? status : "quiet"}` },
            pass.counts[i] ? SIGN[status] + number(pass.counts[i]) : "·",
          )
        ),
        h("span.number.one", delta(pass.after.peak - pass.before.peak, bytes)),
        h(
          "span.number.one",
          delta(pass.after.flops - pass.before.flops, (v) => flops(v).replace("FLOP", "")),
        ),
        timed
          ? h(
            "span.number.one.duration",
            time(pass.ms),
            h("i", { "data-share": (pass.ms / longest).toFixed(3) }),
          )
          : null,
      ),
    );
  }
  flush();
  // A policy without inline styles leaves setting them from the script.
  for (const bar of $$("[data-share]", box)) {
    bar.style.width = `${Math.max(2, bar.dataset.share * 48)}px`;
  }
  return box;
}

/** "layers.{0..31} equal except layers.7". */
export const whereWords = (cause) => {
  const where = plain(cause.where) || "without module";
  if (cause.places === 1) return where;
  return `${plural(cause.places, "equal place")}: ${where}${
    cause.except && cause.except.length
      ? ` except ${
        cause.except.map(([place, what]) => plain(place) + (what ? ` (${past(what)})` : "")).join(
          ", ",
        )
      }`
      : ""
  }`;
};
function causesOf(run) {
  // What two runs differ in stays from step to step: it is one cause.
  const same = new Map();
  for (const pass of run.passes) {
    for (const cause of pass.causes) {
      const key = run.kind === "diff" ? cause.title + whereWords(cause) : same.size;
      if (same.has(key)) same.get(key).last = pass;
      else same.set(key, { pass, cause, last: pass });
    }
  }
  const list = [...same.values()].sort((a, b) => b.cause.nodes - a.cause.nodes).slice(0, 8);
  return list.map(({ pass, cause, last }) =>
    h(
      "a.cause",
      { href: linkTo(pass, { tab: "patterns" }) },
      badges(cause.counts),
      h("span", h("b", past(cause.title)), h("br"), h("span.mid", whereWords(cause))),
      h("span.quiet.mono.cut", last === pass ? titleOf(pass) : `#${pass.index} … #${last.index}`),
    )
  );
}

/**
 * A line over steps or nodes: [[x, y], …] with marks and words; its numbers are in a table beside
 * it. `at(i)` tells of a point as [words, link]: pointer and arrow keys walk along the line, a
 * click or Enter follows.
 */
export function lineChart(points, { label, unit, left, right, before, fill, at, marks = [] }) {
  // As wide as it is shown, so that its words keep their size.
  const [width, height, l, r, t, b] = [
      Math.min(innerWidth, 1312) - (innerWidth > 900 ? 82 : 58),
      240,
      72,
      12,
      20,
      24,
    ],
    all = [...points, ...(before || [])].map(([, y]) => y),
    low = fill ? 0 : Math.min(...all),
    high = Math.max(...all),
    span = high - low || 1;
  const far = Math.max(1, ...points.map(([x]) => x), ...(before || []).map(([x]) => x)),
    x = (v) => (l + (width - l - r) * v / far).toFixed(1),
    y = (v) => (t + (height - t - b) * (high - v) / span).toFixed(1);
  const chart = svg("svg", {
      class: "chart",
      viewBox: `0 0 ${width} ${height}`,
      role: "img",
      "aria-label": label,
    }),
    path = (list) => list.map(([px, py]) => `${x(px)},${y(py)}`).join(" ");
  for (const value of [high, (high + low) / 2, low]) {
    chart.append(
      svg("line", { class: "grid", x1: l, x2: width - r, y1: y(value), y2: y(value) }),
      svg("text", { x: l - 8, y: +y(value) + 4, "text-anchor": "end" }, unit(value)),
    );
  }
  if (fill) {
    chart.append(
      svg("polygon", {
        class: "area",
        points: `${x(0)},${y(0)} ${path(points)} ${x(points[points.length - 1][0])},${y(0)}`,
      }),
    );
  }
  if (before) chart.append(svg("polyline", { class: "line before", points: path(before) }));
  chart.append(svg("polyline", { class: "line", points: path(points) }));
  for (const [px, py, words, kind] of marks) {
    const end = px > far * 0.75;
    chart.append(
      svg("circle", { cx: x(px), cy: y(py), r: 3, class: kind }),
      svg("text", {
        x: +x(px) + (end ? -8 : 8),
        y: Math.max(11, +y(py) - 7),
        "text-anchor": end ? "end" : "start",
        class: `mark ${kind || ""}`,
      }, words),
    );
  }
  for (const [words, place, anchor] of [[left, l, "start"], [right, width - r, "end"]]) {
    chart.append(svg("text", { x: place, y: height - 6, "text-anchor": anchor }, words));
  }
  if (at) {
    const dot = svg("circle", { r: 4 }),
      words = svg("text", {
        class: "mark",
        x: (l + width - r) / 2,
        y: height - 6,
        "text-anchor": "middle",
      }),
      here = svg("g", dot, words);
    let now = -1;
    const show = (i) => {
      now = Math.max(0, Math.min(points.length - 1, i));
      dot.setAttribute("cx", x(points[now][0]));
      dot.setAttribute("cy", y(points[now][1]));
      words.textContent = at(now)[0];
      chart.setAttribute("aria-label", `${label}. ${at(now)[0]}`);
      chart.append(here);
    };
    const follow = () => {
      if (now >= 0) location.hash = at(now)[1];
    };
    chart.setAttribute("tabindex", "0");
    hear(chart, "pointermove", (event) => {
      const box = rectOf(chart), k = Math.min(box.width / width, box.height / height);
      show(
        Math.round(
          ((event.clientX - box.left - (box.width - width * k) / 2) / k - l) / (width - l - r) *
            (points.length - 1),
        ),
      );
    });
    hear(chart, "click", follow);
    hear(chart, "keydown", (event) => {
      const step = stepOf(event, "ArrowLeft", "ArrowRight") ||
        20 * stepOf(event, "PageDown", "PageUp");
      if (step) {
        show(now + step);
        say(at(now)[0]);
      }
      if (event.key === "Enter") follow();
    });
  }
  return chart;
}
function lossChart(run) {
  const steps = run.steps.filter(([, loss]) => loss !== null),
    [first, last] = [steps[0], steps[steps.length - 1]];
  if (!first) return h("p", "No step has a finite loss.");
  return lineChart(steps.map(([, loss], i) => [i, loss]), {
    label: `Loss per step, from ${first[1]} to ${last[1]}`,
    unit: (v) => v.toFixed(3),
    left: `step ${first[0]}`,
    right: `step ${last[0]}`,
    marks: [[steps.length - 1, last[1], `loss ${last[1].toFixed(4)}`]],
  });
}
function executed(run) {
  return table(
    ["graph", "steps", "?=fingerprint", "last changed by"],
    run.executed.map((range) => {
      const pass = run.passes.find((p) => p.ref === range.ref);
      return [
        range.graph,
        `${range.first}–${range.last}`,
        range.fingerprint,
        pass ? link(linkTo(pass), titleOf(pass)) : "as traced",
      ];
    }),
    "Each step executed a plan of this graph; the fingerprints are equal.",
  );
}
