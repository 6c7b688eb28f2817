// Keys: their actions, counts before them, bookmarks. The help in frame.html lists them.

import { copyLink, openCopies } from "./copy.js";
import { current } from "./current.js";
import { $, $$, copyText, say, stepOf } from "./dom.js";
import { around, past } from "./format.js";
import { mainBox, searchBox } from "./frame.js";
import {
  endLight,
  fitSelection,
  hide,
  isolate,
  light,
  lightWay,
  nextLabels,
  showAll,
  step,
  toggleHere,
  toggleSync,
  undo,
  walk,
} from "./graph_actions.js";
import { max, min } from "./math.js";
import { overlaysOf } from "./overlay.js";
import { Palette } from "./palette.js";
import { setHops, setOverlay } from "./pass.js";
import { currentRun, go, goTo, render, state } from "./route.js";
import { searchNext } from "./search.js";
import { selectNode } from "./selection.js";
import { DERIVED } from "./status.js";
import { report, subjects } from "./store.js";

function stepPass(n, changed) {
  const here = current.subject,
    list = subjects.filter((s) => !changed || s.detail >= 0 || s === here),
    at = here ? list.indexOf(here) : n > 0 ? -1 : list.length,
    next = list[max(0, min(list.length - 1, at + n))];
  if (next && next !== here) goTo(next);
  else say(n > 0 ? "This is the last one" : "This is the first one");
}
function stepChange(n) {
  const d = current.detail;
  if (!d || !d.changes.length) {
    say("Nothing changed here");
    return;
  }
  // Causes before consequences, as the table has them.
  const list = [
      ...d.changes.filter((i) => d.status[i] !== DERIVED),
      ...d.changes.filter((i) => d.status[i] === DERIVED),
    ],
    next = around(list, list.indexOf(d.find(state.node)), n);
  selectNode(list[next], true);
  say(`change ${next + 1} of ${list.length}`);
}
/** Goes to the next hunk, a connected set of changes. */
function stepHunk(n) {
  const d = current.detail, list = d ? [...d.hunks].sort((a, b) => a.nodes[0] - b.nodes[0]) : [];
  if (!list.length) {
    say("Nothing changed here");
    return;
  }
  const here = d.find(state.node),
    next = around(list, list.findIndex((hunk) => hunk.nodes.includes(here)), n);
  selectNode(list[next].nodes[0], true);
  say(`${past(list[next].title)}, place ${next + 1} of ${list.length}`);
}
function stepRun(n) {
  const runs = report.runs, select = $(".run select");
  if (!select) {
    say("One run in this file");
    return;
  }
  select.value = String(around(runs, runs.indexOf(currentRun()), n));
  select.dispatchEvent(new Event("change"));
}
/** The property after the one shown, and none at last. */
function stepOverlay(n) {
  const list = ["", ...overlaysOf(current.detail || { count: 0 })];
  setOverlay(list[around(list, list.indexOf(state.overlay), n)]);
  render();
}

const bookmarks = new Map();
const mode = (name) => () => go({ tab: "graph", mode: name, cam: "" });
/** An action on the drawn graph; its message goes to the footer. */
const onGraph = (action) => (n) =>
  say(current.graphView ? action(current.graphView, n) || "" : "Open the graph first");
const again = (action) =>
  onGraph((view, n) => {
    let words = "";
    for (let i = 0; i < n; i++) words = action(view);
    return words;
  });

/**
 * Actions of keys, with a count; of two keys the second goes the other way. frame.html has their
 * descriptions, with those of keys that are handled below.
 */
const ACTIONS = new Map(
  Object.entries({
    "j k": stepPass,
    "J K": (n) => stepPass(n, true),
    "n N": stepChange,
    "] [": stepHunk,
    "r R": stepRun,
    "o O": stepOverlay,
    "+ -": onGraph((v, n) => v.zoom(1.25 ** n)),
    0: onGraph((v) => v.zoom(1 / v.scale)),
    1: mode("unified"),
    2: mode("side"),
    3: mode("blink"),
    4: () => go({ tab: "text" }),
    "/": () => {
      searchBox.focus();
      searchBox.select();
    },
    c: () => setHops(state.hops === "all" ? "1" : "all"),
    g: openPalette,
    "?": help,
    h: onGraph((v) => step(v, false)),
    l: onGraph((v) => step(v, true)),
    f: onGraph(fitSelection),
    Space: onGraph((v) => v.fitAll()),
    s: onGraph(toggleSync),
    t: onGraph(nextLabels),
    b: onGraph((v) => v.showBefore(true)),
    p: onGraph(lightWay),
    u: again((v) => light(v, ["inputs"])),
    d: again((v) => light(v, ["outputs"])),
    i: again(isolate),
    x: onGraph(hide),
    X: onGraph(showAll),
    y: () => copyLink(),
    Y: () => copyText(state.node, "Name"),
  }).flatMap(([keys, action]) => keys.split(" ").map((key, i) => [key, (n) => action(i ? -n : n)])),
);
/** [words, first key, action] of all keys that have one. */
const keyCommands = () =>
  $$(".help kbd").map((kbd) => {
    const [key] = kbd.textContent.split(" ");
    return [kbd.nextSibling.textContent, key, ACTIONS.get(key)];
  }).filter(([, , action]) => action);
export function openPalette() {
  new Palette(keyCommands()).open();
}
function help() {
  $(".help button").onclick = () => $(".help").close();
  $(".help").showModal();
}
function clearSelection() {
  $("#results").hidden = true;
  if (current.graphView && endLight(current.graphView)) return;
  if (current.detail) selectNode(-1);
}

/**
 * Keys that begin something: a bookmark, or a count. Counts begin with 5 to 9, since 1 to 4 are
 * modes.
 */
let waiting = "", count = "";
export function onKey(event) {
  const { target } = event,
    key = event.key === " " ? "Space" : event.key,
    within = (selector) => target.closest && target.closest(selector),
    field = target instanceof HTMLInputElement && target.type !== "checkbox" ||
      target instanceof HTMLSelectElement || target instanceof HTMLTextAreaElement,
    dialog = $("dialog[open]");
  const act = (action, ...words) => {
    event.preventDefault();
    action(...words);
  };
  if (event.ctrlKey || event.metaKey) {
    const action = {
      p: openPalette,
      f: ACTIONS.get("/"),
      e: openCopies,
      z: field ? null : () => current.graphView && say(undo(current.graphView, event.shiftKey)),
    }[key.toLowerCase()];
    if (action && !dialog) {
      act(action);
    }
    return;
  }
  if (event.altKey) {
    const pages = stepOf(event, "ArrowLeft", "ArrowRight");
    if (pages) history.go(pages);
    return;
  }
  if (key === "F3") {
    act(searchNext, event.shiftKey ? -1 : 1);
    return;
  }
  if (dialog || event.defaultPrevented) return;
  if (key === "Escape") {
    count = waiting = "";
    if (field) target.blur();
    clearSelection();
    return;
  }
  // Buttons and links have Space and Enter for themselves.
  if (field || (key === "Space" || key === "Enter") && within("button, a, summary, tr")) return;
  if (waiting) act(bookmark, key);
  else if (key === "m" || key === "'") {
    act(() => {
      waiting = key;
    });
  } else if ((count ? /^\d$/ : /^[5-9]$/).test(key)) act(() => say(count += key));
  else if (key === "Enter" && current.graphView) {
    act(() => toggleHere(current.graphView, event.shiftKey));
  } else if (
    current.graphView && (target === document.body || target === mainBox || within(".panes")) &&
    walk(current.graphView, key)
  ) event.preventDefault();
  else if (ACTIONS.has(key)) {
    const times = min(999, Number(count) || 1);
    count = "";
    act(ACTIONS.get(key), times);
  }
}
function bookmark(key) {
  if (waiting === "m") bookmarks.set(key, location.hash);
  else if (bookmarks.has(key)) location.hash = bookmarks.get(key);
  say(
    waiting === "m"
      ? `Bookmark ${key} set`
      : bookmarks.has(key)
      ? `Bookmark ${key}`
      : `No bookmark ${key}`,
  );
  waiting = "";
}
