// A line over steps or nodes. Pointer and arrow keys walk along it.

import { hear, rectOf, say, stepOf, svg } from "./dom.js";
import { max, min, round } from "./math.js";

const HEIGHT = 240, LEFT = 72, RIGHT = 12, TOP = 20, BOTTOM = 24;

/** Pixels of values: the chart is as wide as it is shown, so that its words keep their size. */
class Scales {
  constructor(points, fill) {
    const ys = points.map(([, y]) => y);
    this.width = min(innerWidth, 1312) - (innerWidth > 900 ? 82 : 58);
    this.inner = this.width - LEFT - RIGHT;
    this.far = max(1, ...points.map(([x]) => x));
    this.low = fill ? 0 : min(...ys);
    this.high = max(...ys);
  }
  x(value) {
    return (LEFT + this.inner * value / this.far).toFixed(1);
  }
  y(value) {
    const share = (this.high - value) / (this.high - this.low || 1);
    return (TOP + (HEIGHT - TOP - BOTTOM) * share).toFixed(1);
  }
  path(points) {
    return points.map(([x, y]) => `${this.x(x)},${this.y(y)}`).join(" ");
  }
}

/**
 * `points` and `before`: [[x, y], …]. `marks`: [[x, y, words, class], …].
 * `at(i)` describes a point as [words, link]: a click or Enter follows the link.
 */
export function lineChart(points, { label, unit, left, right, before, fill, at, marks = [] }) {
  const scales = new Scales([...points, ...(before || [])], fill), { width } = scales;
  const chart = svg("svg", {
    class: "chart",
    viewBox: `0 0 ${width} ${HEIGHT}`,
    role: "img",
    "aria-label": label,
  });
  chart.append(...gridLines(scales, unit));
  if (fill) chart.append(area(scales, points));
  if (before) {
    chart.append(svg("polyline", { class: "line before", points: scales.path(before) }));
  }
  chart.append(svg("polyline", { class: "line", points: scales.path(points) }));
  for (const mark of marks) chart.append(...markOf(scales, mark));
  for (const [words, x, anchor] of [[left, LEFT, "start"], [right, width - RIGHT, "end"]]) {
    chart.append(svg("text", { x, y: HEIGHT - 6, "text-anchor": anchor }, words));
  }
  if (at) walkAlong(chart, scales, points, label, at);
  return chart;
}
const gridLines = (scales, unit) =>
  [scales.high, (scales.high + scales.low) / 2, scales.low].flatMap((value) => {
    const y = scales.y(value);
    return [
      svg("line", { class: "grid", x1: LEFT, x2: scales.width - RIGHT, y1: y, y2: y }),
      svg("text", { x: LEFT - 8, y: +y + 4, "text-anchor": "end" }, unit(value)),
    ];
  });
function area(scales, points) {
  const [last] = points.at(-1), bottom = scales.y(0);
  return svg("polygon", {
    class: "area",
    points: `${scales.x(0)},${bottom} ${scales.path(points)} ${scales.x(last)},${bottom}`,
  });
}
function markOf(scales, [px, py, words, kind = ""]) {
  const x = scales.x(px), y = scales.y(py), atEnd = px > scales.far * 0.75;
  return [
    svg("circle", { cx: x, cy: y, r: 3, class: kind }),
    svg("text", {
      x: +x + (atEnd ? -8 : 8),
      y: max(11, +y - 7),
      "text-anchor": atEnd ? "end" : "start",
      class: `mark ${kind}`,
    }, words),
  ];
}
/** A dot on the line with its words, which follows the pointer and the keys. */
function walkAlong(chart, scales, points, label, at) {
  const dot = svg("circle", { r: 4 }),
    words = svg("text", {
      class: "mark",
      x: (LEFT + scales.width - RIGHT) / 2,
      y: HEIGHT - 6,
      "text-anchor": "middle",
    }),
    here = svg("g", dot, words);
  let now = -1;
  const show = (i) => {
    now = max(0, min(points.length - 1, i));
    dot.setAttribute("cx", scales.x(points[now][0]));
    dot.setAttribute("cy", scales.y(points[now][1]));
    words.textContent = at(now)[0];
    chart.setAttribute("aria-label", `${label}. ${at(now)[0]}`);
    chart.append(here);
  };
  const follow = () => {
    if (now >= 0) location.hash = at(now)[1];
  };
  chart.setAttribute("tabindex", "0");
  hear(chart, "pointermove", (event) => {
    const box = rectOf(chart),
      k = min(box.width / scales.width, box.height / HEIGHT),
      x = (event.clientX - box.left - (box.width - scales.width * k) / 2) / k;
    show(round((x - LEFT) / scales.inner * (points.length - 1)));
  });
  hear(chart, "click", follow);
  hear(chart, "keydown", (event) => {
    const step = stepOf(event, "ArrowLeft", "ArrowRight") ||
      20 * stepOf(event, "PageDown", "PageUp");
    if (step) {
      show(now + step);
      say(at(now)[0]);
    }
    if (event.key === "Enter") follow();
  });
}
