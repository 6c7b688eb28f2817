// Search over everything, and the command palette.

import { $, $$, h, hear, plain, say, stepOf } from "./dom.js";
import { around, keyCommands } from "./keys.js";
import { badgeText } from "./status.js";
import { brackets, searchRecords } from "./log_data.js";
import { copies } from "./copy.js";
import { current, redrawAll } from "./current.js";
import { go, goTo, linkTo, note, renderSoon, state, views } from "./route.js";
import { loadDetail, nameOf, str, subjects } from "./store.js";
import { matcher, plural, shortOp, shortType } from "./format.js";
import { selectNode, showNode } from "./inspector.js";
import { setTheme } from "./theme.js";

let hits = [];
/** Runs as one types: hits are framed in the graph, and filter tables and text. */
export function doSearch(text) {
  const begin = performance.now();
  hits = current.detail ? current.detail.search(text) : [];
  if (current.graphView) {
    current.graphView.hits = text ? new Set(hits) : null;
    current.graphView.draw();
  }
  const fits = matcher(text),
    passes = text ? subjects.filter((s) => fits(`${s.name} ${s.graph} ${s.options || ""}`)) : [];
  showResults(text, passes, searchRecords(text), performance.now() - begin);
  note({ filter: text });
  if (
    state.view === "operators" || state.view === "log" ||
    (state.view === "subject" && state.tab !== "graph")
  ) renderSoon();
}
function showResults(text, passes, records, ms) {
  const box = $("#results"), d = current.detail;
  box.hidden = !text;
  if (!text) return;
  const fits = matcher(text);
  // Why it is a hit: the property that matched.
  const why = (i) =>
    fits(str(d.name[i]))
      ? shortType(d.typeOf(i))
      : [d.opOf(i), d.moduleOf(i), d.typeOf(i)].find(fits) || "";
  box.replaceChildren(
    h(
      "div.group",
      `${d ? plural(hits.length, "node") : "no graph"}${
        passes.length ? `, ${plural(passes.length, "pass", "passes")}` : ""
      } · ${ms.toFixed(0)} ms`,
    ),
    ...passes.slice(0, 6).map((s) =>
      h(
        "a.item",
        { href: linkTo(s) },
        h("span", nameOf(s)),
        h("span.quiet", s.pass ? "pass" : "graph"),
      )
    ),
    ...records.slice(0, 6).map(([record, href]) =>
      h(
        "a.item",
        { href },
        h("span.cut", record.name),
        h("span.quiet", `record ${record.compile && brackets(record.compile)}`),
      )
    ),
    ...hits.slice(0, 12).map((i) =>
      h(
        "button.item",
        { click: () => showNode(i) },
        h("span.mono.cut", d.nodeName(i)),
        h("span.quiet.cut", `${shortOp(d.opOf(i))} · ${why(i)}`),
      )
    ),
    hits.length ? h("div.group", "Enter for the next, Shift Enter for the one before") : h(
      "button.item",
      { click: () => searchElsewhere(text) },
      h(
        "span",
        passes.length ? "Look for nodes in all passes" : "Nothing here; look in all passes",
      ),
      h("span"),
    ),
  );
}
/** The first pass, after this one and around, that has a node that matches. */
async function searchElsewhere(text) {
  const start = subjects.indexOf(current.subject);
  for (let k = 1; k <= subjects.length; k++) {
    const subject = subjects[(start + k + subjects.length) % subjects.length],
      detail = await loadDetail(subject.detail),
      found = detail ? detail.search(text) : [];
    if (!found.length) continue;
    await goTo(subject, { node: str(detail.name[found[0]]) });
    say(`${plural(found.length, "node")} in ${plain(subject.name)}`);
    return;
  }
  say(`Nothing matches “${text}”`);
}
export function searchNext(direction) {
  if (!state.filter) return;
  if (!hits.length) {
    searchElsewhere(state.filter);
    return;
  }
  const next = around(hits, hits.indexOf(current.detail.find(state.node)), direction);
  selectNode(hits[next], true);
  say(`hit ${next + 1} of ${hits.length}: ${current.detail.nodeName(hits[next])}`);
}

// --- Palette ---

/** [group, title, key, action] */
function commands() {
  const list = [
    ["Commands", "Overview", "", () => go({ view: "overview" })],
    ...[...views].filter(([, view]) => view.shows()).map((
      [key, view],
    ) => ["Commands", view.label, "", () => go({ view: key })]),
  ];
  for (const [words, key, action] of keyCommands()) {
    list.push(["Commands", words, key, () => action(1)]);
  }
  if (current.graphView) {
    for (const [words, open] of [["Open every slab", true], ["Close every slab", false]]) {
      list.push(["Commands", words, "", () => current.graphView.openAll(open)]);
    }
  }
  list.push(["Commands", "Switch between light and dark", "", () => {
    setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark", true);
    redrawAll();
  }]);
  if (current.detail && state.view === "subject") {
    for (const [words, action] of copies(current.subject, current.detail)) {
      list.push(["Commands", words, "", action]);
    }
  }
  for (const s of subjects) {
    list.push([
      "Passes and graphs",
      nameOf(s),
      badgeText(s.counts) || (s.status === "failed" ? "failed" : "no change"),
      () => goTo(s),
    ]);
  }
  return list;
}
/** A number is a line, where lines are shown: of code, or of a pass after it. */
function lineCommand(number) {
  const line = $$(".text .nr + .nr").find((nr) => nr.textContent === number),
    jump = state.view === "log" ? () => go({ open: number }) : () => {
      selectNode(Number(line.parentElement.dataset.node));
      line.scrollIntoView({ block: "center" });
    };
  return /^\d+$/.test(number) && (line || $(".code"))
    ? [["Lines", `Line ${number}`, "", jump]]
    : [];
}
/** Letters in order, marked; null when they are not there. */
function fuzzy(text, letters) {
  const out = [];
  let i = 0;
  for (const char of text) {
    const hit = i < letters.length && char.toLowerCase() === letters[i].toLowerCase();
    if (hit) i++;
    out.push(hit ? h("mark", char) : char);
  }
  return i === letters.length ? out : null;
}
export function palette() {
  const input = h("input", {
    type: "text",
    placeholder: "Type a command, pass or node",
    label: "Command, pass or node",
    role: "combobox",
    "aria-expanded": "true",
    "aria-controls": "choices",
    autocomplete: "off",
  });
  const list = h("div.choices", { id: "choices", role: "listbox", label: "Choices" }),
    dialog = h(
      "dialog.palette",
      {
        label: "Command palette",
        close: () => dialog.remove(),
        click: (event) => {
          if (event.target === dialog) dialog.close();
        },
      },
      input,
      list,
      h("div.hints.quiet.small", "↑ ↓ choose, Enter open, Esc close"),
    );
  let items = [], at = 0;
  const run = (item) => {
    dialog.close();
    item[3]();
  };
  const mark = (next) => {
    at = Math.max(0, Math.min(items.length - 1, next));
    $$("[role=option]", list).forEach((option, i) => {
      option.setAttribute("aria-selected", String(i === at));
      if (i === at) {
        option.scrollIntoView({ block: "nearest" });
        input.setAttribute("aria-activedescendant", option.id);
      }
    });
  };
  const fill = () => {
    const letters = input.value.replace(/\s/g, ""),
      d = current.detail,
      nodes = d && letters
        ? d.search(input.value.trim()).slice(0, 20).map((
          i,
        ) => ["Nodes", d.nodeName(i), d.moduleOf(i), () => showNode(i)])
        : [];
    items = [
      ...lineCommand(letters),
      ...commands().filter(([, title]) => fuzzy(title, letters)),
      ...nodes,
    ].slice(0, 60);
    let group = "";
    list.replaceChildren(
      ...items.flatMap((item, i) => {
        const [of, title, key] = item,
          head = of === group ? [] : [h("div.group", { role: "presentation" }, of)];
        group = of;
        return [
          ...head,
          h(
            "div.item",
            {
              role: "option",
              id: `choice-${i}`,
              click: () => run(item),
            },
            h("span.cut", ...(fuzzy(title, letters) || [title])),
            key.length === 1 ? h("kbd", key) : h("span.quiet.cut", key),
          ),
        ];
      }),
      items.length ? "" : h("div.group", `Nothing matches “${input.value}”.`),
    );
    mark(0);
  };
  hear(input, "input", fill);
  hear(input, "keydown", (event) => {
    const step = stepOf(event, "ArrowUp", "ArrowDown");
    if (step) mark(at + step);
    if (event.key === "Enter" && items[at]) {
      event.preventDefault();
      run(items[at]);
    }
  });
  document.body.append(dialog);
  dialog.showModal();
  fill();
  input.focus();
}
