// The frame of the page, keys, and the start.

let mainBox = null, footer = null, live = null, searchBox = null, nav = null, runBox = null;
const say = (text) => { live.textContent = text; };

function frame() {
  const logo = svg("svg", {width: 20, height: 18, viewBox: "0 0 20 18", "aria-hidden": "true"});
  for (const [x, y, color] of [[0, 1, "ink"], [6, 7.5, "accent"], [0, 14, "ink"]]) logo.append(svg("rect", {x, y, width: 14, height: 3, fill: `var(--${color})`}));
  searchBox = h("input.search", {type: "search", placeholder: innerWidth < 1100 ? "Search" : "Search nodes, ops, modules", label: "Search nodes, operators, modules (regular expression)", "aria-controls": "results",
    input: () => doSearch(searchBox.value), focus: () => { if (searchBox.value) doSearch(searchBox.value); }, keydown: (event) => { if (event.key === "Enter") searchNext(event.shiftKey ? -1 : 1); }});
  const finder = h("div.finder", {focusout: (event) => { if (!finder.contains(event.relatedTarget)) $("#results").hidden = true; }}, searchBox, h("div", {id: "results", class: "results", hidden: true}));
  const theme = (name, label) => h("button", {"data-theme-button": name, "aria-pressed": "false", click: () => { setTheme(name, true); redrawAll(); }}, label);
  mainBox = h("main", {id: "main", tabindex: "-1"});
  live = h("span", {role: "status", "aria-live": "polite"});
  footer = h("footer.bottom");
  nav = h("nav.pages", {label: "Views"});
  runBox = h("span.run");
  $("#app").append(h("a.skip", {href: "#main", click: (event) => { event.preventDefault(); mainBox.focus(); }}, "Skip to the content"),
    h("header.top", h("div.brand", logo, h("span", "Strata")), runBox, nav, h("span.spacer"), finder, h("button.optional", {click: palette}, "Commands ", h("kbd", "Ctrl P")), h("span.segments", {role: "group", label: "Theme"}, theme("light", "Light"), theme("dark", "Dark"))), mainBox, footer);
}
function refreshFrame(subject) {
  const run = currentRun() || {}, to = (key) => hashOf({view: key, run: report.runs.length > 1 ? String(run.id) : ""}), first = subject || subjects.find((s) => s.run === run && s.detail >= 0) || subjects.find((s) => s.run === run) || subjects[0];
  const entry = (key, label, href) => h("a", {href, id: `nav-${key}`, "aria-current": (subject ? "subject" : state.view) === key ? "page" : null}, label);
  nav.replaceChildren(entry("overview", "Overview", to("overview")), first ? entry("subject", subjects.some((s) => s.pass) ? "Passes" : "Graphs", linkTo(first)) : "", ...[...views].filter(([, view]) => view.shows()).map(([key, view]) => entry(key, view.label, to(key))));
  const choose = (event) => {
    const next = report.runs[event.target.value], match = subject && subjects.find((s) => s.run === next && s.name === subject.name && s.graph === subject.graph && (s.pass ? s.pass.index : -1) === (subject.pass ? subject.pass.index : -1));
    if (subject) goTo(match || subjects.find((s) => s.run === next && s.detail >= 0) || subjects.find((s) => s.run === next) || subject);
    else go({run: String(next.id), graph: ""});
  };
  runBox.replaceChildren(report.runs.length > 1 ? h("select", {label: "Run", change: choose}, report.runs.map((r, i) => h("option", {value: i, selected: r === run}, `Run ${r.id} · rank ${r.rank}${r.kind === report.runs[0].kind ? "" : ` · ${plain(r.kind)}`}`))) : h("span.quiet.cut", plain(report.title)));
}

let renderNumber = 0;
/** Shows the state; what goes wrong is told where one looks. */
async function render() {
  try {
    await draw();
  } catch (error) {
    mainBox.replaceChildren(h("div.empty", {role: "alert"}, h("h2", "This view cannot be shown"), h("p", plain(error.message)), h("a", {href: "#overview"}, "To the overview")));
    document.documentElement.dataset.ready = String(renderNumber);
    throw error;
  }
}
async function draw() {
  keepView();
  const mine = ++renderNumber, subject = state.view === "subject" && subjects.length ? findSubject(state.ref) : null;
  const slow = setTimeout(() => say("Reading the graphs of this pass"), 300), detail = subject ? await loadDetail(subject.detail) : null;
  clearTimeout(slow);
  if (mine !== renderNumber) return;  // a newer state came meanwhile
  redraws = [];
  graphView = null;
  currentSubject = subject;
  currentDetail = detail;
  const active = document.activeElement && document.activeElement.id, scroll = mainBox.scrollTop;
  if (subject && subject.ref !== state.ref) note({ref: subject.ref});
  refreshFrame(subject);
  if (searchBox.value !== state.filter) searchBox.value = state.filter;
  const page = !report.runs.length ? nothing("This file holds no run.") : subject ? passView(subject) : await (views.has(state.view) ? views.get(state.view).render() : overview());
  if (mine !== renderNumber) return;
  const rows = $(".passes"), railScroll = rows ? rows.scrollTop : 0;
  mainBox.replaceChildren(page);
  mainBox.scrollTop = subject ? 0 : scroll;
  if ($(".passes")) { $(".passes").scrollTop = railScroll; const current = $(".passes [aria-current=true]"); if (current) current.scrollIntoView({block: "nearest"}); }
  const again = active && document.getElementById(active);
  if (again) again.focus();
  const words = subject && detail ? `${plain(subject.name)} · ${plural(detail.count, "node")}${detail.changes.length ? ` in both graphs · ${plural(detail.changes.length, "difference")}` : ""}` : `${plain(report.title)} · ${plural(report.runs.length, "run")}`;
  document.title = `${subject ? `${plain(subject.name)} – ` : ""}${plain(report.title)} – Strata`;
  footer.replaceChildren(h("span.cut", words), live, h("span.spacer"), h("span.keys", "j k passes   n change   1 2 3 mode   4 text   / search   ? keys"));
  redrawAll();
  performance.mark("ready");
  document.documentElement.dataset.ready = String(renderNumber);
}
let soon = 0;
function renderSoon() { clearTimeout(soon); soon = setTimeout(render, 120); }
function redrawAll() {
  for (const draw of redraws) draw();
  if (graphView) graphView.draw();
}

function stepPass(direction, changed) {
  const here = currentSubject, list = subjects.filter((s) => !changed || s.detail >= 0 || s === here), at = here ? list.indexOf(here) : direction > 0 ? -1 : list.length, next = list[at + direction];
  if (next) goTo(next);
  else say(direction > 0 ? "This is the last one" : "This is the first one");
}
function stepChange(direction) {
  const d = currentDetail;
  if (!d || !d.changes.length) { say("Nothing changed here"); return; }
  // Causes before consequences, as the table has them.
  const list = [...d.changes.filter((i) => d.status[i] !== DERIVED), ...d.changes.filter((i) => d.status[i] === DERIVED)];
  let at = list.indexOf(d.find(state.node));
  if (at < 0) at = direction > 0 ? -1 : list.length;
  const next = (at + direction + list.length) % list.length;
  selectNode(list[next], true);
  say(`change ${next + 1} of ${list.length}`);
}
/** The next connected change: what was rewritten together. */
function stepHunk(direction) {
  const d = currentDetail, list = d ? [...d.hunks].sort((a, b) => a.nodes[0] - b.nodes[0]) : [];
  if (!list.length) { say("Nothing changed here"); return; }
  const here = d.find(state.node), at = list.findIndex((hunk) => hunk.nodes.includes(here)), next = at < 0 ? (direction > 0 ? 0 : list.length - 1) : (at + direction + list.length) % list.length;
  selectNode(list[next].nodes[0], true);
  say(`${past(list[next].title)}, place ${next + 1} of ${list.length}`);
}
function stepRun(direction) {
  const runs = report.runs, next = runs[(runs.indexOf(currentRun()) + direction + runs.length) % runs.length];
  if (runs.length < 2) { say("One run in this file"); return; }
  $(".run select").value = String(runs.indexOf(next));
  $(".run select").dispatchEvent(new Event("change"));
}
/** h and l: closes the slab around the selection, opens the next closed one. */
function stepSlab(open) {
  if (!graphView) return;
  const view = graphView, around = view.selected >= 0 ? currentDetail.cluster[view.selected] : 0;
  const closed = view.scene.slabs.find((slab) => !slab.open && slab.differs) || view.scene.slabs.find((slab) => !slab.open), opened = [...view.scene.slabs].reverse().find((slab) => slab.open && slab.cluster > 0);
  const target = open ? closed && closed.cluster : view.open.has(around) && around > 0 ? around : opened && opened.cluster;
  if (target !== undefined) view.toggle(target);
}
const bookmarks = new Map();
let waiting = "";
const mode = (name) => () => go({tab: "graph", mode: name, cam: ""});
const onGraph = (action) => () => { if (!graphView) { say("Open the graph first"); return; } const words = action(graphView); if (words) say(words); };
/** [keys, what they do, action]; without action: described here, handled elsewhere. */
const KEY_MAP = [
  ["j", "Next pass", () => stepPass(1)], ["k", "Pass before", () => stepPass(-1)], ["J", "Next pass with changes", () => stepPass(1, true)], ["K", "Pass with changes before", () => stepPass(-1, true)],
  ["n", "Next change in this pass", () => stepChange(1)], ["N", "Change before", () => stepChange(-1)], ["]", "Next place that changed", () => stepHunk(1)], ["[", "Place that changed before", () => stepHunk(-1)], ["1", "Unified graph", mode("unified")], ["2", "Graphs side by side", mode("side")], ["3", "Blink between both graphs", mode("blink")], ["b", "Hold: the graph before (in blink)", null],
  ["4", "Text", () => go({tab: "text"})], ["5", "Table", () => go({tab: "table"})], ["6", "Patterns", () => go({tab: "patterns"})],
  ["/", "Search everything", () => { searchBox.focus(); searchBox.select(); }], ["F3", "Next hit (Shift: before)", null], ["c", "Changed nodes only, or everything", () => setHops(state.hops === "all" ? "1" : "all")],
  ["h", "Close the slab", () => stepSlab(false)], ["l", "Open a slab", () => stepSlab(true)], ["u", "Light what flows in, a step further each time", onGraph((v) => v.light(["inputs"]))], ["d", "Light what flows out", onGraph((v) => v.light(["outputs"]))], ["i", "Light the neighbourhood", onGraph((v) => v.light(["inputs", "outputs"]))], ["p", "Light a way between the last two nodes", onGraph((v) => v.path())],
  ["s", "Colour by the next property", () => { const list = ["", ...overlaysOf(currentDetail || {count: 0})]; setOverlay(list[(list.indexOf(state.overlay) + 1) % list.length]); render(); }],
  ["f", "Fit everything", onGraph((v) => v.fitAll())], ["g", "Go to a pass or node by name", () => palette()], ["+", "Zoom in", onGraph((v) => v.zoom(1.25))], ["-", "Zoom out", onGraph((v) => v.zoom(0.8))], ["0", "Zoom to 100 %", onGraph((v) => v.zoom(1 / v.scale))],
  ["r", "Next rank or run", () => stepRun(1)], ["R", "Rank or run before", () => stepRun(-1)], ["m x", "Bookmark under x", null], ["' x", "Go to bookmark x", null], ["y", "Copy a link to what is shown", () => copyLink()], ["Ctrl P", "Commands", null], ["?", "Keys", () => help()], ["Esc", "Clear the selection", null],
];
function help() {
  const close = () => dialog.close(), dialog = h("dialog.help", {label: "Keys", close: () => dialog.remove()}, h("h2", "Keys"), h("div.key-list", KEY_MAP.map(([key, words]) => h("div", h("kbd", key), h("span", words)))),
    h("p.quiet", "In the graph: drag moves, Ctrl and wheel zoom, a click opens a slab (Shift: all below), arrow keys walk from node to node, Enter opens."), h("button", {click: close}, "Close"));
  document.body.append(dialog);
  dialog.showModal();
}
function clearSelection() {
  $("#results").hidden = true;
  if (graphView && graphView.lit) { graphView.lit = null; graphView.draw(); return; }
  if (currentDetail) selectNode(-1);
}
function onKey(event) {
  const field = event.target instanceof HTMLInputElement && event.target.type !== "checkbox" || event.target instanceof HTMLSelectElement || event.target instanceof HTMLTextAreaElement;
  if ((event.ctrlKey || event.metaKey) && event.key === "p") { event.preventDefault(); palette(); return; }
  if (event.key === "F3") { event.preventDefault(); searchNext(event.shiftKey ? -1 : 1); return; }
  if (event.key === "Escape" && !$("dialog")) { if (field) event.target.blur(); clearSelection(); return; }
  if (field || event.ctrlKey || event.metaKey || event.altKey || $("dialog")) return;
  if (waiting) {
    if (waiting === "m") bookmarks.set(event.key, location.hash);
    else if (bookmarks.has(event.key)) location.hash = bookmarks.get(event.key);
    say(waiting === "m" ? `Bookmark ${event.key} set` : bookmarks.has(event.key) ? `Bookmark ${event.key}` : `No bookmark ${event.key}`);
    waiting = "";
    event.preventDefault();
    return;
  }
  if (event.key === "m" || event.key === "'") { waiting = event.key; event.preventDefault(); return; }
  if (event.key === "b" && graphView && state.mode === "blink") { graphView.before = true; graphView.draw(); return; }
  if (event.key === "o") { go({view: "overview"}); return; }
  const entry = KEY_MAP.find(([key]) => key === event.key);
  if (entry && entry[2]) { event.preventDefault(); entry[2](); }
}

async function start() {
  setTheme(initialTheme(), false);
  report = await inflate("data-main");
  collectSubjects();
  frame();
  setTheme(document.documentElement.dataset.theme, false);
  readHash();
  addEventListener("popstate", () => { readHash(); render(); });
  addEventListener("resize", redrawAll);
  addEventListener("keydown", onKey);
  addEventListener("keyup", (event) => { if (event.key === "b" && graphView && graphView.before) { graphView.before = false; graphView.draw(); } });
  await render();
}
start().catch((error) => {
  $("#app").replaceChildren(h("p.empty", `This report cannot be shown: ${error.message}. It needs a browser of 2023 or later.`));
  throw error;
});
