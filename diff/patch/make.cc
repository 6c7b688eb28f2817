#include "diff/patch/make.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "diff/graph/order.h"
#include "diff/patch/lines.h"
#include "diff/patch/patch.h"
#include "ir/text/native_words.h"

namespace strata {
namespace {

/// The nodes of a graph by position, and the position of each node.
struct NodeOrder {
  explicit NodeOrder(const Graph& of)
      : graph(of), nodes(of.nodes().Snapshot()), position(OrderOf(of)) {}
  int32_t of(NodeId id) const { return position[static_cast<size_t>(id.index)]; }

  const Graph& graph;
  std::vector<NodeId> nodes;
  std::vector<int32_t> position;
};

/// Which graphs of the two sides stand for each other, as scopes of their listings.
struct GraphMap {
  explicit GraphMap(const GraphDiff& diff)
      : before_of(diff.after.scopes().size()), after_of(diff.before.scopes().size()) {
    std::map<std::pair<ScopeId, ScopeId>, int32_t> pairs;  // (after, before) -> shared nodes
    for (const Pair& pair : diff.pairs)
      ++pairs[{diff.after.scope_of(pair.after), diff.before.scope_of(pair.before)}];
    Join(Listing::kProgram, Listing::kProgram);
    std::vector<std::pair<int32_t, std::pair<ScopeId, ScopeId>>> candidates;
    for (const auto& [scopes, count] : pairs)
      candidates.emplace_back(-count, scopes);
    std::ranges::sort(candidates);
    for (const auto& [unused, scopes] : candidates) {
      const auto [after, before] = scopes;
      if (!before_of[after].valid() && !after_of[before].valid()) Join(after, before);
    }
  }
  void Join(ScopeId after, ScopeId before) {
    before_of[after] = before;
    after_of[before] = after;
  }

  IdVector<ScopeId, ScopeId> before_of, after_of;
};

/// Names a graph of the before side as the after side does. A node without an image keeps its name:
/// a line that is equal then means what the after side has under it. `TakeMissing` returns whether
/// a line referred to a body that the after side lacks.
class ImageNames final : public NativeNames {
 public:
  ImageNames(const NodeOrder& before, const NodeOrder& after, const std::vector<int32_t>& image,
             const ListedNames& numbers, const GraphMap& graphs)
      : before_(before), after_(after), image_(image), numbers_(numbers), graphs_(graphs) {}

  std::string_view OfNode(const Graph& graph, NodeId node) const override {
    const NodeId image = ImageOf(node);
    return image.valid() ? after_.graph.name(image) : graph.name(node);
  }
  std::string_view OfElement(const Graph& graph, ValueId element) const override {
    const Value& value = graph.value(element);
    const NodeId image = ImageOf(value.def);
    if (!image.valid()) return graph.value_name(element);
    const Node& node = after_.graph.node(image);
    const uint32_t index = graph.result_index(element);
    if (node.returns_tuple && index < node.num_results) {
      const ValueId other = after_.graph.result(image, index);
      if (after_.graph.value(other).name.valid()) return after_.graph.value_name(other);
    }
    missing_ = true;
    return {};
  }
  int32_t OfGraph(const Graph& graph) const override {
    const int32_t before = numbers_.OfGraph(graph);
    const ScopeId after = before < 0 ? ScopeId{} : graphs_.after_of[ScopeId{before}];
    missing_ |= !after.valid();
    return after.index;
  }

  bool TakeMissing() { return std::exchange(missing_, false); }

 private:
  NodeId ImageOf(NodeId node) const {
    const int32_t image = image_[static_cast<size_t>(before_.of(node))];
    return image < 0 ? NodeId{} : after_.nodes[static_cast<size_t>(image)];
  }

  const NodeOrder& before_;
  const NodeOrder& after_;
  const std::vector<int32_t>& image_;  // by before position: after position, -1: none
  const ListedNames& numbers_;
  const GraphMap& graphs_;
  mutable bool missing_ = false;
};

/// Writes the part of one graph.
class PartWriter {
 public:
  PartWriter(const GraphDiff& diff, const GraphMap& graphs, ScopeId before_scope,
             ScopeId after_scope, const NativeLineStyle& style, std::string& out)
      : diff_(diff),
        graphs_(graphs),
        style_(style),
        before_numbers_(diff.before),
        after_numbers_(diff.after),
        before_(*diff.before.scopes()[before_scope].graph),
        after_(*diff.after.scopes()[after_scope].graph),
        out_(out) {}

  void Write() {
    FindImages();
    FindKept();
    width_ = fmt::format("{}", std::max<size_t>(before_.nodes.size(), 1)).size();
    WriteSteps();
    WriteNames();
  }

 private:
  static size_t Index(int32_t i) { return static_cast<size_t>(i); }

  void FindImages() {
    image_.assign(before_.nodes.size(), -1);
    origin_.assign(after_.nodes.size(), -1);
    for (size_t j = 0; j < after_.nodes.size(); ++j) {
      const EntityId entity = diff_.after.Find(after_.graph.id(), after_.nodes[j]);
      const PairId index = diff_.pair_of_after[entity];
      if (!index.valid()) continue;
      const EntityId partner = diff_.pairs[index].before;
      const Entity& node = diff_.before[partner];
      if (node.element.valid() || node.graph != before_.graph.id()) continue;
      origin_[j] = before_.of(node.node);
      image_[Index(origin_[j])] = static_cast<int32_t>(j);
    }
    std::vector<OrderPoint> points;
    for (size_t i = 0; i < image_.size(); ++i) {
      if (image_[i] >= 0) points.push_back({static_cast<int32_t>(i), image_[i], 0});
    }
    const std::vector<bool> in_order = LargestOrderedSet(points);
    in_place_.assign(after_.nodes.size(), false);
    for (size_t k = 0; k < points.size(); ++k)
      in_place_[Index(points[k].after)] = in_order[k];
  }

  /// A node is kept when its line, spoken by the names of the after side, is the line there.
  void FindKept() {
    ImageNames images(before_, after_, image_, before_numbers_, graphs_);
    is_kept_.assign(after_.nodes.size(), false);
    std::string here, there;
    for (size_t j = 0; j < after_.nodes.size(); ++j) {
      if (origin_[j] < 0) continue;
      here.clear();
      there.clear();
      PrintLine(before_.graph, before_.nodes[Index(origin_[j])], style_, images, here);
      PrintLine(after_.graph, after_.nodes[j], style_, after_numbers_, there);
      is_kept_[j] = !images.TakeMissing() && here == there;
    }
  }

  void WriteSteps() {
    // Drops stand before what is inserted at their place.
    std::vector<int32_t> next_in_place(after_.nodes.size());
    auto next = static_cast<int32_t>(before_.nodes.size());
    for (size_t j = after_.nodes.size(); j-- > 0;) {
      if (in_place_[j]) next = origin_[j];
      next_in_place[j] = next;
    }
    for (size_t j = 0; j < after_.nodes.size(); ++j) {
      DropUpTo(next_in_place[j]);
      const NodeId node = after_.nodes[j];
      if (is_kept_[j]) {
        Keep(origin_[j], !in_place_[j]);
      } else if (origin_[j] >= 0) {
        const NodeId before = before_.nodes[Index(origin_[j])];
        BeginChange(after_.graph, node);
        NumberedLine('~', origin_[j], before_.graph, before, before_numbers_);
        PlainLine('=', node);
      } else {
        BeginChange(after_.graph, node);
        PlainLine('+', node);
      }
    }
    DropUpTo(static_cast<int32_t>(before_.nodes.size()));
    FlushRange();
  }

  void DropUpTo(int32_t end) {
    for (; next_base_ < end; ++next_base_) {
      if (image_[Index(next_base_)] >= 0) continue;
      const NodeId node = before_.nodes[Index(next_base_)];
      BeginChange(before_.graph, node);
      NumberedLine('-', next_base_, before_.graph, node, before_numbers_);
    }
  }

  void Keep(int32_t base, bool is_moved) {
    const bool goes_on = range_first_ >= 0 && range_moved_ == is_moved && base == range_last_ + 1;
    if (!goes_on) {
      FlushRange();
      range_first_ = base;
      range_moved_ = is_moved;
    }
    range_last_ = base;
  }

  void FlushRange() {
    if (range_first_ < 0) return;
    const auto name = [&](int32_t base) {
      const NodeId id = before_.nodes[Index(base)];
      std::string text = "output";
      if (before_.graph.node(id).kind != NodeKind::kOutput) {
        text.clear();
        AppendName(before_.graph.name(id), text);
      }
      return text;
    };
    out_ += fmt::format("{} {}", range_moved_ ? '>' : ' ', range_first_ + 1);
    if (range_last_ > range_first_) {
      out_ +=
          fmt::format("..{}  # {} … {}\n", range_last_ + 1, name(range_first_), name(range_last_));
    } else {
      out_ += fmt::format("  # {}\n", name(range_first_));
    }
    range_first_ = -1;
  }

  /// Before a run of changes in another module, the module's path.
  void BeginChange(const Graph& graph, NodeId node) {
    FlushRange();
    const std::string_view module = graph.module().str(graph.node(node).module);
    if (module == module_) return;
    module_ = module;
    if (module.empty()) return;
    out_ += "  # ";
    AppendPath(module, out_);
    out_ += '\n';
  }

  void NumberedLine(char mark, int32_t base, const Graph& graph, NodeId node,
                    const NativeNames& names) {
    out_ += fmt::format("{} {:<{}}  ", mark, base + 1, width_);
    PrintLine(graph, node, style_, names, out_);
    out_ += '\n';
  }

  /// A line of the result; nodes that it refers to must have the names that it uses.
  void PlainLine(char mark, NodeId node) {
    out_ += fmt::format("{} {:<{}}  ", mark, "", width_);
    PrintLine(after_.graph, node, style_, after_numbers_, out_);
    out_ += '\n';
    const Graph& graph = after_.graph;
    graph.ForEachOperand(node, [&](ValueId value) { mentioned_.insert(value); });
    for (size_t i = 0; i < graph.node(node).num_results; ++i) {
      const ValueId owner = graph.value(graph.result(node, i)).alias_of;
      if (owner.valid()) mentioned_.insert(owner);
    }
  }

  void WriteNames() {
    std::set<NodeId> mentioned_nodes;
    for (ValueId value : mentioned_) {
      const Value& v = after_.graph.value(value);
      if (!v.name.valid()) mentioned_nodes.insert(v.def);
    }
    std::string lines;
    for (size_t i = 0; i < image_.size(); ++i) {
      if (image_[i] < 0 || !is_kept_[Index(image_[i])]) continue;
      const NodeId before = before_.nodes[i], after = after_.nodes[Index(image_[i])];
      const std::string number = fmt::format("{}", i + 1);
      NameLine(number, before_.graph.name(before), after_.graph.name(after),
               mentioned_nodes.contains(after), lines);
      const Node& node = after_.graph.node(after);
      if (!node.returns_tuple) continue;
      for (size_t k = 0; k < node.num_results; ++k) {
        const ValueId element = after_.graph.result(after, k);
        if (!after_.graph.value(element).name.valid()) continue;
        NameLine(fmt::format("{}.{}", number, k),
                 before_.graph.value_name(before_.graph.result(before, k)),
                 after_.graph.value_name(element), mentioned_.contains(element), lines);
      }
    }
    if (!lines.empty()) out_ += "names\n" + lines;
  }

  static void NameLine(std::string_view number, std::string_view before, std::string_view after,
                       bool is_mentioned, std::string& out) {
    if (before == after && !is_mentioned) return;
    out += fmt::format("  {} ", number);
    AppendName(before, out);
    if (before != after) {
      out += " -> ";
      AppendName(after, out);
    }
    out += '\n';
  }

  const GraphDiff& diff_;
  const GraphMap& graphs_;
  const NativeLineStyle& style_;
  const ListedNames before_numbers_, after_numbers_;
  const NodeOrder before_, after_;
  std::string& out_;

  std::vector<int32_t> image_, origin_;   // before position -> after position, and back; -1: none
  std::vector<bool> in_place_, is_kept_;  // by after position
  std::set<ValueId> mentioned_;           // of the after side
  size_t width_ = 1;
  int32_t next_base_ = 0;
  int32_t range_first_ = -1, range_last_ = -1;
  bool range_moved_ = false;
  std::string_view module_;
};

void WriteNewGraph(const Listing& listing, const Graph& graph, const NativeLineStyle& style,
                   std::string& out) {
  const ListedNames numbers(listing);
  for (NodeId node : graph.nodes()) {
    out += "+ ";
    PrintLine(graph, node, style, numbers, out);
    out += '\n';
  }
}

std::string SymbolsOf(const Graph& graph) {
  std::string text;
  PrintSymbols(graph.module(), text);
  return text;
}

}  // namespace

std::string MakePatch(const GraphDiff& diff, const PatchOptions& options) {
  const Graph& before = diff.before.root();
  const Graph& after = diff.after.root();
  const bool is_hearsay = before.is_foreign() || after.is_foreign();
  const Patch::Carries carries = options.metadata ? Patch::Carries::kEverything
                                 : is_hearsay     ? Patch::Carries::kComputation
                                                  : Patch::Carries::kPlaces;
  const NativeLineStyle style = LineStyleOf(carries);
  const GraphMap graphs(diff);

  std::string out = "strata patch 1\n";
  out += fmt::format("before {}  {} nodes\n", ToString(FingerprintOf(before)), diff.before.size());
  out += fmt::format("after  {}  {} nodes\n", ToString(FingerprintOf(after)), diff.after.size());
  out += fmt::format("carries {}\n", ToString(carries));
  if (const std::string symbols = SymbolsOf(after); symbols != SymbolsOf(before)) {
    out += "symbols\n" + symbols;
  }
  for (ScopeId scope : IdsOf(diff.after.scopes())) {
    const Graph& graph = *diff.after.scopes()[scope].graph;
    const ScopeId from = graphs.before_of[scope];
    out += fmt::format("\ngraph {} ", scope.index);
    std::string header;
    PrintGraphLine(graph, header);
    out += header.substr(std::string_view("graph ").size());
    if (from.valid()) {
      out += fmt::format(" from {}\n", from.index);
      PartWriter(diff, graphs, from, scope, style, out).Write();
    } else {
      out += '\n';
      WriteNewGraph(diff.after, graph, style, out);
    }
  }
  bool any_dropped = false;
  for (ScopeId scope : IdsOf(diff.before.scopes())) {
    if (graphs.after_of[scope].valid()) continue;
    if (!any_dropped) out += '\n';
    any_dropped = true;
    out += fmt::format("drop graph {}  # ", scope.index);
    AppendName(diff.before.scopes()[scope].graph->name_text(), out);
    out += '\n';
  }
  return out;
}

}  // namespace strata
