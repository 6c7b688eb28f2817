// Copies: links, commands, Markdown, SVG and PNG, FX and native text.

import { current } from "./current.js";
import { $, copyText, h, plain, save, say, stepOf } from "./dom.js";
import { around, past } from "./format.js";
import { ceil, max, min } from "./math.js";
import { paintScene } from "./paint.js";
import { findSubject, hashOf, state } from "./route.js";
import { ADDED, badgeText, DERIVED, REMOVED, statusWord } from "./status.js";
import { loadDetail, loadLines, report, str, subjects } from "./store.js";
import { colors } from "./theme.js";
import { whatChanged, whereWords } from "./words.js";

const cell = (text) => plain(String(text)).replace(/[\\`*_|<>[\]~]/g, "\\$&");
export function markdownTable(detail, nodes) {
  const rows = nodes.slice(0, 500).map((i) =>
    `| ${statusWord(detail.statusOf(i))} | ${cell(detail.nodeName(i))} | ${
      cell(detail.opLabel(i))
    } | ${cell(whatChanged(detail, i) || "–")} | ${cell(detail.moduleOf(i) || "–")} |`
  );
  return [
    "| status | node | operator | what changed | module |",
    "|---|---|---|---|---|",
    ...rows,
    nodes.length > 500 ? `\n${nodes.length - 500} more.` : "",
  ].join("\n");
}
function markdown(subject, detail) {
  const lines = [
    `### ${subject.pass ? `#${subject.index} ` : ""}${cell(subject.name)}  ${
      badgeText(detail.counts)
    }`,
    "",
  ];
  for (const cause of subject.pass ? subject.pass.causes : []) {
    lines.push(
      `- **${cell(past(cause.title))}**: ${cell(whereWords(cause))} (${badgeText(cause.counts)})`,
    );
  }
  return [
    ...lines,
    "",
    markdownTable(detail, detail.changes.filter((i) => detail.status[i] !== DERIVED)),
    "",
    location.href,
  ].join("\n");
}
/** A graph as text, null when its lines were left out: after the pass, or before it. */
async function graphText(detail, spelling, old) {
  const lines = await loadLines(detail);
  if (!lines) return null;
  const fx = spelling === "fx",
    out = [],
    scopes = new Map(),
    split = (i) => {
      const name = detail.nodeName(i), at = name.lastIndexOf("/") + 1;
      return [name.slice(0, at), name.slice(at)];
    };
  for (let i = 0; i < detail.count; i++) {
    const [scope] = split(i);
    if (detail.status[i] !== (old ? ADDED : REMOVED)) {
      if (!scopes.has(scope)) scopes.set(scope, []);
      scopes.get(scope).push(i);
    }
  }
  // A body is a class inside the class that refers to it; in native text it is a graph of its own.
  for (const [scope, nodes] of fx ? [...scopes].sort(([a], [b]) => a < b ? -1 : 1) : scopes) {
    const path = scope.split("/"),
      name = path[path.length - 2],
      pad = "    ".repeat(path.length - 1),
      isInput = (i) => str(detail.op[i]) === "input";
    if (fx) {
      out.push(
        ...out.length ? [""] : [],
        `${pad}class ${name || "GraphModule"}(torch.nn.Module):`,
        `${pad}    def forward(self, ${
          nodes.filter(isInput).map((i) =>
            `${split(i)[1]}${detail.typeOf(i) ? `: "${detail.typeOf(i)}"` : ""}`
          ).join(", ")
        }):`,
      );
    } else {out.push(
        `graph ${name ? `${name} body` : current.subject ? plain(current.subject.graph) : "step"}`,
      );}
    for (const i of nodes) {
      const line = fx && isInput(i) ? "" : lines[spelling](i, old);
      if (line) out.push(fx ? `${pad}        ${line}` : `  ${line}`);
    }
  }
  return out.join("\n") + "\n";
}
export async function copyGraph(detail, spelling = state.spelling) {
  const text = await graphText(detail, spelling);
  if (text === null) say("The lines were left out of this report");
  else await copyText(text, spelling === "fx" ? "FX text" : "Native text");
}
/** FX text of the graph that a REF names; a pass that changed nothing has none of its own. */
export async function fxText(ref) {
  const subject = findSubject(ref),
    own = subjects.filter((s) =>
      s.run === subject.run && s.graph === subject.graph && s.detail >= 0
    ),
    next = subject.detail < 0 && own.find((s) => s.pass && s.pass.index > subject.pass.index),
    shown = subject.detail < 0 ? next || own[own.length - 1] : subject;
  return shown
    ? graphText(
      await loadDetail(shown.detail),
      "fx",
      next ? true : subject === shown && /:before$/.test(ref),
    )
    : null;
}

const tenths = (value) => +value.toFixed(1);
/** Takes the calls of a canvas and makes an SVG file of them. */
class SvgContext {
  constructor() {
    Object.assign(this, {
      out: [],
      path: "",
      fillStyle: "",
      strokeStyle: "",
      lineWidth: 1,
      font: "",
      globalAlpha: 1,
      dash: [],
      measure: document.createElement("canvas").getContext("2d"),
    });
  }
  setLineDash(dash) {
    this.dash = dash;
  }
  measureText(text) {
    this.measure.font = this.font;
    return this.measure.measureText(text);
  }
  beginPath() {
    this.path = "";
    this.at = null;
  }
  moveTo(x, y) {
    this.add("M", x, y);
  }
  lineTo(x, y) {
    this.add("L", x, y);
  }
  bezierCurveTo(...points) {
    this.add("C", ...points);
  }
  add(letter, ...numbers) {
    this.path += letter + numbers.map(tenths).join(" ");
    this.at = numbers.slice(-2);
  }
  /**
   * A corner between two straight lines at right angles: a curve that starts and ends a radius
   * away.
   */
  arcTo(x1, y1, x2, y2, radius) {
    const [x0, y0] = this.at,
      toward = (ax, ay) => {
        const length = Math.hypot(ax - x1, ay - y1) || 1;
        return [x1 + (ax - x1) / length * radius, y1 + (ay - y1) / length * radius];
      };
    this.lineTo(...toward(x0, y0));
    this.add("Q", x1, y1, ...toward(x2, y2));
  }
  arc(x, y, r, from, to) {
    const end = [x + r * Math.cos(to), y + r * Math.sin(to)],
      start = [x + r * Math.cos(from), y + r * Math.sin(from)];
    this.path += `${this.at ? "L" : "M"}${start.map(tenths).join(" ")}A${r} ${r} 0 ${
      to - from > Math.PI ? 1 : 0
    } 1 ${end.map(tenths).join(" ")}`;
    this.at = end;
  }
  roundRect(x, y, width, height, r) {
    this.path += `M${x + r} ${y}h${width - 2 * r}a${r} ${r} 0 0 1 ${r} ${r}v${
      height - 2 * r
    }a${r} ${r} 0 0 1 ${-r} ${r}h${2 * r - width}a${r} ${r} 0 0 1 ${-r} ${-r}v${
      2 * r - height
    }a${r} ${r} 0 0 1 ${r} ${-r}z`;
  }
  element(tag, props, text) {
    this.out.push(
      `<${tag} ${
        Object.entries(props).map(([key, value]) =>
          `${key}="${typeof value === "number" ? tenths(value) : escapeXml(value)}"`
        ).join(" ")
      }${this.globalAlpha < 1 ? ` opacity="${this.globalAlpha}"` : ""}${
        text === undefined ? "/>" : `>${escapeXml(text)}</${tag}>`
      }`,
    );
  }
  fill() {
    this.element("path", { d: this.path, fill: this.fillStyle });
  }
  stroke() {
    this.element("path", {
      d: this.path,
      fill: "none",
      stroke: this.strokeStyle,
      "stroke-width": this.lineWidth,
      ...(this.dash.length ? { "stroke-dasharray": this.dash.join(" ") } : {}),
    });
  }
  fillRect(x, y, width, height) {
    this.element("rect", {
      x,
      y,
      width: max(0, width),
      height: max(0, height),
      fill: this.fillStyle,
    });
  }
  fillText(text, x, y) {
    const [, weight, size, family] = /^(\d+) ([\d.]+)px (.*)$/.exec(this.font);
    this.element("text", {
      x,
      y,
      "font-weight": weight,
      "font-size": size,
      "font-family": family,
      fill: this.fillStyle,
      "dominant-baseline": "central",
    }, text);
  }
}
const escapeXml = (text) => plain(text).replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);
/** What is open of the scene, whole, at zoom 1. */
function sceneSvg(view) {
  const c = new SvgContext(),
    { width, height } = view.scene,
    look = { ...view.look(view.panes[0]), scale: 1, hover: null };
  paintScene(c, view.scene, look, () => true);
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="-16 -16 ${ceil(width + 32)} ${
    ceil(height + 32)
  }" width="${ceil(width + 32)}" height="${
    ceil(height + 32)
  }"><rect x="-16" y="-16" width="100%" height="100%" fill="${colors.bg}"/>${
    c.out.join("\n")
  }</svg>\n`;
}
function savePng(view, name) {
  const { width, height } = view.scene,
    scale = min(2, 8000 / width, 8000 / height),
    canvas = document.createElement("canvas");
  canvas.width = ceil((width + 32) * scale);
  canvas.height = ceil((height + 32) * scale);
  const c = canvas.getContext("2d");
  c.fillStyle = colors.bg;
  c.fillRect(0, 0, canvas.width, canvas.height);
  c.setTransform(scale, 0, 0, scale, 16 * scale, 16 * scale);
  paintScene(
    c,
    view.scene,
    { ...view.look(view.panes[0]), scale: 1, hover: null },
    () => true,
  );
  canvas.toBlob((blob) => save(blob, name));
}
export function copyLink() {
  const { graphView: view } = current,
    shown = view ? { ...state, cam: view.camera(), open: view.openPaths().join(";") } : state;
  copyText(location.href.split("#")[0] + hashOf(shown), "Link");
}

/** A REF of this file as a word of a shell. */
export const refWord = (selector) => `'${`${report.title}#${selector}`.replaceAll("'", "'\\''")}'`;
/** The command that prints the same difference or graph. */
function commandOf({ run, base, pass, ref }) {
  if (run.kind === "diff" || run.kind === "graph") return run.command;
  return base
    ? `strata diff ${refWord(base)} ${refWord(ref)}`
    : pass
    ? `strata diff ${refWord(`${ref}:before`)} ${refWord(`${ref}:after`)}`
    : `strata show ${refWord(ref)}`;
}

/** [words, action] */
export function copies(subject, detail) {
  const file = plain(subject.name).replace(/[^\w.-]+/g, "_").slice(0, 80),
    list = [
      ["Copy link", copyLink],
      ["Copy command", () => copyText(commandOf(subject), "Command")],
      ["Copy as Markdown", () => copyText(markdown(subject, detail), "Markdown")],
      ["Copy graph as FX", () => copyGraph(detail, "fx")],
      ["Copy graph as native text", () => copyGraph(detail, "native")],
    ];
  const { graphView: view } = current;
  if (view) {
    const saveSvg = () =>
      save(new Blob([sceneSvg(view)], { type: "image/svg+xml" }), `${file}.svg`);
    list.push(
      ["Copy picture as SVG", () => copyText(sceneSvg(view), "SVG")],
      ["Save picture as SVG", saveSvg],
      ["Save picture as PNG", () => savePng(view, `${file}.png`)],
    );
  }
  return list;
}
export function copyMenu(subject, detail) {
  const menu = h("div.menu", { role: "menu", hidden: true }),
    opener = h("button", {
      "aria-haspopup": "menu",
      "aria-expanded": "false",
      click: () => {
        if (menu.hidden) fill();
        toggle(menu.hidden);
      },
    }, "Copy");
  const toggle = (open) => {
    menu.hidden = !open;
    opener.setAttribute("aria-expanded", String(open));
    if (open) menu.firstChild.focus();
  };
  const fill = () =>
    menu.replaceChildren(
      ...copies(subject, detail).map(([words, action]) =>
        h("button", {
          role: "menuitem",
          click: () => {
            toggle(false);
            action();
          },
        }, words)
      ),
    );
  const box = h(
    "span.menu-box",
    {
      keydown: (event) => {
        const items = [...menu.children], at = items.indexOf(document.activeElement);
        if (event.key === "Escape" && !menu.hidden) {
          event.stopPropagation();
          toggle(false);
          opener.focus();
        }
        const step = at < 0 ? 0 : stepOf(event, "ArrowUp", "ArrowDown");
        if (step) items[around(items, at, step)].focus();
      },
      focusout: (event) => {
        if (!box.contains(event.relatedTarget)) toggle(false);
      },
    },
    opener,
    menu,
  );
  return box;
}
export function openCopies() {
  const opener = $(".menu-box > button");
  if (opener) opener.click();
  else say("Open a pass or a graph first");
}
