// The command palette: commands, passes, nodes and lines by name.

import { copies } from "./copy.js";
import { current, redrawAll } from "./current.js";
import { $, $$, h, stepOf } from "./dom.js";
import { openAll } from "./graph_actions.js";
import { max, min } from "./math.js";
import { go, goTo, state, views } from "./route.js";
import { selectNode, showNode } from "./selection.js";
import { badgeText } from "./status.js";
import { nameOf, subjects } from "./store.js";
import { setTheme } from "./theme.js";

/** [group, title, key, action] */
function commands(keyCommands) {
  const list = [
    ["Commands", "Overview", "", () => go({ view: "overview" })],
    ...[...views].filter(([, view]) => view.shows()).map((
      [key, view],
    ) => ["Commands", view.label, "", () => go({ view: key })]),
  ];
  for (const [words, key, action] of keyCommands) {
    list.push(["Commands", words, key, () => action(1)]);
  }
  if (current.graphView) {
    for (const [words, open] of [["Open every slab", true], ["Close every slab", false]]) {
      list.push(["Commands", words, "", () => openAll(current.graphView, open)]);
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
const HINTS = "↑ ↓ choose, Enter open, Esc close";
/** `keyCommands`: [words, key, action] of each key that has an action. */
export class Palette {
  constructor(keyCommands) {
    Object.assign(this, { keyCommands, items: [], at: 0 });
    this.input = h("input", {
      type: "text",
      placeholder: "Type a command, pass or node",
      label: "Command, pass or node",
      role: "combobox",
      "aria-expanded": "true",
      "aria-controls": "choices",
      autocomplete: "off",
      input: () => this.fill(),
      keydown: (event) => this.onKey(event),
    });
    this.list = h("div.choices", { id: "choices", role: "listbox", label: "Choices" });
    this.dialog = h(
      "dialog.palette",
      {
        label: "Command palette",
        close: () => this.dialog.remove(),
        click: (event) => {
          if (event.target === this.dialog) this.dialog.close();
        },
      },
      this.input,
      this.list,
      h("div.hints.quiet.small", HINTS),
    );
  }
  open() {
    document.body.append(this.dialog);
    this.dialog.showModal();
    this.fill();
    this.input.focus();
  }
  run([, , , action]) {
    this.dialog.close();
    action();
  }
  onKey(event) {
    const step = stepOf(event, "ArrowUp", "ArrowDown");
    if (step) this.mark(this.at + step);
    if (event.key === "Enter" && this.items[this.at]) {
      event.preventDefault();
      this.run(this.items[this.at]);
    }
  }
  mark(next) {
    const options = $$("[role=option]", this.list);
    this.at = max(0, min(options.length - 1, next));
    for (const [i, option] of options.entries()) {
      option.setAttribute("aria-selected", String(i === this.at));
    }
    if (!options.length) return;
    options[this.at].scrollIntoView({ block: "nearest" });
    this.input.setAttribute("aria-activedescendant", options[this.at].id);
  }
  fill() {
    const text = this.input.value, letters = text.replace(/\s/g, "");
    this.items = [
      ...lineCommand(letters),
      ...commands(this.keyCommands).filter(([, title]) => fuzzy(title, letters)),
      ...letters ? nodeCommands(text.trim()) : [],
    ].slice(0, 60);
    const rows = this.items.map((item, i) => this.option(item, `choice-${i}`, letters)),
      startsGroup = (i) => i === 0 || this.items[i][0] !== this.items[i - 1][0];
    const heading = (i) => h("div.group", { role: "presentation" }, this.items[i][0]);
    this.list.replaceChildren(
      ...rows.flatMap((row, i) => startsGroup(i) ? [heading(i), row] : [row]),
      rows.length ? "" : h("div.group", `Nothing matches “${text}”.`),
    );
    this.mark(0);
  }
  option(item, id, letters) {
    const [, title, key] = item;
    return h(
      "div.item",
      { role: "option", id, click: () => this.run(item) },
      h("span.cut", ...(fuzzy(title, letters) || [title])),
      key.length === 1 ? h("kbd", key) : h("span.quiet.cut", key),
    );
  }
}
function nodeCommands(text) {
  const { detail } = current;
  if (!detail) return [];
  return detail.search(text).slice(0, 20).map((
    i,
  ) => ["Nodes", detail.nodeName(i), detail.moduleOf(i), () => showNode(i)]);
}
