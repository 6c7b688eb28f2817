// The data in the file, decoded when they are first shown.

import { plain } from "./dom.js";
import { fxLine, matcher, shortOp } from "./format.js";
import { rangeTest } from "./overlay.js";
import { CHANGED, countsOf, REMOVED, SAME, STATUS } from "./status.js";

export async function inflate(id) {
  const element = document.getElementById(id);
  if (!element) return null;
  const packed = Uint8Array.from(atob(element.textContent), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

/** Calls `make` once; later calls get the same promise. */
function once(make) {
  let result = null;
  return () => result ||= make();
}

/** A list of texts that stands in several parts. */
async function loadTexts(name) {
  const parts = [];
  for (let i = 0; document.getElementById(`${name}-${i}`); i++) parts.push(inflate(`${name}-${i}`));
  return (await Promise.all(parts)).flat();
}
let names = [];
const loadNames = once(async () => {
  names = await loadTexts("names");
});
const loadLineTexts = once(() => loadTexts("texts"));
/** Memory, operators and collectives of each graph. */
export const loadFacts = once(async () => await inflate("facts") || []);

const undo = (list) => {
  let sum = 0;
  return Int32Array.from(list, (step) => sum += step);
};
const sparse = (list) => new Map(list || []);
/** [key, …rest] entries by key. */
const keyed = (list) => new Map((list || []).map(([key, ...rest]) => [key, rest]));

/**
 * A scene and the data of its nodes; scene_json.h documents the packed form. Arrays have an entry
 * per node, maps have the nodes with a value.
 */
class Detail {
  constructor(data, index) {
    this.index = index;
    this.count = data.nodes;
    for (const key of ["op", "type", "phase", "place", "code", "status", "backward", "distance"]) {
      this[key] = data[key];
    }
    for (const key of ["name", "seq", "cluster", "order"]) this[key] = undo(data[key]);
    this.life = data.life ? undo(data.life) : null;
    for (
      const key of [
        "was",
        "tags",
        "time",
        "bytes",
        "flops",
        "stream",
        "measured",
        "ranks",
        "kernel",
      ]
    ) this[key] = sparse(data[key]);
    for (const key of ["via", "made", "gone", "values", "across"]) this[key] = keyed(data[key]);
    this.cost = keyed(data.cost);
    this.costs = data.costs;
    this.ranksLeftOut = data.ranks_left_out;
    this.fields = keyed(data.fields);
    this.twoLanes = data.two_lanes;
    this.patterns = data.patterns;
    this.hunks = data.hunks.map(([pattern, title, where, nodes]) => ({
      pattern,
      title: str(title),
      where: str(where),
      nodes,
    }));
    this.relations = data.relations.map(([kind, before, after, confidence]) => ({
      kind,
      before,
      after,
      confidence,
    }));
    this.readEdges(data.edges);
    this.readClusters(data.clusters);
    this.changes = [];
    for (let i = 0; i < this.count; i++) if (this.status[i] !== SAME) this.changes.push(i);
    this.counts = countsOf(this, this.changes);
  }

  /** Edges stand by consumer: how many, then (distance to the producer, status) of each. */
  readEdges(packed) {
    const from = [],
      status = [],
      begin = new Int32Array(this.count + 1),
      users = new Int32Array(this.count + 1);
    let at = 0;
    for (let i = 0; i < this.count; i++) {
      for (let left = packed[at++]; left > 0; left--) {
        users[i - packed[at] + 1]++;
        from.push(i - packed[at++]);
        status.push(packed[at++]);
      }
      begin[i + 1] = from.length;
    }
    for (let i = 0; i < this.count; i++) users[i + 1] += users[i];
    const to = new Int32Array(from.length),
      edge = new Int32Array(from.length),
      next = users.slice();
    for (let i = 0; i < this.count; i++) {
      for (let k = begin[i]; k < begin[i + 1]; k++) {
        const slot = next[from[k]]++;
        to[slot] = i;
        edge[slot] = k;
      }
    }
    Object.assign(this, { from, edgeStatus: status, begin, users, to, edge });
  }
  /** [[other node, status], …] */
  inputs(i) {
    const list = [];
    for (let k = this.begin[i]; k < this.begin[i + 1]; k++) {
      list.push([this.from[k], this.edgeStatus[k]]);
    }
    return list;
  }
  outputs(i) {
    const list = [];
    for (let k = this.users[i]; k < this.users[i + 1]; k++) {
      list.push([this.to[k], this.edgeStatus[this.edge[k]]]);
    }
    return list;
  }

  readClusters(packed) {
    this.clusters = packed.map((c) => ({
      ...c,
      path: str(c.path),
      label: str(c.label),
      children: [],
    }));
    this.clusters.forEach((c, i) => {
      if (c.parent >= 0) this.clusters[c.parent].children.push(i);
      c.differs = c.counts.slice(1).some((count) => count > 0);
      for (const block of c.blocks) {
        if (!block.places) continue;
        const list = [];
        for (let k = 0, node = 0; k < block.places.length; k += 4) {
          node += block.places[k];
          list.push({
            node,
            backward: block.places[k + 1],
            row: block.places[k + 2],
            x: block.places[k + 3],
          });
        }
        block.places = list;
      }
    });
    this.clusterOfPath = new Map(this.clusters.map((c, i) => [c.path, i]));
  }
  /** Nodes of a cluster with everything below, in program order. */
  nodesOf(cluster) {
    const c = this.clusters[cluster];
    return c.nodes ||= this.order.slice(c.range[0], c.range[1]).sort();
  }

  nodeName(i) {
    return plain(str(this.name[i]));
  }
  opOf(i) {
    return plain(str(this.op[i]));
  }
  typeOf(i) {
    return plain(str(this.type[i]));
  }
  moduleOf(i) {
    return plain(this.clusters[this.cluster[i]].path);
  }
  statusOf(i) {
    return STATUS[this.status[i]];
  }
  /** "key=value" of each tag; one empty text for a node without tags. */
  tagsOf(i) {
    return str(this.tags.get(i) ?? -1).split("\n").map(plain);
  }
  /** The ranks that have the node, where not all have it. */
  ranksOf(i) {
    return str(this.ranks.get(i) ?? -1);
  }
  /** "view → reshape" when the operator changed. */
  opLabel(i) {
    const target = this.status[i] === CHANGED &&
      (this.fields.get(i) || []).find(([path]) => str(path) === "target");
    if (target && target[1] >= 0 && target[2] >= 0) {
      return `${shortOp(plain(str(target[1])))} → ${shortOp(plain(str(target[2])))}`;
    }
    return shortOp(this.opOf(i));
  }
  /** The node of that name; one that exists after the pass, if there are two. */
  find(name) {
    if (!this.byName) {
      this.byName = new Map();
      for (let i = this.count - 1; i >= 0; i--) {
        if (this.status[i] !== REMOVED || !this.byName.has(str(this.name[i]))) {
          this.byName.set(str(this.name[i]), i);
        }
      }
    }
    return this.byName.get(name);
  }
  ofLife(life) {
    this.byLife ||= new Map(Array.from(this.life || [], (l, i) => [l, i]));
    return this.byLife.get(life);
  }
  /** Nodes whose name, operator, module or type matches. Each text is looked at once. */
  search(text) {
    if (!text) return [];
    const fits = matcher(text), known = new Map(), hits = [], inRange = rangeTest(this, text);
    const test = (index) => {
      if (index < 0) return false;
      let hit = known.get(index);
      if (hit === undefined) known.set(index, hit = fits(str(index)));
      return hit;
    };
    const modules = this.clusters.map((c) => fits(c.path));
    for (let i = 0; i < this.count; i++) {
      if (
        inRange
          ? inRange(i)
          : fits(str(this.name[i])) || test(this.op[i]) || modules[this.cluster[i]] ||
            test(this.type[i])
      ) hits.push(i);
    }
    return hits;
  }
}
export const str = (index) => index < 0 ? "" : names[index];

const details = new Map();
export async function loadDetail(index) {
  if (index < 0) return null;
  if (!details.has(index)) {
    details.set(
      index,
      Promise.all([inflate(`data-${index}`), loadNames()]).then(([data]) =>
        data ? new Detail(data, index) : null
      ),
    );
  }
  return details.get(index);
}

/** Printed lines of a scene: {native(i, before), fx(i, before)}; null when they were left out. */
export async function loadLines(detail) {
  detail.lines ||= Promise.all([inflate(`lines-${detail.index}`), loadLineTexts()]).then(
    ([data, texts]) => {
      if (!data) return null;
      const text = (index) => index < 0 ? "" : plain(texts[index]);
      const after = undo(data.after),
        before = keyed(data.before),
        odd = new Map(data.fx.map(([node, side, line]) => [node * 2 + side, line]));
      const line = (i, old) => text(old && before.has(i) ? before.get(i)[0] : after[i]);
      const type = (i, old) => old && before.has(i) ? text(before.get(i)[1]) : detail.typeOf(i);
      return {
        native(i, old) {
          const words = line(i, old), of = type(i, old);
          return words && of ? `${words} : ${of}` : words;
        },
        fx(i, old) {
          // A side that looks as the other one has its odd line there.
          const side = old || detail.status[i] === REMOVED ? 0 : 1;
          const own = odd.get(i * 2 + side) ?? (before.has(i) ? undefined : odd.get(i * 2 + 1));
          return own !== undefined ? text(own) : fxLine(line(i, old), type(i, old));
        },
      };
    },
  );
  return detail.lines;
}

/**
 * The data of a report, as tlparse-export/report/report_json.cc writes them.
 *
 * `counts` are [added, removed, changed, moved, derived]. `detail` is the number of a scene, -1 for
 * none; `facts` an entry of the counts of all graphs. `ref` selects a graph of the trace, `base`
 * the graph that it is compared with.
 *
 * @typedef {{nodes: number, fingerprint: string, facts: number, peak: number, flops: number}}
 *   Snapshot
 * @typedef {{title: string, where: string, except: [string, string][], places: number,
 *   nodes: number, counts: number[]}} Cause
 * @typedef {{index: number, name: string, options: string, graph: string, status: string,
 *   ms: number, before: Snapshot, after: Snapshot, counts: number[], causes: Cause[],
 *   error: string, reproduce: string, ref: string, detail: number}} Pass
 * @typedef {{name: string, ref: string, last: Snapshot, detail: number}} Graph
 * @typedef {{from: string, graph: string, before: Snapshot, after: Snapshot, counts: number[],
 *   ref: string, base: string, compared: boolean, detail: number}} Stage
 * @typedef {{graph: string, first: number, last: number, fingerprint: string, ref: string}}
 *   Executed
 * @typedef {{id: number, kind: string, status: string, source: string, command: string,
 *   pipeline: string, rank: number, world: number, graphs: Graph[], passes: Pass[],
 *   stages: Stage[], executed: Executed[], steps: [number, ?number, ?number, number][]}} Run
 * @typedef {{name: string, graph: string, index: number, run: number, before: Snapshot,
 *   after: Snapshot, counts: number[], ref: string, base: string, detail: number}} RankPair
 * @typedef {{title: string, runs: Run[], rank_pairs: RankPair[], code: Array, log_tables: Array,
 *   barcodes: string[], left_out: string[]}} Report
 */

/** @type {Report} */
export let report = null;
/** Everything with a page of its own: passes, and graphs that no pass shows. */
export const subjects = [];

export async function loadReport() {
  report = await inflate("data-main");
  collectSubjects();
}
function collectSubjects() {
  for (const run of report.runs) {
    for (const pass of run.passes) subjects.push({ ...pass, run, pass, last: pass.after });
    for (const graph of run.graphs) {
      if (graph.detail >= 0) {
        subjects.push({
          ...graph,
          run,
          group: "other graphs",
          graph: graph.name,
          counts: [0, 0, 0, 0, 0],
        });
      }
    }
    for (const stage of run.stages) {
      if (stage.detail >= 0) {
        subjects.push({
          ...stage,
          run,
          group: "stages of compilation",
          name: `${stage.from} → ${stage.graph}`,
          last: stage.after,
        });
      }
    }
    for (const pair of report.rank_pairs) {
      if (pair.run === run.id && pair.detail >= 0) {
        subjects.push({ ...pair, run, group: "between ranks", last: pair.after });
      }
    }
  }
}
/** Whether two runs have these at the same place. */
export const isTwin = (a, b) => a.graph === b.graph && a.group === b.group && a.index === b.index;
/** "#3 dce" */
export const titleOf = (pass) => `#${pass.index} ${plain(pass.name)}`;
export const nameOf = (subject) => subject.pass ? titleOf(subject) : plain(subject.name);
export const isQuiet = (pass) => pass.detail < 0 && pass.status !== "failed";
/** Names of a run's graphs; the one that most passes work on first. */
export function graphsOf(run) {
  const count = (name) => run.passes.filter((pass) => pass.graph === name).length;
  return run.graphs.map((graph) => graph.name).sort((a, b) => count(b) - count(a));
}
/** The snapshots of a graph: before its first pass, then after each of its passes. */
export function snapshotsOf(run, graph) {
  const passes = run.passes.filter((pass) => pass.graph === graph && pass.after.facts >= 0);
  if (passes.length) {
    return [
      { ...passes[0].before, name: "before the first pass" },
      ...passes.map((pass) => ({ ...pass.after, name: titleOf(pass), pass })),
    ];
  }
  const own = run.graphs.find((g) => g.name === graph);
  return own ? [{ ...own.last, name: "before the first pass" }] : [];
}
