// The timeline of events of a log.

import { button, h, save, svg } from "./dom.js";
import { number, plural, time } from "./format.js";
import { table } from "./overview.js";

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
    spans = spansOf(events).filter((span) =>
      Number.isFinite(span.start) && Number.isFinite(span.length)
    );
  const all = button(
    () =>
      save(
        new Blob([JSON.stringify(events)], { type: "application/json" }),
        "chromium_events.json",
      ),
    "Save for Perfetto",
  );
  if (!spans.length) {
    return h("div.box.pad", `${plural(events.length, "event")} without a duration. `, all);
  }
  const begin = Math.min(...spans.map((s) => s.start)),
    end = Math.max(...spans.map((s) => s.start + s.length)),
    width = 1000,
    row = 18,
    threads = [...new Set(spans.map((s) => s.thread))];
  let top = 0;
  const tops = new Map(threads.map((thread) => {
    const mine = top;
    top += (Math.max(...spans.filter((s) => s.thread === thread).map((s) => s.depth)) + 1) * row +
      6;
    return [thread, mine];
  }));
  const chart = svg("svg", {
      class: "flame",
      viewBox: `0 0 ${width} ${top + 16}`,
      role: "img",
      "aria-label": `${plural(spans.length, "span")} over ${time(end - begin)}`,
    }),
    x = (t) => (t - begin) / (end - begin || 1) * width;
  for (const span of [...spans].sort((a, b) => b.length - a.length).slice(0, 3000)) {
    const left = x(span.start),
      size = Math.max(0.5, x(span.start + span.length) - left),
      y = tops.get(span.thread) + span.depth * row,
      group = svg(
        "g",
        svg("title", `${span.name}, ${time(span.length)}`),
        svg("rect", { x: left.toFixed(2), y, width: size.toFixed(2), height: row - 2 }),
      );
    const letters = Math.floor(size / 6.2) - 1;
    if (letters > 3) {
      group.append(
        svg(
          "text",
          { x: (left + 4).toFixed(2), y: y + 12 },
          span.name.length > letters ? `${span.name.slice(0, letters - 1)}…` : span.name,
        ),
      );
    }
    chart.append(group);
  }
  chart.append(
    svg("text", { class: "axis", x: 0, y: top + 12 }, "0"),
    svg("text", { class: "axis", x: width, y: top + 12, "text-anchor": "end" }, time(end - begin)),
  );
  const names = new Map();
  for (const span of spans) {
    const sum = names.get(span.name) || [0, 0];
    names.set(span.name, [sum[0] + 1, sum[1] + span.length]);
  }
  const rows = [...names].sort((a, b) => b[1][1] - a[1][1]);
  return h(
    "div.box.pad",
    chart,
    h(
      "details",
      h("summary", `Time by name, ${plural(rows.length, "name")}`),
      table(
        ["=~event", "#times", "#together"],
        rows.slice(0, 200).map(([name, [count, sum]]) => [name, number(count), time(sum)]),
      ),
    ),
    h("p", all),
  );
}
