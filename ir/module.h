#pragma once
#include <algorithm>
#include <memory>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/dim.h"
#include "ir/graph.h"
#include "ir/strings.h"
#include "ir/type.h"

namespace strata {

/// How a node came to be.
enum class Origin : uint8_t {
  kTraced,    ///< from a program or a file; has no ancestors
  kCreated,   ///< computed anew from its ancestors' meaning
  kCloned,    ///< a copy of its one ancestor
  kReplaced,  ///< stands for its ancestors, which are gone
};
std::string_view ToString(Origin origin);

/// A provenance record: written by Rewriter, persisted by the trace.
struct Provenance {
  StableId node;
  Origin origin = Origin::kTraced;
  std::vector<StableId> from;
};

/// Graphs that belong together (the step, the optimizer, bodies of higher-order nodes), and the
/// tables of strings, sizes, types and locations that they share.
class Module {
 public:
  Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  /// A deep copy in which all ids keep their meaning.
  std::unique_ptr<Module> Clone() const;

  Graph& AddGraph(std::string_view name, bool is_body = false);
  Graph& graph(GraphId id) { return *graphs_[static_cast<size_t>(id.index)]; }
  const Graph& graph(GraphId id) const { return *graphs_[static_cast<size_t>(id.index)]; }
  size_t num_graphs() const { return graphs_.size(); }
  /// The first graph of that name that is not a body, or null.
  Graph* FindGraph(std::string_view name);
  const Graph* FindGraph(std::string_view name) const;
  /// Programs in order of addition, without bodies.
  std::vector<GraphId> programs() const;
  void RenameGraph(GraphId id, std::string_view name) { graph(id).name_ = Intern(name); }
  /// Marks a graph as read from a text that is not ours.
  void MarkForeign(GraphId id) { graph(id).is_foreign_ = true; }

  StringTable& strings() { return strings_; }
  const StringTable& strings() const { return strings_; }
  DimTable& dims() { return dims_; }
  const DimTable& dims() const { return dims_; }
  TypeTable& types() { return types_; }
  const TypeTable& types() const { return types_; }
  LocId InternLoc(const SourceLoc& loc);
  const SourceLoc& loc(LocId id) const { return locs_[static_cast<size_t>(id.index)]; }

  StrId Intern(std::string_view text) { return strings_.Intern(text); }
  std::string_view str(StrId id) const { return strings_[id]; }

  StableId NewStableId() { return StableId{next_stable_id_++}; }
  /// Ids below `next` are taken: by earlier snapshots of the same trace.
  void ReserveStableIds(uint64_t next) { next_stable_id_ = std::max(next_stable_id_, next); }
  uint64_t next_stable_id() const { return next_stable_id_; }
  /// Adds `offset` to all stable ids: a graph that was made before the ids of its trace were known
  /// takes its place among them.
  void ShiftStableIds(uint64_t offset);

  /// Provenance records since the last call; the recorder takes them after each pass.
  std::vector<Provenance> TakeProvenance() { return std::exchange(provenance_, {}); }
  std::span<const Provenance> provenance() const { return provenance_; }

 private:
  friend class Rewriter;
  struct CloneTag {};
  Module(const Module& other, CloneTag);

  StringTable strings_;
  DimTable dims_;
  TypeTable types_;
  std::vector<SourceLoc> locs_;
  std::unordered_map<uint64_t, std::vector<LocId>> loc_index_;
  std::vector<std::unique_ptr<Graph>> graphs_;
  std::vector<Provenance> provenance_;
  uint64_t next_stable_id_ = 1;
};

}  // namespace strata
