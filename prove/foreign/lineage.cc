#include "prove/foreign/lineage.h"

#include <algorithm>

#include "prove/ops/elementwise.h"
#include "prove/values/compare.h"

namespace strata::prove {
namespace {

/// More elements are not looked for.
constexpr int64_t kMaxElements = int64_t{1} << 22;

/// All relations that a tensor of `dims` dimensions may have.
std::vector<Relation> AllRelations(int64_t dims, const Mesh& mesh) {
  std::vector<Relation> relations = {{}};
  for (size_t axis = 0; axis < mesh.axes().size(); ++axis) {
    std::vector<Relation> more;
    for (const Relation& relation : relations) {
      const auto add = [&](Term term) {
        more.push_back(relation);
        more.back().push_back(term);
      };
      add({.kind = Term::Kind::kReplicate});
      for (int64_t dim = 0; dim < dims; ++dim)
        add({.kind = Term::Kind::kShard, .dim = dim});
      add({.kind = Term::Kind::kSum});
      add({.kind = Term::Kind::kMean});
    }
    relations = std::move(more);
  }
  return relations;
}

}  // namespace

void ValueTable::Add(Part part, NodeId node, std::span<const Value> results) {
  for (size_t i = 0; i < results.size(); ++i) {
    const auto* tensor = std::get_if<Tensor>(&results[i]);
    if (tensor != nullptr && tensor->numel() <= kMaxElements)
      places_.try_emplace(ContentHash(*tensor), Place{part, node, i});
  }
}

std::optional<Place> ValueTable::Find(const Tensor& tensor) const {
  const auto found = places_.find(ContentHash(tensor));
  return found == places_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<Lineage::Origin> Lineage::Find(std::span<const Value> parts) const {
  const auto* first = std::get_if<Tensor>(&parts[0]);
  if (first == nullptr || first->numel() > kMaxElements) return std::nullopt;
  for (const Relation& relation : AllRelations(first->dim(), mesh_)) {
    const std::optional<Tensor> whole = WholeOf(parts, relation, mesh_);
    const std::optional<Place> place = whole ? table_.Find(*whole) : std::nullopt;
    if (place) return Origin{*place, relation};
  }
  return std::nullopt;
}

void Lineage::Add(Part part, NodeId node, std::span<const Values> results) {
  for (size_t i = 0; i < results[0].size(); ++i) {
    std::vector<Value> parts;
    for (const Values& of_rank : results)
      parts.push_back(of_rank[i]);
    if (const auto origin = Find(parts)) {
      origins_.emplace(Place{part, node, i}, *origin);
      held_.insert(origin->place);
    }
  }
}

std::optional<Lineage::Origin> Lineage::OriginOfMultiple(std::span<const Value> parts,
                                                         Residue factor) const {
  std::vector<Value> multiples;
  for (const Value& part : parts) {
    const auto* tensor = std::get_if<Tensor>(&part);
    if (tensor == nullptr || tensor->domain() == Domain::kInteger) return std::nullopt;
    multiples.emplace_back(Scale(*tensor, factor));
  }
  return Find(multiples);
}

const Lineage::Origin* Lineage::OriginOf(const Place& place) const {
  const auto found = origins_.find(place);
  return found == origins_.end() ? nullptr : &found->second;
}

std::optional<Relation> RelationTo(const Value& whole, std::span<const Value> parts,
                                   const Mesh& mesh) {
  const auto* tensor = std::get_if<Tensor>(&whole);
  if (tensor == nullptr) return std::nullopt;
  for (const Relation& relation : AllRelations(tensor->dim(), mesh)) {
    const std::optional<Tensor> held = WholeOf(parts, relation, mesh);
    if (held && SameElements(*tensor, *held)) return relation;
  }
  return std::nullopt;
}

}  // namespace strata::prove
