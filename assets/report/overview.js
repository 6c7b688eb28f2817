// The first page: what ran, the pass timeline, what each step executed.

const card = (title, value, note) => h("div", {class: "card"}, h("span", {}, title), h("b", {class: "cut", title: value}, value), h("span", {class: "cut", title: note}, note));

function overview() {
  const page = h("div", {class: "overview"}, h("h1", {}, plain(report.title)));
  for (const run of report.runs) page.append(...overviewOf(run));
  if (report.left_out.length) {
    page.append(h("section", {}, h("h2", {}, "Left out"), h("div", {class: "box"}, h("p", {}, "This report reached its size limit. Their graphs are in the trace, not here:"), h("ul", {}, report.left_out.map((title) => h("li", {}, plain(title)))))));
  }
  page.append(h("section", {}, h("h2", {}, "Words"), glossary()));
  return page;
}

function overviewOf(run) {
  const changed = run.passes.filter((pass) => pass.detail >= 0).length;
  const failed = run.passes.filter((pass) => pass.status === "failed").length;
  const total = run.passes.reduce((sum, pass) => sum + pass.ms, 0);
  const cards = [card(run.kind === "import" ? "Imported log" : `${run.kind} run ${run.id}`, run.world > 1 || run.kind === "import" ? `rank ${run.rank}` : run.status, plain(run.source || run.command))];
  cards.push(card("Passes", number(run.passes.length), failed ? `${failed} failed` : `${changed} changed something${total > 0 ? `, ${time(total)}` : ""}`));
  for (const name of new Set(run.passes.map((pass) => pass.graph))) {
    const passes = run.passes.filter((pass) => pass.graph === name);
    const [before, after] = [passes[0].before.nodes, passes[passes.length - 1].after.nodes];
    cards.push(card(`Nodes of ${plain(name)}`, before === after ? number(after) : `${number(before)} → ${number(after)}`, before === after ? "as many as before" : `${signed(after - before)} by ${plural(passes.length, "pass", "passes")}`));
  }
  if (run.steps.length) {
    const last = run.steps[run.steps.length - 1];
    cards.push(card("Loss", `${run.steps[0][1].toFixed(4)} → ${last[1].toFixed(4)}`, `${plural(run.steps.length, "step")}, ${time(run.steps.reduce((sum, s) => sum + s[3], 0) / run.steps.length)} each`));
  }
  const parts = [];
  if (report.runs.length > 1) parts.push(h("section", {}, h("h2", {}, `Run ${run.id}, rank ${run.rank}`)));
  parts.push(h("div", {class: "cards"}, cards));
  if (run.passes.length) parts.push(h("section", {}, h("h2", {}, "Pass timeline"), timeline(run)));
  if (run.steps.length) parts.push(h("section", {}, h("h2", {}, "What ran"), h("div", {class: "box"}, lossChart(run), executed(run))));
  const others = run.graphs.filter((graph) => graph.detail >= 0);
  if (others.length) parts.push(h("section", {}, h("h2", {}, run.passes.length ? "Other graphs" : "Graphs"), graphTable(others)));
  if (run.artifacts.length) parts.push(h("section", {}, h("h2", {}, "Artifacts"), artifacts(run)));
  return parts;
}

const changedOrFailed = (run) => run.passes.filter((pass) => pass.detail >= 0 || pass.status === "failed");

function timeline(run) {
  const timed = run.passes.some((pass) => pass.ms > 0);
  const box = h("div", {class: timed ? "timeline" : "timeline untimed", role: "table", "aria-label": "Pass timeline"});
  if (changedOrFailed(run).length) box.append(h("div", {class: "row head"}, h("span", {class: "number"}, "#"), h("span", {}, "pass"), h("span", {}, "nodes in program order"),
    ...["+", MINUS, "~", "\u21b7", "derived"].map((sign) => h("span", {class: "number one"}, sign)), h("span", {class: "number one"}, "nodes"), timed ? h("span", {class: "number one"}, "time") : null));
  let quiet = [];
  const flush = () => {
    if (quiet.length) box.append(h("div", {class: "row fold"}, h("span", {class: "cut"}, `… ${plural(quiet.length, "pass", "passes")} without change: ${quiet.map((pass) => plain(pass.name)).join(", ")}`)));
    quiet = [];
  };
  for (const pass of run.passes) {
    if (pass.detail < 0 && pass.status !== "failed") { quiet.push(pass); continue; }
    flush();
    const canvas = h("canvas", {"aria-hidden": "true"});
    const several = new Set(run.passes.map((p) => p.graph)).size > 1;
    const note = [pass.status === "failed" ? `failed: ${pass.error}` : "", several ? pass.graph : "", pass.options].filter(Boolean).join(" · ");
    const counts = ["added", "removed", "changed", "moved", "derived"].map((status, i) =>
      h("span", {class: `number one ${status}`, title: status}, pass.counts[i] ? SIGN[status] + number(pass.counts[i]) : "·"));
    box.append(h("button", {class: `row ${pass.status}`, click: () => go({view: "subject", ref: pass.ref, tab: "graph", node: "", all: false})},
      h("span", {class: "number quiet"}, String(pass.index)), h("span", {}, h("div", {class: "name cut", title: plain(pass.name)}, plain(pass.name)), note ? h("div", {class: "small quiet cut", title: plain(note)}, plain(note)) : null),
      canvas, h("span", {class: "together"}, badges(pass.counts)), ...counts,
      h("span", {class: "number one"}, pass.after.nodes === pass.before.nodes ? "·" : signed(pass.after.nodes - pass.before.nodes)), timed ? h("span", {class: "number one quiet"}, time(pass.ms)) : null));
    loadDetail(pass.detail).then((detail) => {
      if (!detail) return;
      const draw = () => {
        const box = prepare(canvas);
        if (box) drawBarcode(box.context, 0, 0, box.width, box.height, detail.clusters[0].nodes, detail.status);
      };
      redraws.push(draw);
      draw();
    });
  }
  flush();
  return box;
}

function lossChart(run) {
  const [width, height, left, right, top, bottom] = [900, 180, 56, 12, 12, 24];
  const losses = run.steps.map((step) => step[1]).filter((loss) => loss !== null);
  const low = Math.min(...losses), high = Math.max(...losses), span = high - low || 1;
  const x = (i) => left + (width - left - right) * (run.steps.length === 1 ? 0.5 : i / (run.steps.length - 1));
  const y = (loss) => top + (height - top - bottom) * (high - loss) / span;
  const chart = svg("svg", {class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Loss per step, from ${losses[0]} to ${losses[losses.length - 1]}`});
  for (const loss of [high, (high + low) / 2, low]) {
    chart.append(svg("line", {class: "grid", x1: left, x2: width - right, y1: y(loss), y2: y(loss)}), svg("text", {x: left - 8, y: y(loss) + 4, "text-anchor": "end"}, loss.toFixed(3)));
  }
  chart.append(svg("polyline", {class: "line", points: run.steps.map((step, i) => `${x(i).toFixed(1)},${y(step[1]).toFixed(1)}`).join(" ")}));
  if (run.steps.length <= 60) run.steps.forEach((step, i) => chart.append(svg("circle", {cx: x(i), cy: y(step[1]), r: 2.5}, svg("title", {}, `step ${step[0]}: loss ${step[1]}, gradient norm ${step[2]}`))));
  chart.append(svg("text", {x: left, y: height - 6}, `step ${run.steps[0][0]}`), svg("text", {x: width - right, y: height - 6, "text-anchor": "end"}, `step ${run.steps[run.steps.length - 1][0]}`));
  return chart;
}
function executed(run) {
  return h("table", {}, h("caption", {}, "Each step executed a plan of this graph; the fingerprints are equal."),
    h("thead", {}, h("tr", {}, h("th", {}, "graph"), h("th", {}, "steps"), h("th", {}, "fingerprint"), h("th", {}, "last changed by"))),
    h("tbody", {}, run.executed.map((range) => {
      const pass = run.passes.find((p) => p.ref === range.ref);
      return h("tr", {}, h("td", {}, plain(range.graph)), h("td", {}, `${range.first}–${range.last}`), h("td", {class: "mono"}, range.fingerprint),
        h("td", {}, pass ? h("a", {href: hashOf({view: "subject", ref: pass.ref, tab: "graph", node: "", all: false})}, `#${pass.index} ${plain(pass.name)}`) : "as traced"));
    })));
}
function graphTable(graphs) {
  return h("div", {class: "box"}, h("table", {}, h("thead", {}, h("tr", {}, h("th", {}, "graph"), h("th", {class: "number"}, "nodes"), h("th", {}, "fingerprint"))),
    h("tbody", {}, graphs.map((graph) => h("tr", {}, h("td", {}, h("a", {href: hashOf({view: "subject", ref: graph.ref, tab: "graph", node: "", all: false})}, plain(graph.name))),
      h("td", {class: "number"}, number(graph.last.nodes)), h("td", {class: "mono"}, graph.last.fingerprint))))));
}
function artifacts(run) {
  const kinds = new Map();
  for (const [name, kind, bytes] of run.artifacts) {
    if (!kinds.has(kind)) kinds.set(kind, []);
    kinds.get(kind).push([name, bytes]);
  }
  return h("div", {class: "box"}, h("p", {class: "quiet"}, "What the log holds besides graphs; the trace keeps their content."), [...kinds].map(([kind, list]) =>
    h("details", {}, h("summary", {}, `${plain(kind)} (${list.length})`), h("ul", {}, list.slice(0, 200).map(([name, bytes]) => h("li", {}, `${plain(name)}, ${plural(bytes, "byte")}`)), list.length > 200 ? h("li", {}, `and ${list.length - 200} more`) : null))));
}
function glossary() {
  const words = [
    ["added, removed", "A node that only one of the two graphs has. The JSON of strata diff calls them inserted and deleted."],
    ["changed", "The same node with a difference of its own: operator, argument, operand, type, module or phase."],
    ["derived", "The same node whose only differences are consequences of other changes. Grey, and counted apart."],
    ["moved", "The same node at a place in the order that added and removed nodes do not explain."],
    ["barcode", "One tick per node in program order: added above the line, removed below, changed across."],
    ["fingerprint", "128 bits over what a graph computes: order, operators, arguments and types, not names."],
  ];
  return h("div", {class: "box"}, h("dl", {class: "glossary"}, words.flatMap(([word, meaning]) => [h("dt", {}, word), h("dd", {}, meaning)])));
}
