// A pass as a table of nodes, as text, and as patterns.

/** Root causes first: what a reader of the table looks for. */
const TABLE_ORDER = {[CHANGED]: 0, [ADDED]: 1, [REMOVED]: 2, [MOVED]: 3, [DERIVED]: 4, [SAME]: 5};
const MAX_ROWS = 400;

function whatChanged(detail, node) {
  const fields = detail.fields.get(node) || [], own = fields.filter((field) => !field[3]), shown = own.length ? own : fields;
  // On a phone there is no room for a whole target.
  const side = (path, text) => text < 0 ? "–" : innerWidth < 900 && path === "target" ? shortOp(str(text)) : str(text);
  return shown.slice(0, 3).map(([path, before, after]) => plain(`${str(path)}: ${side(str(path), before)} → ${side(str(path), after)}`)).join("; ") + (shown.length > 3 ? `; and ${shown.length - 3} more` : "");
}
/** Columns of the table: heading → what it sorts by. The property that the graph is coloured by has one, too. */
function columnsOf(detail) {
  const overlay = OVERLAYS[state.overlay], values = overlay && overlay.map && overlay.map(detail);
  return new Map([["status", (i) => TABLE_ORDER[detail.status[i]]], ["node", (i) => detail.nodeName(i)], ["operator", (i) => detail.opLabel(i)], ["what changed", (i) => whatChanged(detail, i)],
    ...overlay ? [[overlay.label.toLowerCase(), values ? (i) => values.get(i) ?? -Infinity : (i) => overlay.kind(detail, i), (i) => !values ? overlay.kind(detail, i) : values.has(i) ? (overlay.words ? overlay.words(detail, i) : overlay.unit(values.get(i))) : "–"]] : [],
    ["type", (i) => shortType(detail.typeOf(i))], ["module", (i) => detail.moduleOf(i)], ["phase", (i) => detail.phase[i]]].map(([word, ...rest]) => [word, rest]));
}
function nodesFor(detail) {
  const hits = state.filter ? new Set(detail.search(state.filter)) : null, pool = detail.changes.length && state.hops !== "all" ? detail.changes : Array.from({length: detail.count}, (_, i) => i);
  const down = state.sort.startsWith("-"), [key] = columnsOf(detail).get(state.sort.slice(down)) || [(i) => TABLE_ORDER[detail.status[i]]], compare = new Intl.Collator("en", {numeric: true}).compare;
  return pool.filter((i) => !hits || hits.has(i)).map((i) => [key(i), i]).sort(([a, i], [b, j]) => (down ? -1 : 1) * (typeof a === "number" ? a - b || 0 : compare(a, b)) || i - j).map(([, i]) => i);
}
/** Appends the rows of a list as they are asked for; long lists would stall the page. */
function inPortions(list, box, add, words) {
  let at = 0;
  const more = h("button.more-rows", {click: () => next()});
  const next = () => {
    add(list.slice(at, at + MAX_ROWS));
    at += MAX_ROWS;
    more.textContent = `Show ${number(Math.min(MAX_ROWS, list.length - at))} more of ${number(list.length - at)} ${words}`;
    more.hidden = at >= list.length;
  };
  box.append(more);
  next();
}
const nothing = (...what) => h("div.empty", ...what);

function tableTab(panel, detail) {
  const nodes = nodesFor(detail), sheet = h("div.sheet");
  if (detail.changes.length) {
    const all = h("input", {type: "checkbox", change: () => go({hops: all.checked ? "all" : "1"})});
    all.checked = state.hops === "all";
    panel.append(h("div.toolbar", h("label", all, "Unchanged nodes too"), h("span.quiet.small", plural(nodes.length, "node")), h("span.spacer"), h("button.optional", {click: () => copyText(markdownTable(detail, nodes), "Table")}, "Copy as Markdown")));
  }
  panel.append(sheet);
  if (!nodes.length) { sheet.append(nothing(`Nothing matches “${state.filter}”.`)); return; }
  const columns = columnsOf(detail), extra = [...columns.values()].find(([, show]) => show), body = h("tbody"), selected = detail.find(state.node);
  sheet.append(h("table.nodes", h("thead", h("tr", [...columns.keys()].map((word) => {
    const next = {[word]: `-${word}`, [`-${word}`]: ""}[state.sort] ?? word, way = next === "" ? "descending" : next === word ? null : "ascending";
    return h("th", {scope: "col", "aria-sort": way}, h("button.sort", {id: `sort-${word}`, title: "Sort", click: () => go({sort: next})}, word, way ? way === "ascending" ? " ↑" : " ↓" : ""));
  }))), body));
  inPortions(nodes, sheet, (list) => body.append(...list.map((i) => {
    const was = detail.was.has(i) ? `${str(detail.was.get(i))} → ` : "";
    return h("tr", {"data-node": i, "aria-selected": String(selected === i), tabindex: "0", click: () => selectNode(i), keydown: (event) => { if (event.key === "Enter") selectNode(i); }},
      h("td", chip(detail.statusOf(i))), td(was + detail.nodeName(i), "mono"), td(detail.opLabel(i)), td(whatChanged(detail, i) || "–", "mono"), extra && td(extra[1](i) || "–"), td(shortType(detail.typeOf(i)) || "–", "mono"), td(detail.moduleOf(i) || "–"), td(PHASE[detail.phase[i]] || "–"));
  })), "nodes");
}

// --- Text ---

/** Marks the words in which two lines differ: common words, in order, stay plain. */
function marked(line, other) {
  const words = (text) => text.match(/[A-Za-z0-9_.]+|\s+|./gu) || [], a = words(line), b = words(other);
  let begin = 0, end = 0;
  while (begin < a.length && begin < b.length && a[begin] === b[begin]) begin++;
  while (end < a.length - begin && end < b.length - begin && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  const [x, y] = [a.slice(begin, a.length - end), b.slice(begin, b.length - end)], same = x.length * y.length < 40000 ? matching(x, y) : [];
  const parts = [a.slice(0, begin).join("")];
  for (let i = 0; i < x.length;) {
    const isSame = (k) => same[k] >= 0, plainWord = isSame(i), from = i;
    while (i < x.length && isSame(i) === plainWord) i++;
    const text = x.slice(from, i).join("");
    parts.push(plainWord ? text : h("mark", dotted(text)));
  }
  parts.push(a.slice(a.length - end).join(""));
  return parts.map(dotted);
}
/** Rows of the text difference: changes with the lines around them, and folds between. */
function textRows(detail, lines, spelling, context) {
  const rows = [], fits = state.filter ? new Set(detail.search(state.filter)) : null;
  let quiet = [], old = 0, now = 0;
  const flush = (last) => {
    const head = rows.length ? context : 0, tail = last ? 0 : context;
    if (detail.changes.length && quiet.length > head + tail + 1) rows.push(...quiet.slice(0, head), {fold: quiet.slice(head, quiet.length - tail)}, ...quiet.slice(quiet.length - tail));
    else rows.push(...quiet);
    quiet = [];
  };
  for (let i = 0; i < detail.count; i++) {
    const before = detail.status[i] === ADDED ? "" : lines[spelling](i, true), after = detail.status[i] === REMOVED ? "" : lines[spelling](i, false);
    if (before) old++;
    if (after) now++;
    if (!before && !after) continue;
    if (before === after && !(fits && fits.has(i))) { quiet.push({node: i, old, now, text: after}); continue; }
    if (fits && !fits.has(i)) continue;
    flush(false);
    if (before === after) rows.push({node: i, old, now, text: after});
    if (before && before !== after) rows.push({node: i, old, sign: MINUS, text: before, other: after});
    if (after && before !== after) rows.push({node: i, now, sign: "+", text: after, other: before});
  }
  flush(true);
  return rows;
}
async function textTab(panel, detail) {
  const choose = (spelling, label) => h("button", {"aria-pressed": String(state.spelling === spelling), click: () => go({spelling})}, label);
  panel.append(h("div.toolbar", h("div.segments", {role: "group", label: "Spelling"}, choose("native", "Native"), choose("fx", "FX")), h("span.quiet.small.optional", "what differs inside a line is marked"), h("span.spacer"), h("button", {click: () => copyGraph(detail)}, "Copy graph")));
  const sheet = h("div.sheet.text", {tabindex: "0", role: "region", label: "Text of the graphs"});
  panel.append(sheet);
  const lines = await loadLines(detail);
  if (!lines) { sheet.append(nothing("The lines did not fit into this report; the trace has them.")); return; }
  const rows = textRows(detail, lines, state.spelling, 3), selected = detail.find(state.node);
  if (!rows.length) { sheet.append(nothing(state.filter ? `No line matches “${state.filter}”.` : "Nothing differs in the lines; the table tells of types and places.")); return; }
  let module = null;
  const draw = (row) => {
    if (row.fold) {
      const fold = h("button.line.fold-line", {click: () => fold.replaceWith(...row.fold.map(draw).flat())}, `… ${plural(row.fold.length, "unchanged line")}`);
      module = null;
      return [fold];
    }
    const kind = row.sign === "+" ? "plus" : row.sign ? "minus" : "", place = detail.moduleOf(row.node);
    const line = h(`div.line.${kind}`, {"data-node": row.node, "aria-selected": String(row.node === selected), click: () => selectNode(row.node)}, h("span.nr", row.old && kind !== "plus" ? String(row.old) : ""), h("span.nr", row.now && kind !== "minus" ? String(row.now) : ""), h("span.sign", row.sign || " "), h("span.source", row.other ? marked(row.text, row.other) : row.text));
    if (place === module) return [line];
    module = place;
    return [h("div.place", place || "without module"), line];
  };
  inPortions(rows, sheet, (list) => { $(".more-rows", sheet).before(...list.flatMap(draw)); }, "lines");
  const first = $("[aria-selected=true]", sheet);
  if (first) first.scrollIntoView({block: "center"});
}

// --- Patterns ---

function patternsTab(panel, detail) {
  const sheet = h("div.sheet"), shown = new Set();
  panel.append(sheet);
  detail.patterns.forEach((pattern, index) => {
    const places = detail.hunks.filter((hunk) => hunk.pattern === index), counts = countsOf(detail, places.flatMap((hunk) => hunk.nodes));
    places.forEach((hunk) => shown.add(hunk));
    sheet.append(h("section.pattern", h("h2", past(pattern.title), " ", badges(counts)), h("p.mid", whereWords({where: pattern.where, places: places.length, except: pattern.deviations})),
      pattern.deviations.length > 0 && h("div.multiples", pattern.deviations.map((deviation) => deviating(detail, deviation))), multiples(detail, places)));
  });
  const single = detail.hunks.filter((hunk) => !shown.has(hunk)).sort((a, b) => b.nodes.length - a.nodes.length);
  if (single.length) sheet.append(h("section.pattern", h("h2", `${plural(single.length, "change")} at one place`), h("div", single.slice(0, 100).map((hunk) => h("button.cause", {click: () => showNode(hunk.nodes[0])}, badges(countsOf(detail, hunk.nodes)), h("span", h("b", past(hunk.title)), h("br"), h("span.mid", hunk.where || "without module"))))), single.length > 100 && h("p.quiet", `and ${number(single.length - 100)} more in the table`)));
  if (detail.relations.length) sheet.append(h("section.pattern", h("h2", plural(detail.relations.length, "relation")), h("p.mid", "Nodes that are not the same, but belong together."), relations(detail, detail.relations.slice(0, 200)), detail.relations.length > 200 && h("p.quiet", `and ${number(detail.relations.length - 200)} more`)));
  if (!sheet.children.length) sheet.append(nothing("No change repeats, and no node was replaced, copied or merged."));
}
/** Small pictures of equal changes, one per place; a click goes there. */
function multiples(detail, places) {
  const box = h("div.multiples");
  for (const hunk of places.slice(0, 48)) {
    // As high as its marks, seven in a row while all have room.
    const canvas = h("canvas", {"aria-hidden": "true"}), few = Math.ceil(hunk.nodes.length / 7) <= 4;
    canvas.style.height = few ? `${Math.ceil(hunk.nodes.length / 7) * 17 + 9}px` : "76px";
    const draw = () => {
      const area = prepare(canvas);
      if (!area) return;
      const c = area.context, columns = few ? 7 : Math.ceil(Math.sqrt(hunk.nodes.length * 1.6)), rows = Math.ceil(hunk.nodes.length / columns), size = Math.min(14, (area.width - 12) / columns - 3, (area.height - 12) / rows - 3);
      hunk.nodes.slice(0, 400).forEach((node, i) => {
        const status = detail.statusOf(node), x = 6 + (i % columns) * (size + 3), y = 6 + Math.floor(i / columns) * (size + 3);
        c.fillStyle = colors[`${status}-fill`] || colors.surface;
        c.strokeStyle = colors[status] || colors.edge;
        c.lineWidth = status === "added" ? 2 : 1.5;
        c.setLineDash(status === "removed" ? [3, 2] : status === "moved" ? [1.5, 1.5] : []);
        c.fillRect(x, y, size, size);
        c.strokeRect(x, y, size, size);
        if (status === "changed" && size > 7) c.strokeRect(x + 2.5, y + 2.5, size - 5, size - 5);
      });
    };
    redraws.push(draw);
    box.append(h("button", {title: `Show ${hunk.where}`, click: () => showNode(hunk.nodes[0])}, canvas, h("span", h("span", dotted(hunk.where || "–")), h("span.quiet", "="))));
  }
  if (places.length > 48) box.append(h("span.quiet.small", `and ${number(places.length - 48)} equal places more`));
  return box;
}
/** A place inside the range of a pattern that lacks it: what happened there instead, or nothing. */
function deviating(detail, [place, what, hunks]) {
  const nodes = hunks.flatMap((hunk) => detail.hunks[hunk].nodes), cluster = detail.clusterOfPath.get(place), target = nodes[0] ?? (cluster === undefined ? undefined : detail.nodesOf(cluster)[0]);
  return h("button.deviates", {disabled: target === undefined, title: past(what), click: () => showNode(target)}, h("span.words", nodes.length ? badges(countsOf(detail, nodes)) : "no change"), h("span", h("span", dotted(place)), h("b", "differs")));
}
const RELATIONS = {replace: "replaced", clone: "copied", merge: "merged", became_input: "became an input", became_compute: "became a computation"};
function relations(detail, list) {
  const links = (nodes) => nodes.slice(0, 6).map((node) => h(`button.chip.${detail.statusOf(node)}`, {title: detail.opOf(node), click: () => showNode(node)}, detail.nodeName(node))).concat(nodes.length > 6 ? [h("span.quiet", ` and ${nodes.length - 6} more`)] : []);
  return h("div.relations", list.map((r) => h("div.relation", h("span.mid", RELATIONS[r.kind] || r.kind), h("span", links(r.before)), h("span", {label: "to"}, "→"), h("span", links(r.after)), r.confidence < 0.9 && h("span.quiet", `likely, ${r.confidence.toFixed(2)}`))));
}
