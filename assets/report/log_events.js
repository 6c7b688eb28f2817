// The timeline of events of a log.

import { button, h, save, svg } from "./dom.js";
import { table } from "./elements.js";
import { number, plural, time } from "./format.js";
import { floor, max, min } from "./math.js";

/** Begin and end as one: [{name, start, length, depth, thread, args}], times in ms. */
function spansOf(events) {
  const spans = [], open = new Map();
  for (const event of events) {
    const thread = `${event.pid}/${event.tid}`, stack = open.get(thread) || [];
    open.set(thread, stack);
    const span = {
      name: String(event.name),
      thread,
      start: Number(event.ts) / 1000,
      length: Number(event.dur || 0) / 1000,
      args: event.args || {},
    };
    if (event.ph === "B") stack.push(span);
    if (event.ph === "X" || event.ph === "i") spans.push(span);
    const at = event.ph === "E" ? stack.findLastIndex((other) => other.name === span.name) : -1;
    if (at < 0) continue;
    const [begun] = stack.splice(at, 1);
    spans.push({
      ...begun,
      length: span.start - begun.start,
      args: { ...begun.args, ...span.args },
    });
  }
  spans.sort((a, b) => a.start - b.start || b.length - a.length);
  const ends = new Map();
  for (const span of spans) {
    const above = (ends.get(span.thread) || []).filter((end) => end > span.start + 1e-6);
    span.depth = above.length;
    ends.set(span.thread, [...above, span.start + span.length]);
  }
  return spans;
}
export async function eventPart(log, wanted) {
  const events = (await log.loadEvents()).filter(wanted),
    spans = spansOf(events).filter((s) => Number.isFinite(s.start) && Number.isFinite(s.length));
  const saveEvents = () =>
    save(
      new Blob([JSON.stringify(events)], { type: "application/json" }),
      "chromium_events.json",
    );
  const saver = button(saveEvents, "Save for Perfetto");
  if (!spans.length) {
    return h("div.box.pad", `${plural(events.length, "event")} without a duration. `, saver);
  }
  return h("div.box.pad", flameChart(spans), timeByName(spans), h("p", saver));
}
const WIDTH = 1000, ROW = 18, MAX_SPANS = 3000;
/** The spans of each thread, nested ones below; the longest are drawn. */
function flameChart(spans) {
  const begin = min(...spans.map((s) => s.start)),
    end = max(...spans.map((s) => s.start + s.length)),
    duration = end - begin,
    { tops, height } = threadRows(spans);
  const x = (t) => (t - begin) / (duration || 1) * WIDTH,
    longest = [...spans].sort((a, b) => b.length - a.length).slice(0, MAX_SPANS);
  return svg(
    "svg",
    {
      class: "flame",
      viewBox: `0 0 ${WIDTH} ${height + 16}`,
      role: "img",
      "aria-label": `${plural(spans.length, "span")} over ${time(duration)}`,
    },
    longest.map((span) => flameBar(span, x, tops.get(span.thread) + span.depth * ROW)),
    svg("text", { class: "axis", x: 0, y: height + 12 }, "0"),
    svg("text", { class: "axis", x: WIDTH, y: height + 12, "text-anchor": "end" }, time(duration)),
  );
}
/** Where the rows of each thread begin. */
function threadRows(spans) {
  const tops = new Map();
  let height = 0;
  for (const thread of new Set(spans.map((s) => s.thread))) {
    const depths = spans.filter((s) => s.thread === thread).map((s) => s.depth);
    tops.set(thread, height);
    height += (max(...depths) + 1) * ROW + 6;
  }
  return { tops, height };
}
function flameBar(span, x, y) {
  const left = x(span.start),
    width = max(0.5, x(span.start + span.length) - left),
    letters = floor(width / 6.2) - 1,
    words = span.name.length > letters ? `${span.name.slice(0, letters - 1)}…` : span.name;
  return svg(
    "g",
    svg("title", `${span.name}, ${time(span.length)}`),
    svg("rect", { x: left.toFixed(2), y, width: width.toFixed(2), height: ROW - 2 }),
    letters > 3 && svg("text", { x: (left + 4).toFixed(2), y: y + 12 }, words),
  );
}
function timeByName(spans) {
  const sums = new Map();
  for (const { name, length } of spans) {
    const [count, sum] = sums.get(name) || [0, 0];
    sums.set(name, [count + 1, sum + length]);
  }
  const longest = [...sums].sort(([, [, a]], [, [, b]]) => b - a),
    rows = longest.slice(0, 200).map(([name, [count, sum]]) => [name, number(count), time(sum)]);
  return h(
    "details",
    h("summary", `Time by name, ${plural(longest.length, "name")}`),
    table(["=~event", "#times", "#together"], rows),
  );
}
