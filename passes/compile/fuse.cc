#include "passes/compile/fuse.h"

#include <algorithm>
#include <map>
#include <optional>
#include <queue>
#include <ranges>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "ir/by_node.h"
#include "ir/fused_op.h"
#include "ir/rewriter.h"
#include "ir/symbol_sizes.h"
#include "ir/text/native_text.h"
#include "passes/compile/dynamic_kernel.h"
#include "passes/compile/fast_products.h"
#include "passes/compile/fusion_regions.h"
#include "passes/compile/pointwise.h"
#include "passes/compile/region_body.h"
#include "passes/core/chunk_attributes.h"

namespace strata {
namespace {

class GraphFuser {
 public:
  GraphFuser(Module& module, GraphId id, const FusionOptions& options,
             std::map<std::string, std::optional<GraphId>>& bodies)
      : module_(module),
        graph_(module.graph(id)),
        is_exact_(options.exact),
        regions_(graph_, options),
        bodies_(bodies) {}

  bool Run() {
    for (size_t i = 0; i < regions_.regions().size(); ++i)
      plans_.push_back(MakePlan(static_cast<int32_t>(i)));
    bool any = false;
    for (size_t i = 0; i < plans_.size(); ++i) {
      FindBody(plans_[i]);
      if (plans_[i].body.valid()) {
        any = true;
      } else {
        regions_.Dissolve(static_cast<int32_t>(i));
      }
    }
    if (any) Rewrite(Schedule());
    return any;
  }

 private:
  /// A node, or a region.
  struct Unit {
    NodeId node;
    int32_t region = -1;
  };

  RegionPlan MakePlan(int32_t region) const {
    RegionPlan plan{.members = regions_.regions()[static_cast<size_t>(region)],
                    .inputs = {},
                    .outputs = {},
                    .body = {}};
    for (const NodeId member : plan.members) {
      graph_.ForEachOperand(member, [&](ValueId value) {
        if (regions_.MemberBehind(value, region)) return;
        if (std::ranges::find(plan.inputs, value) == plan.inputs.end())
          plan.inputs.push_back(value);
      });
    }
    for (const NodeId member : plan.members) {
      if (IsReadOutside(graph_.result(member), region) || IsLastWrite(member, region)) {
        plan.outputs.push_back(member);
      }
    }
    return plan;
  }

  /// Others read it, or views of it that others read.
  bool IsReadOutside(ValueId value, int32_t region) const {
    for (const Use use : graph_.uses(value)) {
      if (regions_.region_of(use.user) == region) continue;
      const bool is_view =
          regions_
              .MemberBehind(
                  graph_.node(use.user).num_results == 1 ? graph_.result(use.user) : value, region)
              .has_value();
      if (!is_view || graph_.node(use.user).num_results != 1) return true;
      if (IsReadOutside(graph_.result(use.user), region)) return true;
    }
    return false;
  }

  /// The last member that writes an input: its result must reach the memory.
  bool IsLastWrite(NodeId member, int32_t region) const {
    const std::optional<ValueId> input = regions_.WrittenInput(member);
    if (!input) return false;
    for (const Use use : graph_.uses(graph_.result(member))) {
      if (regions_.region_of(use.user) == region && regions_.WrittenInput(use.user) == input)
        return false;
    }
    return true;
  }

  /// An order in which each region is one unit: program order, but for what must wait for a region.
  std::vector<Unit> Schedule() const {
    const IdVector<NodeId, int32_t> position = PositionsOf(graph_);
    const size_t num_regions = plans_.size();
    const auto at = [&](NodeId node) { return static_cast<size_t>(position[node]); };
    const size_t num_nodes = static_cast<size_t>(graph_.num_nodes());
    const auto unit_of = [&](NodeId node) {
      const int32_t region = regions_.region_of(node);
      return region >= 0 ? num_nodes + static_cast<size_t>(region) : at(node);
    };
    std::vector<std::vector<size_t>> readers(num_nodes + num_regions);
    std::vector<int32_t> waits(num_nodes + num_regions, 0);
    std::vector<size_t> key(num_nodes + num_regions, 0);
    std::vector<Unit> units(num_nodes + num_regions);
    for (const NodeId node : graph_.nodes()) {
      const size_t unit = unit_of(node);
      key[unit] = std::max(key[unit], at(node));
      units[unit] =
          regions_.region_of(node) >= 0 ? Unit{{}, regions_.region_of(node)} : Unit{node, -1};
      const auto wait_for = [&](NodeId earlier) {
        if (unit_of(earlier) == unit) return;
        readers[unit_of(earlier)].push_back(unit);
        ++waits[unit];
      };
      graph_.ForEachOperand(node, [&](ValueId value) {
        if (regions_.region_of(node) >= 0) {
          if (const auto member = regions_.MemberBehind(value, regions_.region_of(node))) {
            return wait_for(*member);
          }
        }
        wait_for(graph_.value(value).def);
      });
      for (const NodeId earlier : regions_.before(node))
        wait_for(earlier);
    }
    using Entry = std::pair<size_t, size_t>;  // key, unit
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
    for (size_t unit = 0; unit < units.size(); ++unit) {
      if ((units[unit].node.valid() || units[unit].region >= 0) && waits[unit] == 0) {
        ready.emplace(key[unit], unit);
      }
    }
    std::vector<Unit> order;
    while (!ready.empty()) {
      const size_t unit = ready.top().second;
      ready.pop();
      order.push_back(units[unit]);
      for (const size_t reader : readers[unit]) {
        if (--waits[reader] == 0) ready.emplace(key[reader], reader);
      }
    }
    return order;
  }

  /// The body of a region, shared with equal regions; none when it has no kernel after all.
  void FindBody(RegionPlan& plan) {
    if (!WritesWhatItReads(plan)) return;
    Module scratch;
    Graph& draft = scratch.AddGraph("body");
    WriteBody(graph_, regions_, plan, draft);
    const std::string text = PrintText(scratch);
    const auto [known, is_new] = bodies_.try_emplace(text, std::nullopt);
    const bool is_kernel = std::ranges::all_of(
        BackedSampleSizes(scratch),
        [&](const SymbolSizes& sizes) { return MakeKernel(draft, is_exact_, sizes).has_value(); });
    if (is_new && is_kernel) {
      Graph& body = module_.AddGraph(fmt::format("kernel_{}", num_bodies()), /*is_body=*/true);
      WriteBody(graph_, regions_, plan, body);
      known->second = body.id();
    }
    if (known->second) plan.body = *known->second;
  }

  /// What is written is not read under another view as well.
  bool WritesWhatItReads(const RegionPlan& plan) const {
    const auto owner_of = [&](ValueId value) {
      const ValueId owner = graph_.value(value).alias_of;
      return owner.valid() ? owner : value;
    };
    return std::ranges::all_of(plan.outputs, [&](NodeId output) {
      const std::optional<ValueId> written = regions_.WrittenInput(output);
      return !written || std::ranges::count_if(plan.inputs, [&](ValueId input) {
                           return owner_of(input) == *written;
                         }) == 1;
    });
  }

  size_t num_bodies() const {
    return static_cast<size_t>(
        std::ranges::count_if(bodies_, [](const auto& entry) { return entry.second.has_value(); }));
  }

  void Rewrite(const std::vector<Unit>& order) {
    Rewriter rewriter(graph_);
    for (const Unit& unit : order) {
      if (unit.region >= 0) {
        Replace(rewriter, plans_[static_cast<size_t>(unit.region)]);
      } else if (unit.node != graph_.output()) {
        rewriter.MoveBefore(unit.node, graph_.output());
      }
    }
    EraseMembers(rewriter);
  }

  ValueId BodyValue(Rewriter& rewriter, const RegionPlan& plan) {
    const auto known = attr_of_.find(plan.body.index);
    if (known != attr_of_.end()) return known->second;
    const Arg body = Arg::Graph(plan.body);
    const NodeId node = rewriter.Create({.kind = NodeKind::kGetAttr,
                                         .op = module_.graph(plan.body).name_text(),
                                         .args = std::span(&body, 1),
                                         .name = module_.graph(plan.body).name_text()},
                                        From({}));
    return attr_of_[plan.body.index] = graph_.result(node);
  }

  void Replace(Rewriter& rewriter, const RegionPlan& plan) {
    rewriter.SetCursorToEnd();
    std::vector<Arg> args{BodyValue(rewriter, plan)};
    for (const ValueId input : plan.inputs) {
      const auto moved = replacement_.find(input);
      args.emplace_back(moved != replacement_.end() ? moved->second : input);
    }
    std::vector<TypeId> types;
    for (const NodeId output : plan.outputs)
      types.push_back(graph_.value(graph_.result(output)).type);
    std::vector<NamedArg> kwargs;
    if (!is_exact_) kwargs.push_back({module_.Intern(kFastArg), Arg::Bool(true)});
    const NodeId fused = rewriter.Create(
        {.op = kFusedOp, .args = args, .kwargs = kwargs, .results = types, .returns_tuple = true},
        From(plan.members, Origin::kReplaced));
    if (const NodeId first = plan.members.front();  // of the chunk of all members
        graph_.attribute(first, kChunkRoleAttribute) == kBodyRole) {
      for (const std::string_view key :
           {kChunkedRegionAttribute, kChunkRoleAttribute, kChunkIdAttribute}) {
        rewriter.SetAttribute(fused, key, graph_.attribute(first, key));
      }
    }
    for (size_t i = 0; i < plan.outputs.size(); ++i) {
      const ValueId old_value = graph_.result(plan.outputs[i]), result = graph_.result(fused, i);
      names_.emplace_back(result, graph_.value_name(old_value));
      if (const auto input = regions_.WrittenInput(plan.outputs[i])) {
        rewriter.SetAlias(result, *input);
      } else {
        AliasViews(rewriter, old_value, result);
      }
      rewriter.ReplaceUses(old_value, result);
      replacement_[old_value] = result;
    }
    replaced_.insert(replaced_.end(), plan.members.begin(), plan.members.end());
  }

  /// Views of an in-place result know the memory by its first owner, which goes.
  void AliasViews(Rewriter& rewriter, ValueId old_value, ValueId result) {
    if (!graph_.value(old_value).alias_of.valid()) return;
    std::vector<ValueId> open{old_value};
    while (!open.empty()) {
      const ValueId value = open.back();
      open.pop_back();
      for (const Use use : graph_.uses(value)) {
        for (size_t i = 0; i < graph_.node(use.user).num_results; ++i) {
          const ValueId view = graph_.result(use.user, i);
          if (graph_.value(view).alias_of != graph_.value(old_value).alias_of) continue;
          open.push_back(view);
          views_.emplace_back(view, result);
        }
      }
    }
    for (const auto& [view, owner] : std::exchange(views_, {}))
      rewriter.SetAlias(view, owner);
  }

  /// Readers go before what they read; views that only members read go too.
  void EraseMembers(Rewriter& rewriter) {
    std::ranges::sort(replaced_, {}, [&](NodeId node) { return node.index; });
    bool erased = true;
    std::vector<NodeId> rest = replaced_;
    while (erased && !rest.empty()) {
      erased = false;
      std::vector<NodeId> left;
      for (const NodeId node : rest | std::views::reverse) {
        if (EraseIfUnused(rewriter, node)) {
          erased = true;
        } else {
          left.push_back(node);
        }
      }
      rest.assign(left.rbegin(), left.rend());
    }
    STRATA_CHECK(rest.empty(), "a fused node is still read");
    for (const auto& [result, name] : names_)
      rewriter.SetElementName(result, name);
  }

  bool EraseIfUnused(Rewriter& rewriter, NodeId node) {
    std::vector<NodeId> views;
    for (const Use use : graph_.uses(graph_.result(node))) {
      const FusibleOp* view = FindFusible(graph_.op(use.user));
      if (view == nullptr || view->kind != FusionKind::kReshape) return false;
      if (std::ranges::find(views, use.user) == views.end()) views.push_back(use.user);
    }
    for (const NodeId view : views) {
      if (!EraseIfUnused(rewriter, view)) return false;
    }
    rewriter.Erase(node);
    return true;
  }

  Module& module_;
  Graph& graph_;
  bool is_exact_;
  FusionRegions regions_;
  std::map<std::string, std::optional<GraphId>>& bodies_;
  std::vector<RegionPlan> plans_;
  std::map<int32_t, ValueId> attr_of_;      // by body
  std::map<ValueId, ValueId> replacement_;  // results of members by what they are now
  std::vector<NodeId> replaced_;
  std::vector<std::pair<ValueId, std::string>> names_;
  std::vector<std::pair<ValueId, ValueId>> views_;
};

}  // namespace

Result<Changed> Fuse::Run(Module& module) {
  const FusionOptions options{.exact = options_.numerics == Numerics::kBitwise,
                              .min_nodes = options_.min_nodes,
                              .max_arguments = options_.max_arguments};
  bool changed = false;
  std::map<std::string, std::optional<GraphId>> bodies;  // by text
  const auto fuse = [&](GraphId id) {
    changed |= GraphFuser(module, id, options, bodies).Run();
    if (!options.exact) changed |= MarkFastProducts(module.graph(id));
  };
  for (const GraphId id : module.programs()) {
    for (const NodeId node : module.graph(id).nodes()) {
      if (const auto region = RegionBodyOf(module.graph(id), node)) fuse(*region);
    }
    fuse(id);
  }
  return Changed(changed);
}

}  // namespace strata
