#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/module.h"
#include "passes/placement/node_key.h"
#include "passes/placement/placement.h"
#include "passes/placement/strategies.h"

namespace strata {

/// How a parameter, its gradient and its optimizer state are held, and how computations read it.
struct ParameterPlacement {
  Placements stored, read;
};

/// Options that entries of a plan may ask for.
struct PlanSwitches {
  bool sequence_parallel = true;  ///< activations between layers are cut along the sequence on `tp`
  bool loss_parallel = true;      ///< the loss is computed of logits that are cut along classes
};

/// What a user or a model family decides about placement; everything else follows from it by the
/// sharding rules of operators.
///
///     [[parameter]]                    # the first entry whose name matches holds
///     name = "layers.*.attention.wo.weight"
///     tp = "S(1)"
///     uneven = true                    # also where ranks do not divide the dimension
///
///     [[output]]                       # what leaves a module, in forward
///     module = "tok_embeddings"
///     sequence_parallel = true         # only with this value of the option; both when left out.
///                                      # So has loss_parallel
///     tp = "S(1)"                      # the sequence
///
///     [[parameter]]                    # of experts: their other ranks are those of `efsdp`
///     name = "layers.*.moe.experts.*"
///     ep = "S(0)"
///
///     [[node]]                         # one call, in graphs with a backward
///     module = "layers.*.attention.wo"
///     phase = "backward"
///     op = "aten.mm.default"
///     index = 1                        # the second such call of the module and phase; 0: left out
///     fsdp = "S(0)R -> S(0) => R"      # operands and results, one placement each; of the copies
///                                      # that readers of results share, "=> …" may be left out
///
/// `*` stands for any characters. Axes that an entry does not name: parameters are sharded along
/// dimension 0 on `fsdp` and `cp`, and replicated on other axes; those of experts are sharded on
/// `efsdp` instead, along the first dimension that ranks divide; outputs and nodes follow from
/// their operands. Parameters are gathered on these axes when read. Batches are sharded along
/// dimension 0 on `dp_replicate` and `fsdp`, along the sequence on `cp`.
class PlacementPlan {
 public:
  explicit PlacementPlan(Mesh mesh) : mesh_(std::move(mesh)) {}
  /// Of a TOML text called `file` in messages. Errors: no TOML, an unknown key, no placement.
  static Result<PlacementPlan> Parse(std::string_view text, std::string_view file, Mesh mesh,
                                     PlanSwitches switches);
  /// The plan of a model family by its name, "llama3", or that of the file `name`. "": one without
  /// entries. Errors: as Parse, and a file that cannot be read.
  static Result<PlacementPlan> Load(const std::string& name, Mesh mesh, PlanSwitches switches);

  const Mesh& mesh() const { return mesh_; }
  Placements Replicated() const { return Placements(mesh_.axes().size()); }

  /// Of the parameter `name`. What ranks cannot divide evenly is replicated on the axes of an entry
  /// that is not `uneven`.
  ParameterPlacement Parameter(Module& module, std::string_view name, const Type& type) const;
  /// What an entry says of the parameter `name` on axis `axis`; none: nothing.
  std::optional<Placement> Stored(Module& module, std::string_view name, size_t axis) const;
  /// Of data: int64 `[batch, seq]`, or numbers.
  Placements Batch(const Module& module, const Type& type) const;
  /// The placement on axis `axis` of what leaves `module_path`; none: not decided.
  std::optional<Placement> Output(Module& module, std::string_view module_path, size_t axis) const;
  /// All entries for outputs, as lines of a plan; empty: none.
  std::string OutputEntries() const;
  /// How a call runs on axis `axis`; none: not decided.
  std::optional<AxisStrategy> Strategy(Module& module, const NodeKey& key, size_t axis) const;
  /// The copies that readers of its results share; empty: not decided.
  std::vector<Placement> Shared(Module& module, const NodeKey& key, size_t axis) const;
  /// `file:line` of the entry for a call; empty: none.
  std::string WhereNode(const NodeKey& key) const;
  bool decides_nodes() const { return !nodes_.empty(); }

 private:
  class Reader;
  struct Entry {
    std::string pattern;
    std::vector<std::pair<size_t, std::string>> placements = {};  ///< (axis of the grid, text)
    bool is_of_experts = false;                                   ///< it names the axis ep
    bool is_uneven = false;  ///< ranks that do not divide a dimension have zeros after it
    // Of nodes.
    std::string phase = {}, op = {}, where = {};
    int64_t index = 0;
  };
  const Entry* Find(const std::vector<Entry>& entries, std::string_view name) const;
  const Entry* FindNode(const NodeKey& key) const;
  const std::string* CallOn(const NodeKey& key, size_t axis) const;  ///< null: not decided
  static std::optional<Placement> OnAxis(Module& module, const Entry* entry, size_t axis);
  /// Shards along a dimension on `fsdp`, or on `efsdp` what experts have. `decided`: axes on which
  /// an entry says how a parameter is stored.
  void StoreInParts(const Module& module, const Type& type, bool is_of_experts,
                    const std::vector<bool>& decided, ParameterPlacement& placement) const;

  Mesh mesh_;
  std::vector<Entry> parameters_, outputs_, nodes_;
};

}  // namespace strata
