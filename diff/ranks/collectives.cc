#include "diff/ranks/collectives.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "diff/graph/arguments.h"
#include "diff/graph/listing.h"
#include "diff/graph/type_text.h"
#include "ir/module.h"
#include "ir/ops.h"

namespace strata {
namespace {

bool Contains(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}

bool IsWait(std::string_view op) {
  return BaseName(op).starts_with("wait_tensor") || BaseName(op) == "wait";
}

bool IsLaunch(std::string_view op) {
  if (TraitsOf(op).collective) return true;
  const std::string_view base = BaseName(op);
  const bool is_p2p = IsSend(op) || IsReceive(op);
  return (is_p2p || Contains(op.substr(0, op.size() - base.size()), "c10d")) && !IsWait(op);
}

bool IsNumber(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos &&
         text.size() < 10;
}

/// Reads one launch.
Collective ReadCollective(const Listing& listing, EntityId id) {
  const Graph& graph = listing.graph(id);
  Collective collective;
  collective.node = listing.name(id);
  collective.op = listing.target(id);
  std::vector<std::string> literals, dtypes, shapes;
  std::vector<std::string> ranks;
  for (const Leaf& leaf : LeavesOf(listing, id)) {
    if (leaf.operand.valid()) {
      const TypeText type = TypeTextOf(listing, leaf.operand);
      if (type.dtype) dtypes.push_back(type.dtype->text);
      if (type.shape) shapes.push_back(type.shape->text);
      continue;
    }
    literals.push_back(leaf.text);
    // The older operators list the group's ranks.
    if (leaf.path.find("][") != std::string::npos) ranks.push_back(leaf.text);
  }
  // The group's name is the last word.
  const auto name = std::ranges::find_if(literals.rbegin(), literals.rend(), [](const auto& text) {
    return text.starts_with('\'') || text.starts_with('"');
  });
  const bool listed = collective.op.starts_with("c10d_functional.");
  if (listed && !ranks.empty()) {
    collective.group = fmt::format("[{}]", fmt::join(ranks, ", "));
    for (const std::string& rank : ranks) {
      if (IsNumber(rank)) collective.members.push_back(std::stoi(rank));
    }
  } else if (name != literals.rend() && name->size() >= 2) {
    collective.group = name->substr(1, name->size() - 2);
    literals.erase(std::next(name).base());
  }
  const auto number = std::ranges::find_if(literals, IsNumber);
  if (number != literals.end()) {
    const bool is_p2p = IsSend(collective.op) || IsReceive(collective.op);
    const bool sized = Contains(collective.op, "gather") || Contains(collective.op, "scatter");
    if (is_p2p) collective.peer = std::stoll(*number);
    if (sized) collective.group_size = std::stoll(*number);
  }
  collective.args = fmt::format("{}", fmt::join(literals, ", "));
  collective.dtype = fmt::format("{}", fmt::join(dtypes, " "));
  collective.shape = fmt::format("{}", fmt::join(shapes, " "));
  const ValueId value = listing.value(id);
  if (value.valid()) {
    for (const Use use : graph.uses(value))
      collective.waited |=
          IsWait(graph.op(use.user)) || graph.node(use.user).kind == NodeKind::kOutput;
  } else {
    // Of several results the first represents all.
    const ValueId first = graph.result(listing[id].node);
    for (const Use use : graph.uses(first))
      collective.waited |= IsWait(graph.op(use.user));
  }
  return collective;
}

class Collector {
 public:
  explicit Collector(const Graph& graph) : listing_(graph) {
    for (ScopeId scope : IdsOf(listing_.scopes())) {
      if (scope != Listing::kProgram)
        bodies_[listing_.scopes()[scope].referred_by].push_back(scope);
    }
  }

  std::vector<Collective> Run() {
    AddScope(Listing::kProgram);
    return std::move(collectives_);
  }

 private:
  void AddScope(ScopeId scope) {
    for (EntityId id : listing_.scopes()[scope].ids) {
      const Entity& entity = listing_[id];
      const bool is_call = entity.kind == EntityKind::kCompute && !entity.element.valid();
      if (is_call && IsLaunch(listing_.target(id)))
        collectives_.push_back(ReadCollective(listing_, id));
      if (const auto bodies = bodies_.find(id); bodies != bodies_.end()) {
        for (ScopeId body : bodies->second)
          AddScope(body);
      }
    }
  }

  const Listing listing_;
  std::map<EntityId, std::vector<ScopeId>> bodies_;
  std::vector<Collective> collectives_;
};

}  // namespace

std::string Collective::Text() const {
  std::string text(BaseName(op));
  if (!dtype.empty() || !shape.empty()) text += fmt::format(" {}{}", dtype, shape);
  return text;
}

bool Collective::uneven() const {
  return Contains(op, "all_to_all");
}

std::string_view ToString(CollectiveMismatch::Kind kind) {
  static constexpr std::string_view kNames[] = {"op",    "group", "shape", "dtype", "missing",
                                                "extra", "order", "wait",  "peer"};
  return kNames[static_cast<size_t>(kind)];
}

bool IsSend(std::string_view op) {
  return Contains(BaseName(op), "send");
}

bool IsReceive(std::string_view op) {
  return Contains(BaseName(op), "recv");
}

std::vector<Collective> CollectivesOf(const Graph& graph) {
  return Collector(graph).Run();
}

}  // namespace strata
