#include "ir/module.h"

#include <algorithm>

namespace strata {
namespace {

uint64_t HashOf(const SourceLoc& loc) {
  uint64_t hash = 0;
  for (int32_t part : {loc.file.index, loc.line, loc.function.index, loc.code.index}) {
    hash = (hash ^ static_cast<uint32_t>(part)) * 0x9E3779B97F4A7C15ull;
    hash ^= hash >> 29;
  }
  return hash;
}

}  // namespace

std::string_view ToString(Origin origin) {
  switch (origin) {
    case Origin::kTraced:
      return "traced";
    case Origin::kCreated:
      return "created";
    case Origin::kCloned:
      return "cloned";
    case Origin::kReplaced:
      return "replaced";
  }
  return "traced";
}

Module::Module() : dims_(strings_), types_(strings_, dims_) {}

Module::Module(const Module& other, CloneTag)
    : strings_(other.strings_),
      dims_(other.dims_, strings_),
      types_(other.types_, strings_, dims_),
      locs_(other.locs_),
      loc_index_(other.loc_index_),
      provenance_(other.provenance_),
      next_stable_id_(other.next_stable_id_) {
  for (const auto& graph : other.graphs_)
    graphs_.push_back(graph->CloneInto(this));
}

std::unique_ptr<Module> Module::Clone() const {
  return std::unique_ptr<Module>(new Module(*this, CloneTag{}));
}

Graph& Module::AddGraph(std::string_view name, bool is_body) {
  const GraphId id{static_cast<int32_t>(graphs_.size())};
  graphs_.push_back(std::unique_ptr<Graph>(new Graph(this, id, Intern(name), is_body)));
  return *graphs_.back();
}

const Graph* Module::FindGraph(std::string_view name) const {
  const StrId id = strings_.Find(name);
  if (!id.valid()) return nullptr;
  const auto found = std::ranges::find_if(
      graphs_, [&](const auto& graph) { return !graph->is_body() && graph->name() == id; });
  return found == graphs_.end() ? nullptr : found->get();
}

Graph* Module::FindGraph(std::string_view name) {
  return const_cast<Graph*>(std::as_const(*this).FindGraph(name));
}

std::vector<GraphId> Module::programs() const {
  std::vector<GraphId> result;
  for (const auto& graph : graphs_) {
    if (!graph->is_body()) result.push_back(graph->id());
  }
  return result;
}

void Module::ShiftStableIds(uint64_t offset) {
  const auto shift = [&](StableId& id) { id = StableId{static_cast<uint64_t>(id) + offset}; };
  for (const auto& graph : graphs_) {
    for (NodeId id : graph->nodes())
      shift(graph->mutable_node(id).stable_id);
  }
  for (Provenance& birth : provenance_) {
    shift(birth.node);
    std::ranges::for_each(birth.from, shift);
  }
  next_stable_id_ += offset;
}

LocId Module::InternLoc(const SourceLoc& loc) {
  std::vector<LocId>& bucket = loc_index_[HashOf(loc)];
  for (LocId id : bucket) {
    if (this->loc(id) == loc) return id;
  }
  locs_.push_back(loc);
  bucket.push_back({static_cast<int32_t>(locs_.size()) - 1});
  return bucket.back();
}

}  // namespace strata
