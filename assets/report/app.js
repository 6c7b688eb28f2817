// The frame of the page, keys, and the start.

let app = null, mainBox = null, footer = null, live = null, searchBox = null;
const say = (text) => { live.textContent = text; };

function frame() {
  const logo = svg("svg", {width: 22, height: 18, viewBox: "0 0 22 18", "aria-hidden": "true"});
  for (const [x, y, width, color] of [[0, 2, 14, "ink"], [6, 8, 16, "accent"], [0, 14, 18, "ink"]]) logo.append(svg("rect", {x, y, width, height: 2.5, rx: 1, fill: `var(--${color})`}));
  searchBox = h("input", {class: "search", type: "search", placeholder: "Search nodes, ops, modules", "aria-label": "Search nodes, operators, modules (regular expression)",
    input: () => { state.filter = searchBox.value; if (state.view === "subject" && state.tab !== "graph") renderSoon(); }, keydown: (event) => { if (event.key === "Enter") searchNext(event.shiftKey ? -1 : 1); }});
  const select = report.runs.length > 1 ? h("select", {"aria-label": "Run", change: (event) => { const run = report.runs[event.target.value]; const first = subjects.find((s) => s.run === run && s.detail >= 0) || subjects.find((s) => s.run === run); if (first) go({view: "subject", ref: first.ref, node: ""}); }},
    report.runs.map((run, i) => h("option", {value: i}, `Run ${run.id} · rank ${run.rank} · ${plain(run.kind)}`))) : h("span", {class: "quiet cut"}, plain(report.title));
  const theme = (name, label) => h("button", {"data-theme-button": name, "aria-pressed": "false", click: () => { setTheme(name, true); redrawAll(); }}, label);
  mainBox = h("main", {});
  live = h("span", {role: "status", "aria-live": "polite"});
  footer = h("footer", {class: "bottom"});
  app.append(h("header", {class: "top"}, h("div", {class: "brand"}, logo, h("span", {}, "Strata")), select,
    h("nav", {class: "tabs", role: "tablist"}, h("button", {role: "tab", id: "tab-overview", click: () => go({view: "overview", node: ""})}, "Overview"),
      subjects.length ? h("button", {role: "tab", id: "tab-subject", click: () => go({view: "subject", ref: (currentSubject || subjects.find((s) => s.detail >= 0) || subjects[0]).ref})}, subjects.some((s) => s.pass) ? "Passes" : "Graphs") : null,
      [...views].filter(([, view]) => view.shows()).map(([key, view]) => h("button", {role: "tab", id: `tab-${key}`, click: () => go({view: key, node: ""})}, view.label))),
    h("span", {class: "spacer"}), searchBox, h("span", {class: "segments"}, theme("light", "Light"), theme("dark", "Dark"))), mainBox, footer);
}

function searchNext(direction) {
  if (!currentDetail || !state.filter) return;
  const fits = matcher(state.filter), d = currentDetail, from = d.byName.get(state.node) ?? (direction > 0 ? -1 : d.count);
  for (let k = 1; k <= d.count; k++) {
    const i = (from + direction * k + 2 * d.count) % d.count;
    if (fits(`${d.nodeName(i)} ${d.opOf(i)} ${d.moduleOf(i)} ${d.typeOf(i)}`)) { selectNode(i, true); say(`found ${d.nodeName(i)}`); return; }
  }
  say(`Nothing matches “${state.filter}”`);
}

let renderNumber = 0;
async function render() {
  const mine = ++renderNumber;
  const subject = state.view === "subject" && subjects.length ? findSubject(state.ref) : null;
  const detail = subject ? await loadDetail(subject.detail) : null;
  if (mine !== renderNumber) return;  // a newer state came meanwhile
  redraws = [];
  graphView = null;
  currentSubject = subject || currentSubject;
  currentDetail = detail;
  if (subject) state.ref = subject.ref;
  const scroll = mainBox.scrollTop;
  const page = subject ? passView(subject) : views.has(state.view) ? await views.get(state.view).render() : overview();
  if (mine !== renderNumber) return;
  mainBox.replaceChildren(page);
  if (!subject) mainBox.scrollTop = scroll;
  for (const tab of document.querySelectorAll("header nav button")) tab.setAttribute("aria-selected", String(tab.id === `tab-${subject ? "subject" : state.view}`));
  const words = subject && detail ? `${plain(subject.name)} · ${plural(detail.count, "node")}${subject.pass ? ` in both graphs · ${plural(detail.changes.length, "difference")}` : ""}` : `${plain(report.title)} · ${plural(report.runs.length, "run")}`;
  footer.replaceChildren(h("span", {class: "cut"}, words), live, h("span", {class: "spacer"}), h("span", {class: "keys"}, "j k passes   n change   1 2 3 4 tabs   / search   ? keys"));
  redrawAll();
  document.documentElement.dataset.ready = String(renderNumber);
}
let soon = 0;
function renderSoon() { clearTimeout(soon); soon = setTimeout(render, 120); }
function redrawAll() {
  for (const draw of redraws) draw();
  if (graphView) graphView.draw();
}

function help() {
  const keys = [["j k", "next, previous pass"], ["J K", "next, previous pass with changes"], ["n N", "next, previous change"], ["1 2 3 4", "graph, table, text, patterns"], ["/", "search; Enter goes to the next match"], ["c", "changed only, or everything"], ["+ − 0", "zoom in, out, to 100 %"], ["f", "fit"], ["y", "copy a link to what is shown"], ["o", "overview"], ["Esc", "clear the selection"]];
  const dialog = h("dialog", {close: () => dialog.remove()}, h("h2", {}, "Keys"), h("table", {}, h("tbody", {}, keys.map(([key, meaning]) => h("tr", {}, h("td", {}, h("kbd", {}, key)), h("td", {}, meaning))))), h("p", {class: "quiet"}, "Drag to move, Ctrl and wheel to zoom, click a slab to open it."), h("button", {click: () => dialog.close()}, "Close"));
  document.body.append(dialog);
  dialog.showModal();
}
function stepPass(direction, changed) {
  const list = subjects.filter((s) => !changed || s.detail >= 0 || s === currentSubject);
  const at = state.view === "subject" ? list.indexOf(currentSubject) : direction > 0 ? -1 : list.length;
  const next = list[at + direction];
  if (next) go({view: "subject", ref: next.ref, node: "", all: false});
}
function stepChange(direction) {
  if (!currentDetail || !currentDetail.changes.length) return;
  const changes = currentDetail.changes, node = currentDetail.byName.get(state.node);
  let at = changes.indexOf(node);
  if (at < 0) at = direction > 0 ? -1 : changes.length;
  const next = (at + direction + changes.length) % changes.length;
  selectNode(changes[next], true);
  say(`change ${next + 1} of ${changes.length}`);
}
function onKey(event) {
  if (event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement || event.ctrlKey || event.metaKey || event.altKey) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const actions = {
    j: () => stepPass(1), k: () => stepPass(-1), J: () => stepPass(1, true), K: () => stepPass(-1, true), n: () => stepChange(1), N: () => stepChange(-1),
    "1": () => go({tab: "graph"}), "2": () => go({tab: "table"}), "3": () => go({tab: "text"}), "4": () => go({tab: "patterns"}),
    "/": () => searchBox.focus(), "?": help, y: copyLink, o: () => go({view: "overview", node: ""}),
    f: () => graphView && graphView.fitAll(), "+": () => graphView && graphView.zoom(1.25), "-": () => graphView && graphView.zoom(0.8), "0": () => graphView && graphView.zoom(1 / graphView.scale),
    c: () => { if (graphView) { graphView.all = state.all = !graphView.all; graphView.layout(); go({}, true); } },
    Escape: () => { state.node = ""; if (graphView) graphView.selected = -1; history.replaceState(null, "", hashOf(state)); refreshInspector(); if (graphView) graphView.draw(); },
  };
  if (actions[event.key]) { event.preventDefault(); actions[event.key](); }
}

async function start() {
  app = document.getElementById("app");
  setTheme(initialTheme(), false);
  report = await inflate("data-main");
  collectSubjects();
  frame();
  setTheme(document.documentElement.dataset.theme, false);
  readHash();
  addEventListener("hashchange", () => { readHash(); render(); });
  addEventListener("popstate", () => { readHash(); render(); });
  addEventListener("resize", redrawAll);
  addEventListener("keydown", onKey);
  await render();
}
start().catch((error) => {
  document.getElementById("app").replaceChildren(h("p", {class: "empty"}, `This report cannot be shown: ${error.message}. It needs a browser of 2023 or later.`));
});
