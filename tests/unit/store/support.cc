#include "tests/unit/store/support.h"

#include <fstream>
#include <iterator>

#include <fmt/format.h>

#include "ir/rewriter.h"
#include "ir/text/native_text.h"
#include "store/trace_reader.h"
#include "store/trace_writer.h"

namespace strata::store_test {
namespace {

constexpr std::string_view kOps[] = {"aten.mm.default", "aten.add.Tensor", "aten.view.default",
                                     "_c10d_functional.all_reduce.default", "my.op\"quoted\""};
constexpr std::string_view kModules[] = {"", "layers.0.attention.wq", "layers.1.feed_forward.w1",
                                         "norm"};

/// Adds nodes to one graph.
class Builder {
 public:
  Builder(Graph& graph, Random& random)
      : graph_(graph), module_(graph.module()), random_(random), rewriter_(graph) {}

  void Placeholders(size_t count) {
    for (size_t i = 0; i < count; ++i) {
      const TypeId type = RandomType();
      NodeSpec spec;
      spec.kind = NodeKind::kPlaceholder;
      spec.results = {&type, 1};
      const NodeId id = rewriter_.Create(spec, From::Source());
      values_.push_back(graph_.result(id));
    }
  }

  void Nodes(size_t count, GraphId body) {
    for (size_t i = 0; i < count; ++i) {
      switch (Below(random_, 12)) {
        case 0:
          Tuple();
          break;
        case 1:
          Odd();
          break;
        case 2:
          if (body.valid()) {
            HigherOrder(body);
            break;
          }
          [[fallthrough]];
        default:
          Call();
      }
    }
  }

  void Output() {
    const Arg list = rewriter_.MakeSpan(ArgKind::kList, {Arg(Pick()), Arg(Pick()), Arg::None()});
    NodeSpec spec;
    spec.kind = NodeKind::kOutput;
    spec.args = {&list, 1};
    rewriter_.Create(spec, From::Source());
  }

  /// A call with operands from before the cursor.
  NodeId Call() {
    std::vector<Arg> args = {Pick(), RandomArg(0), RandomArg(0)};
    std::vector<NamedArg> kwargs;
    if (Below(random_, 4) == 0) kwargs.push_back({module_.Intern("alpha"), RandomArg(0)});
    const TypeId type = Below(random_, 10) == 0 ? TypeId{} : RandomType();
    NodeSpec spec;
    spec.op = kOps[Below(random_, std::size(kOps))];
    spec.args = args;
    spec.kwargs = kwargs;
    spec.results = {&type, 1};
    const NodeId id = rewriter_.Create(spec, From::Source());
    if (Below(random_, 5) == 0) rewriter_.SetAlias(graph_.result(id), args[0].value());
    Decorate(id);
    values_.push_back(graph_.result(id));
    return id;
  }

  void HigherOrder(GraphId body) {
    NodeSpec attr;
    const Arg graph = Arg::Graph(body);
    attr.kind = NodeKind::kGetAttr;
    attr.op = "body";
    attr.args = {&graph, 1};
    const NodeId read = rewriter_.Create(attr, From::Source());
    NodeSpec spec;
    const std::vector<Arg> args = {
        graph_.result(read), rewriter_.MakeSpan(ArgKind::kTuple, {Arg(Pick()), Arg::Graph(body)})};
    spec.op = "higher_order.cond";
    spec.args = args;
    const NodeId id = rewriter_.Create(spec, From::Source());
    values_.push_back(graph_.result(id));
  }

 private:
  ValueId Pick() { return values_[Below(random_, values_.size())]; }

  void Tuple() {
    const std::vector<TypeId> types = {RandomType(), TypeId{}, RandomType()};
    const std::vector<Arg> args = {Pick(), Arg::Int(3)};
    NodeSpec spec;
    spec.op = "aten.split.Tensor";
    spec.args = args;
    spec.results = types;
    spec.returns_tuple = true;
    const NodeId id = rewriter_.Create(spec, From::Source());
    for (size_t i : {size_t{0}, size_t{2}}) {
      rewriter_.SetElementName(graph_.result(id, i),
                               "getitem_" + std::to_string(graph_.node_bound() * 3 + int(i)));
      rewriter_.SetAlias(graph_.result(id, i), args[0].value());
      values_.push_back(graph_.result(id, i));
    }
    Decorate(id);
  }

  /// Nodes of the rarer kinds.
  void Odd() {
    constexpr NodeKind kKinds[] = {NodeKind::kGetAttr, NodeKind::kCallMethod,
                                   NodeKind::kCallModule};
    const NodeKind kind = kKinds[Below(random_, 3)];
    std::vector<Arg> args;
    if (kind != NodeKind::kGetAttr) args.push_back(Pick());
    NodeSpec spec;
    spec.kind = kind;
    spec.op = "_tensor_constant0";
    spec.args = args;
    const NodeId id = rewriter_.Create(spec, From::Source());
    values_.push_back(graph_.result(id));
  }

  void Decorate(NodeId id) {
    rewriter_.SetModule(id, kModules[Below(random_, std::size(kModules))]);
    rewriter_.SetPhase(id, static_cast<Phase>(Below(random_, 5)));
    if (Below(random_, 3) == 0) rewriter_.SetSeqNr(id, static_cast<int32_t>(Below(random_, 900)));
    if (Below(random_, 6) == 0) rewriter_.SetStream(id, 3);
    if (Below(random_, 6) == 0) rewriter_.SetTextLine(id, graph_.node_bound());
    if (Below(random_, 6) == 0) rewriter_.SetAttribute(id, "recompute", "must_save");
    if (Below(random_, 9) == 0) rewriter_.SetAttribute(id, "chunk", "line\nbreak");
    if (Below(random_, 3) == 0) {
      rewriter_.SetLoc(
          id,
          module_.InternLoc({module_.Intern("model.py"), static_cast<int32_t>(Below(random_, 300)),
                             module_.Intern("forward"), module_.Intern("return self.wq(x)")}));
    }
  }

  DimId RandomDim() {
    DimTable& dims = module_.dims();
    const DimId symbol = dims.Sym("s" + std::to_string(Below(random_, 3)));
    switch (Below(random_, 6)) {
      case 0:
        return symbol;
      case 1:
        return dims.Mul(dims.Const(4), symbol);
      case 2:
        return dims.FloorDiv(dims.Add(symbol, dims.Const(7)), dims.Const(8));
      default:
        return dims.Const(static_cast<int64_t>(Below(random_, 4096)));
    }
  }

  TypeId RandomType() {
    Type type;
    switch (Below(random_, 12)) {
      case 0:
        type.kind = TypeKind::kSymInt;
        type.dim = module_.dims().Sym("s1");
        return module_.types().Intern(type);
      case 1:
        type.kind = TypeKind::kOpaque;
        type.text = module_.Intern("List of 3");
        return module_.types().Intern(type);
      default:
        break;
    }
    type.dtype = static_cast<DType>(1 + Below(random_, 28));
    type.has_strides = Below(random_, 2) == 0;
    if (Below(random_, 2) == 0) type.device = module_.Intern("cuda:0");
    for (size_t i = Below(random_, 4); i > 0; --i) {
      type.sizes.push_back(RandomDim());
      if (type.has_strides) type.strides.push_back(RandomDim());
    }
    if (Below(random_, 5) == 0) {
      type.wrapper = module_.Intern("DTensor");
      type.placements = {{Placement::Kind::kShard, 1, 0, {}},
                         {Placement::Kind::kShard, 0, 2, {}},
                         {Placement::Kind::kPartial, 0, 0, module_.Intern("sum")},
                         {}};
    }
    return module_.types().Intern(type);
  }

  Arg RandomArg(int depth) {
    switch (Below(random_, depth > 2 ? 11 : 15)) {
      case 0:
        return Arg::None();
      case 1:
        return Arg::Int(static_cast<int64_t>(random_()));
      case 2: {
        constexpr double kFloats[] = {0.1, -0.0, 1e300, INFINITY, 5.0};
        return Arg::Float(kFloats[Below(random_, std::size(kFloats))]);
      }
      case 3:
        return Arg::Bool(Below(random_, 2) == 0);
      case 4:
        return Arg::Dim(RandomDim());
      case 5:
        return Arg::String(module_.Intern("it's \"text\"\n"));
      case 6:
        return Arg::DType(static_cast<DType>(1 + Below(random_, 28)));
      case 7:
        return Arg::Device(module_.Intern("cuda:1"));
      case 8:
        return Arg::Raw(module_.Intern("torch.strided"));
      case 9:
      case 10:
        return Pick();
      case 11:
        return rewriter_.MakeSpan(ArgKind::kList, {RandomArg(depth + 1), RandomArg(depth + 1)});
      case 12:
        return rewriter_.MakeSpan(ArgKind::kTuple, {RandomArg(depth + 1)});
      case 13:
        return rewriter_.MakeSpan(ArgKind::kDict,
                                  {Arg::String(module_.Intern("key")), RandomArg(depth + 1)});
      default:
        return rewriter_.MakeSpan(ArgKind::kCall,
                                  {Arg::String(module_.Intern("slice")), Arg::None(), Pick()});
    }
  }

  Graph& graph_;
  Module& module_;
  Random& random_;
  Rewriter rewriter_;
  std::vector<ValueId> values_;
};

NodeId RandomNode(const Graph& graph, Random& random) {
  const std::vector<NodeId> nodes = graph.nodes().Snapshot();
  return nodes[Below(random, nodes.size())];
}

}  // namespace

std::unique_ptr<Module> MakeModule(uint64_t seed, size_t nodes) {
  Random random(seed);
  auto module = std::make_unique<Module>();
  module->dims().SetSymbol({module->Intern("s0"), 128, 2, 4096, true});
  module->dims().SetSymbol({module->Intern("s1"), std::nullopt, 0, INT64_MAX, false});
  Graph& step = module->AddGraph("step");
  GraphId body;
  for (const char* name : {"inner_graph", "true_graph_0"}) {
    Graph& graph = module->AddGraph(name, true);
    Builder builder(graph, random);
    builder.Placeholders(2);
    builder.Nodes(4, {});
    if (body.valid()) builder.HigherOrder(body);
    builder.Output();
    body = graph.id();
  }
  Builder builder(step, random);
  builder.Placeholders(4);
  builder.HigherOrder(body);
  builder.Nodes(nodes, body);
  builder.Output();
  module->TakeProvenance();
  return module;
}

void Edit(Module& module, Random& random, size_t count) {
  Graph& graph = module.graph(GraphId{0});
  Rewriter rewriter(graph);
  for (size_t i = 0; i < count; ++i) {
    const NodeId id = RandomNode(graph, random);
    const Node& node = graph.node(id);
    if (node.kind == NodeKind::kOutput || node.kind == NodeKind::kPlaceholder) continue;
    switch (Below(random, 8)) {
      case 0:
        if (!graph.HasUses(id)) rewriter.Erase(id);
        break;
      case 1: {
        // Stays before its users: only this node moves, backwards, past unrelated nodes.
        const NodeId before = node.prev;
        bool is_operand = !before.valid();
        if (!is_operand) {
          graph.ForEachOperand(
              id, [&](ValueId value) { is_operand |= graph.value(value).def == before; });
          for (size_t k = 0; k < node.num_results; ++k) {
            const ValueId base = graph.value(graph.result(id, k)).alias_of;
            is_operand |= base.valid() && graph.value(base).def == before;
          }
        }
        if (!is_operand) rewriter.MoveBefore(id, before);
        break;
      }
      case 2:
        rewriter.SetName(id, "renamed_" + std::to_string(random() % 1000000007));
        break;
      case 3:
        rewriter.SetAttribute(id, "chunk", std::to_string(Below(random, 9)));
        break;
      case 4:
        rewriter.SetPhase(id, static_cast<Phase>(Below(random, 5)));
        break;
      default: {
        if (!graph.first().valid() || node.num_results == 0) break;
        rewriter.SetCursorAfter(id);
        const Arg operand = graph.result(id);
        const Arg args[] = {operand, Arg::Int(static_cast<int64_t>(Below(random, 5)))};
        const TypeId type = graph.value(graph.result(id)).type;
        NodeSpec spec;
        spec.op = "aten.mul.Scalar";
        spec.args = args;
        spec.results = {&type, 1};
        rewriter.Create(spec, From({id}));
      }
    }
  }
}

std::string FullText(const Graph& graph) {
  PrintOptions options;
  options.stable_ids = true;
  return PrintText(graph, options);
}

std::string Slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void Spill(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

void WriteTrace(TraceWriter& writer, Module& module, Random& random, int passes, size_t edits) {
  RunInfo info;
  info.kind = RunKind::kTrain;
  info.source = "test";
  const RunId run = OrDie(writer.BeginRun(info));
  SnapshotId before = OrDie(writer.AddSnapshot(run, "step", module.graph(GraphId{0})));
  for (int i = 0; i < passes; ++i) {
    Edit(module, random, edits);
    PassRecord pass;
    pass.index = i;
    pass.name = "edit";
    pass.graph = "step";
    pass.before = before;
    pass.births = module.TakeProvenance();
    before = OrDie(writer.RecordPass(run, pass, &module.graph(GraphId{0}))).record.after;
  }
}

void WriteSmallTrace(const std::string& path, size_t nodes) {
  const auto module = MakeModule(11, nodes);
  Random random(12);
  const auto writer = OrDie(TraceWriter::Create(path, TraceWriter::Mode::kAside));
  WriteTrace(*writer, *module, random, 4, 6);
  const RunId run{1};
  OrDie(writer->AddArtifact(run, "output_code.py", "code", "def call(args):\n  return args\n"));
  const EventRecord event{"kernel", "gemm", 1, 2, StableId{3}, ""};
  OrDie(writer->AddEvents(run, {&event, 1}));
  for (int64_t step = 1; step <= 5; ++step) {
    const TraceWriter::Executed executed{"step", writer->snapshot(SnapshotId{5}).fingerprint};
    OrDie(writer->RecordStep(run, {step, 2.5, 0.25, 1000}, {&executed, 1}));
  }
  OrDie(writer->EndRun(run, RunStatus::kFinished));
  OrDie(writer->Finish());
}

Result<std::string> Dump(const std::string& path, bool texts) {
  STRATA_TRY(const std::unique_ptr<TraceReader> trace, TraceReader::Open(path));
  std::string out = fmt::format("next {}\n", trace->next_stable_id());
  for (const StoredRun& run : trace->runs()) {
    // Without what depends on the writer's lock.
    const bool has_ended = run.status == RunStatus::kFinished || run.status == RunStatus::kFailed;
    out += fmt::format("run {} {} {} {} {} {} {} {} {}\n", static_cast<int64_t>(run.id),
                       ToString(run.info.kind), run.info.rank, run.info.world, run.info.source,
                       run.info.command, run.info.pipeline, run.info.config,
                       has_ended ? ToString(run.status) : "not ended");
    for (const StoredGraph& graph : run.graphs) {
      for (SnapshotId id : graph.snapshots) {
        const SnapshotInfo& info = *trace->FindSnapshot(id);
        out += fmt::format("snapshot {} {} {} {} {} {}\n", static_cast<int64_t>(id), info.graph,
                           ToString(info.fingerprint), ToString(info.everything), info.nodes,
                           info.attributes);
        STRATA_TRY(const auto module, trace->LoadSnapshot(id));
        for (size_t g = 0; texts && g < module->num_graphs(); ++g)
          out += FullText(module->graph(GraphId{static_cast<int32_t>(g)}));
      }
    }
    for (const StoredPass& stored : run.passes) {
      const PassRecord& pass = stored.record;
      out += fmt::format("pass {} {} {} {} {} {} {} {} {} {} {} {} {} {}\n", pass.index, pass.name,
                         pass.options, ToString(pass.outcome), pass.wall_ns, pass.graph,
                         static_cast<int64_t>(pass.before), static_cast<int64_t>(pass.after),
                         pass.counts->inserted, pass.counts->deleted, pass.counts->changed,
                         pass.counts->moved, pass.error, pass.reproduce);
      STRATA_TRY(const auto births, trace->LoadBirths(stored.id));
      for (const Provenance& birth : births) {
        out +=
            fmt::format("birth {} {}", static_cast<uint64_t>(birth.node), ToString(birth.origin));
        for (StableId from : birth.from)
          out += fmt::format(" {}", static_cast<uint64_t>(from));
        out += "\n";
      }
    }
    for (const ExecutedRange& range : run.executed) {
      out += fmt::format("executed {} {} {} {}\n", range.graph, range.first_step, range.last_step,
                         ToString(range.fingerprint));
    }
    for (const ArtifactInfo& artifact : run.artifacts) {
      STRATA_TRY(const std::string bytes, trace->LoadArtifact(artifact.id));
      out += fmt::format("artifact {} {} {} {} {}\n", artifact.name, artifact.kind, artifact.bytes,
                         artifact.attributes, bytes);
    }
    STRATA_TRY(const auto steps, trace->LoadSteps(run.id));
    for (const StepRecord& step : steps) {
      out += fmt::format("step {} {} {} {}\n", step.step, step.loss, step.grad_norm, step.wall_ns);
    }
    STRATA_TRY(const auto events, trace->LoadEvents(run.id));
    for (const EventRecord& event : events) {
      out += fmt::format("event {} {} {} {} {} {}\n", event.kind, event.name, event.start_ns,
                         event.duration_ns, static_cast<uint64_t>(event.node), event.attributes);
    }
  }
  return out;
}

}  // namespace strata::store_test
