#include "diff/patch/apply.h"

#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/source_error.h"
#include "diff/graph/listing.h"
#include "diff/patch/inherit.h"
#include "diff/patch/lines.h"
#include "diff/patch/result_names.h"
#include "ir/rewriter.h"
#include "ir/text/native_text.h"
#include "ir/text/native_words.h"

namespace strata {
namespace {

class Applier {
 public:
  Applier(const Graph& base, const Patch& patch)
      : patch_(patch), listing_(base), next_id_(base.module().next_stable_id()) {
    for (const Listing::Scope& scope : listing_.scopes())
      bases_.emplace_back(*scope.graph);
    for (BaseGraph& graph : bases_)
      by_id_[graph.graph.id().index] = &graph;
  }

  Result<std::unique_ptr<Module>> Run() {
    STRATA_RETURN_IF_ERROR(CheckBase());
    STRATA_RETURN_IF_ERROR(AssignGraphs());
    for (const Patch::GraphPart& part : patch_.graphs) {
      STRATA_RETURN_IF_ERROR(CheckNewLines(part));
      if (!part.from) continue;
      BaseGraph& base = bases_[static_cast<size_t>(*part.from)];
      STRATA_RETURN_IF_ERROR(AssignSteps(part, base));
      STRATA_RETURN_IF_ERROR(CheckShownLines(part, base));
      STRATA_RETURN_IF_ERROR(AssignNames(part, base));
    }
    STRATA_RETURN_IF_ERROR(Compose());
    STRATA_TRY(std::unique_ptr<Module> module, ParseText(text_, patch_.file, &origin_));
    InheritAll(*module);
    const Fingerprint result = FingerprintOf(module->graph({0}));
    if (result != patch_.after.fingerprint) {
      return Error(
          "the patch does not give what it promises: {}: the result has fingerprint {}, not {}; "
          "someone edited the patch: make it anew",
          patch_.file, ToString(result), ToString(patch_.after.fingerprint));
    }
    return module;
  }

 private:
  Error At(size_t offset, std::string_view what) const {
    return ErrorAt(patch_.file, *patch_.text, offset, what);
  }

  Status CheckBase() const {
    const Fingerprint base = FingerprintOf(listing_.root());
    if (base == patch_.before.fingerprint) return Ok();
    return Error(
        "the patch is for another graph: {}: it expects fingerprint {} ({} nodes), this graph has "
        "{} ({} nodes): give the graph that it was made from",
        patch_.file, ToString(patch_.before.fingerprint), patch_.before.nodes, ToString(base),
        listing_.size());
  }

  /// Each graph of the base goes to one part, or is dropped.
  Status AssignGraphs() {
    std::vector<bool> is_dropped(bases_.size(), false);
    const auto check = [&](int32_t number, size_t at) -> Status {
      if (static_cast<size_t>(number) >= bases_.size()) {
        return At(at, fmt::format("the base has no graph {}", number));
      }
      const auto index = static_cast<size_t>(number);
      if (bases_[index].part >= 0 || is_dropped[index]) {
        return At(at, fmt::format("graph {} of the base was taken above", number));
      }
      return Ok();
    };
    for (size_t i = 0; i < patch_.graphs.size(); ++i) {
      const Patch::GraphPart& part = patch_.graphs[i];
      if (!part.from) continue;
      STRATA_RETURN_IF_ERROR(check(*part.from, part.at));
      bases_[static_cast<size_t>(*part.from)].part = static_cast<int32_t>(i);
    }
    for (const Patch::DroppedGraph& dropped : patch_.dropped) {
      STRATA_RETURN_IF_ERROR(check(dropped.number, dropped.at));
      is_dropped[static_cast<size_t>(dropped.number)] = true;
    }
    for (size_t i = 0; i < bases_.size(); ++i) {
      if (bases_[i].part >= 0 || is_dropped[i]) continue;
      return At(
          patch_.text->size(),
          fmt::format("nothing is said of graph {} of the base: write 'drop graph {}'", i, i));
    }
    return Ok();
  }

  /// Each node of the base is in one step.
  Status AssignSteps(const Patch::GraphPart& part, BaseGraph& base) {
    base.step_of.assign(base.nodes.size(), nullptr);
    int32_t last_kept = 0;
    for (const Patch::Step& step : part.steps) {
      if (step.action == Patch::Action::kInsert) continue;
      if (static_cast<size_t>(step.last) > base.nodes.size()) {
        return At(step.at, fmt::format("the base's graph has {} nodes", base.nodes.size()));
      }
      if (step.action == Patch::Action::kKeep) {
        if (step.first <= last_kept) {
          return At(step.at, "out of order: a node that moved is marked with '>'");
        }
        last_kept = step.last;
      }
      for (int32_t i = step.first; i <= step.last; ++i) {
        const Patch::Step*& slot = base.step_of[static_cast<size_t>(i - 1)];
        if (slot != nullptr) return At(step.at, fmt::format("node {} occurs twice", i));
        slot = &step;
      }
    }
    for (size_t i = 0; i < base.nodes.size(); ++i) {
      if (base.step_of[i] != nullptr) continue;
      return At(part.at, fmt::format("nothing is said of node {} ({})", i + 1,
                                     base.graph.name(base.nodes[i])));
    }
    return Ok();
  }

  /// Readers of the patch trust what they see.
  Status CheckShownLines(const Patch::GraphPart& part, const BaseGraph& base) const {
    ShownLines shown(listing_, base.graph);
    for (const Patch::Step& step : part.steps) {
      if (step.before.empty()) continue;
      const NodeId node = base.nodes[static_cast<size_t>(step.first - 1)];
      if (shown.Matches(step.before, node)) continue;
      std::string line;
      PrintLine(base.graph, node, LineStyleOf(Patch::Carries::kComputation), ListedNames(listing_),
                line);
      return At(step.before_at,
                fmt::format("node {} of the base is another: {}", step.first, line));
    }
    for (const Patch::Name& name : part.names) {
      STRATA_TRY(const std::string_view own, OwnName(name, base));
      if (!shown.MatchesName(name.before, own)) {
        return At(name.at, fmt::format("node {} of the base is called {}", name.node, own));
      }
    }
    return Ok();
  }

  Result<std::string_view> OwnName(const Patch::Name& name, const BaseGraph& base) const {
    if (static_cast<size_t>(name.node) > base.nodes.size()) {
      return At(name.at, fmt::format("the base's graph has {} nodes", base.nodes.size()));
    }
    const NodeId id = base.nodes[static_cast<size_t>(name.node - 1)];
    if (name.element < 0) return base.graph.name(id);
    const Node& node = base.graph.node(id);
    const bool has_element = node.returns_tuple && name.element < node.num_results;
    if (has_element) {
      const ValueId element = base.graph.result(id, static_cast<size_t>(name.element));
      if (base.graph.value(element).name.valid()) return base.graph.value_name(element);
    }
    return At(name.at, fmt::format("node {} has no named element {}", name.node, name.element));
  }

  /// A line that names no node could be anything of a native text: another graph, say.
  Status CheckNewLines(const Patch::GraphPart& part) const {
    for (const Patch::Step& step : part.steps) {
      if (step.after.empty() || NamesOfLine(step.after)) continue;
      return At(step.after_at, "expected 'NAME = …' or 'output(…)'");
    }
    return Ok();
  }

  using Names = std::set<std::string, std::less<>>;

  /// Names of the nodes and elements of the base that are in the result.
  Status AssignNames(const Patch::GraphPart& part, BaseGraph& base) {
    Names taken;
    for (const Patch::Step& step : part.steps) {
      if (step.after.empty()) continue;
      const LineNames names = *NamesOfLine(step.after);
      taken.insert(names.node);
      taken.insert(names.elements.begin(), names.elements.end());
      if (step.action == Patch::Action::kChange)
        SetNames(names, step, base, [](std::string_view) { return true; });
    }
    STRATA_RETURN_IF_ERROR(AssignListedNames(part, base, taken));
    // A kept node that reads a dropped one now reads the node that took over its name.
    for (const Patch::Step& step : part.steps) {
      if (step.action != Patch::Action::kDrop) continue;
      const std::optional<LineNames> names = NamesOfLine(step.before);
      if (names) SetNames(*names, step, base, [&](auto name) { return taken.contains(name); });
    }
    KeepOtherNames(base, taken);
    return Ok();
  }

  /// Gives the step's node and its elements those names of its line for which `use` is true.
  template <class Use>
  static void SetNames(const LineNames& names, const Patch::Step& step, BaseGraph& base,
                       Use&& use) {
    const NodeId node = base.nodes[static_cast<size_t>(step.first - 1)];
    if (use(std::string_view(names.node)))
      base.node_names[static_cast<size_t>(node.index)] = names.node;
    for (size_t i = 0; i < names.elements.size() && i < base.graph.node(node).num_results; ++i) {
      if (names.elements[i].empty() || !use(std::string_view(names.elements[i]))) continue;
      base.element_names[base.graph.result(node, i).index] = names.elements[i];
    }
  }

  /// The names that the patch lists for kept nodes.
  Status AssignListedNames(const Patch::GraphPart& part, BaseGraph& base, Names& taken) {
    for (const Patch::Name& name : part.names) {
      const auto position = static_cast<size_t>(name.node - 1);
      const Patch::Action action = base.step_of[position]->action;
      if (action != Patch::Action::kKeep && action != Patch::Action::kMove) {
        return At(name.at, fmt::format("node {} is not kept", name.node));
      }
      const NodeId node = base.nodes[position];
      taken.insert(name.after);
      if (name.element < 0) {
        base.node_names[static_cast<size_t>(node.index)] = name.after;
      } else {
        const ValueId element = base.graph.result(node, static_cast<size_t>(name.element));
        base.element_names[element.index] = name.after;
      }
    }
    return Ok();
  }

  /// Other kept nodes keep their names in the base, with a number if the name is taken.
  static void KeepOtherNames(BaseGraph& base, Names& taken) {
    const auto own_or_free = [&](std::string_view name) {
      std::string free(name);
      for (int suffix = 1; !taken.insert(free).second; ++suffix)
        free = fmt::format("{}_{}", name, suffix);
      return free;
    };
    for (size_t i = 0; i < base.nodes.size(); ++i) {
      const Patch::Action action = base.step_of[i]->action;
      if (action != Patch::Action::kKeep && action != Patch::Action::kMove) continue;
      const NodeId id = base.nodes[i];
      const Node& node = base.graph.node(id);
      std::string& name = base.node_names[static_cast<size_t>(id.index)];
      if (name.empty()) name = own_or_free(base.graph.name(id));
      for (size_t k = 0; node.returns_tuple && k < node.num_results; ++k) {
        const ValueId element = base.graph.result(id, k);
        if (!base.graph.value(element).name.valid()) continue;
        std::string& element_name = base.element_names[element.index];
        if (element_name.empty()) element_name = own_or_free(base.graph.value_name(element));
      }
    }
  }

  /// The result as native text; each line remembers its place in the patch.
  Status Compose() {
    origin_.text = *patch_.text;
    if (patch_.symbols) {
      for (const Patch::SymbolLine& symbol : *patch_.symbols) {
        Piece(symbol.at, true);
        text_ += symbol.line;
        text_ += '\n';
      }
    } else {
      Piece(0, false);
      PrintSymbols(listing_.root().module(), text_);
    }
    const ResultNames names(by_id_);
    for (const Patch::GraphPart& part : patch_.graphs) {
      Piece(part.at, false);
      text_ += "graph ";
      AppendName(part.name, text_);
      text_ += part.is_body ? " body" : "";
      text_ += part.is_foreign ? " foreign" : "";
      text_ += '\n';
      const BaseGraph* base = part.from ? &bases_[static_cast<size_t>(*part.from)] : nullptr;
      std::vector<NodeId>& changed = changed_.emplace_back();
      for (const Patch::Step& step : part.steps) {
        switch (step.action) {
          case Patch::Action::kDrop:
            break;
          case Patch::Action::kInsert:
            WriteLine(step, StableId{next_id_++});
            changed.emplace_back();
            break;
          case Patch::Action::kChange: {
            const NodeId node = base->nodes[static_cast<size_t>(step.first - 1)];
            WriteLine(step, base->graph.node(node).stable_id);
            changed.push_back(node);
            break;
          }
          case Patch::Action::kKeep:
          case Patch::Action::kMove:
            STRATA_RETURN_IF_ERROR(CopyLines(step, *base, names));
            changed.resize(changed.size() + static_cast<size_t>(step.last - step.first + 1));
            break;
        }
      }
    }
    return Ok();
  }

  void Piece(size_t at, bool verbatim) { origin_.pieces.push_back({text_.size(), at, verbatim}); }

  void EndLine(StableId id) { text_ += fmt::format(" #{}\n", static_cast<uint64_t>(id)); }

  void WriteLine(const Patch::Step& step, StableId id) {
    Piece(step.after_at, true);
    text_ += step.after;
    EndLine(id);
  }

  Status CopyLines(const Patch::Step& step, const BaseGraph& base, const ResultNames& names) {
    Piece(step.at, false);
    for (int32_t i = step.first; i <= step.last; ++i) {
      const NodeId node = base.nodes[static_cast<size_t>(i - 1)];
      PrintLine(base.graph, node, NativeLineStyle(), names, text_);
      if (const std::string_view missing = names.TakeMissing(); !missing.empty()) {
        return At(step.at,
                  fmt::format("node {} is kept, but speaks of '{}', which is dropped", i, missing));
      }
      EndLine(base.graph.node(node).stable_id);
    }
    return Ok();
  }

  /// A changed node has its line from the patch, and the rest from the base.
  void InheritAll(Module& module) const {
    const NativeLineStyle style = LineStyleOf(patch_.carries);
    for (size_t g = 0; g < patch_.graphs.size(); ++g) {
      if (!patch_.graphs[g].from) continue;
      const Graph& base = bases_[static_cast<size_t>(*patch_.graphs[g].from)].graph;
      Rewriter rewriter(module.graph({static_cast<int32_t>(g)}));
      size_t position = 0;
      for (NodeId id : rewriter.graph().nodes()) {
        const NodeId from = changed_[g][position++];
        if (from.valid()) InheritMetadata(base, from, style, rewriter, id);
      }
    }
  }

  const Patch& patch_;
  const Listing listing_;
  uint64_t next_id_;
  std::vector<BaseGraph> bases_;
  std::map<int32_t, BaseGraph*> by_id_;
  std::string text_;
  TextOrigin origin_;
  std::vector<std::vector<NodeId>> changed_;  // per part and node of the result; none: not changed
};

}  // namespace

Result<std::unique_ptr<Module>> ApplyPatch(const Graph& base, const Patch& patch) {
  return Applier(base, patch).Run();
}

}  // namespace strata
