// What is told of the selected node.

function inspector(detail) {
  const box = h("aside", {class: "inspector", "aria-label": "Node"});
  const node = detail.byName.get(state.node);
  if (node === undefined) {
    box.append(h("p", {class: "quiet"}, detail.changes.length ? "Click a node, or press n for the first change of this pass." : "Click a node to see its fields, inputs and outputs."));
    return box;
  }
  const status = STATUS[detail.status[node]];
  box.append(h("h2", {}, detail.opLabel(node)), chip(status), h("div", {class: "mono"}, detail.was[node] >= 0 ? `${plain(detail.str(detail.was[node]))} → ${detail.nodeName(node)}` : detail.nodeName(node)));
  const rows = [];
  const fields = (detail.fieldsOf.get(node) || []).slice().sort((a, b) => a[3] - b[3]);
  for (const [path, before, after, derived] of fields) {
    rows.push(h("tr", {class: derived ? "derived" : "cause"}, h("td", {}, plain(detail.str(path))), h("td", {class: "mono old"}, before < 0 ? "–" : plain(detail.str(before))), h("td", {class: "mono new"}, after < 0 ? "–" : plain(detail.str(after)))));
  }
  const said = new Set(fields.map((field) => detail.str(field[0])));
  const one = (name, value) => { if (value && !said.has(name)) rows.push(h("tr", {}, h("td", {}, name), h("td", {class: "mono", colspan: "2"}, value))); };
  one("operator", said.has("target") ? "" : detail.opOf(node));
  one("type", detail.typeOf(node));
  one("module", detail.moduleOf(node));
  one("phase", PHASE[detail.phase[node]]);
  if (detail.seq[node] >= 0) one("seq", String(detail.seq[node]));
  box.append(h("h3", {}, "Fields"), h("table", {}, h("thead", {}, h("tr", {}, h("th", {}, "field"), h("th", {}, "before"), h("th", {}, "after"))), h("tbody", {}, rows)));
  const flow = (title, list) => {
    if (!list.length) return;
    box.append(h("h3", {}, `${title} ${list.length}`));
    for (const [other, edge] of list.slice(0, 30)) {
      const word = edge === ADDED ? "added" : edge === REMOVED ? "removed" : "same";
      box.append(h("button", {class: "flow", click: () => selectNode(other, true)}, h("span", {class: word}, edge === SAME ? "→" : SIGN[word]), h("span", {class: "mono cut"}, detail.nodeName(other)), h("span", {class: "spacer"}), h("span", {class: "mono quiet cut"}, shortType(detail.typeOf(other)))));
    }
    if (list.length > 30) box.append(h("p", {class: "quiet"}, `and ${list.length - 30} more`));
  };
  flow("Inputs", detail.inputs[node]);
  flow("Outputs", detail.outputs[node]);
  const lines = detail.linesOf.get(node);
  if (lines) for (const [word, line] of [["Before", lines[0]], ["After", lines[1]]]) if (line >= 0) box.append(h("h3", {}, word), h("pre", {}, plain(detail.str(line))));
  if (detail.place[node] >= 0) box.append(h("h3", {}, "Source"), h("div", {class: "small mono quiet"}, plain(detail.str(detail.place[node]))), detail.code[node] >= 0 ? h("pre", {}, plain(detail.str(detail.code[node]))) : "");
  const via = detail.viaOf.get(node);
  if (via) {
    const words = {id: "The same StableId on both sides", pin: "Pinned by hand", input: "An input at the same place", cone: "The whole computation above is the same", radius: "The neighbourhood is the same and unique", local: "Next to matched nodes", order: "Between matched nodes in order", name: "Only the name tells"};
    box.append(h("h3", {}, "Match"), h("p", {}, `${words[detail.str(via[0])] || detail.str(via[0])}; ${via[1] < 0.9 ? "likely the same node, " : ""}confidence ${via[1].toFixed(2)}.`));
  }
  return box;
}
function refreshInspector() {
  const old = document.querySelector(".inspector");
  if (old && currentDetail) old.replaceWith(inspector(currentDetail));
  for (const row of document.querySelectorAll("tr[data-node]")) row.setAttribute("aria-selected", String(Number(row.dataset.node) === currentDetail.byName.get(state.node)));
}
function selectNode(node, reveal = false) {
  state.node = currentDetail.str(currentDetail.name[node]);
  history.replaceState(null, "", hashOf(state));
  if (graphView && reveal) graphView.reveal(node);
  else if (graphView) graphView.select(node);
  refreshInspector();
}
function copyLink() {
  const text = location.href;
  if (navigator.clipboard) navigator.clipboard.writeText(text).catch(() => {});
  say("Link copied");
}
