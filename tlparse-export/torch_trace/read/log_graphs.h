#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "tlparse-export/torch_trace/read/log.h"

namespace strata {

/// A text of a graph without the last line `# graph id: …`, which names an object's address.
std::string_view WithoutGraphId(std::string_view text);

/// The pass whose result a record holds: `dce` of `after_dce`, `post_grad_graph` of
/// `inductor_post_grad_graph`; "": of none.
std::string_view PassEndedBy(std::string_view record);

/// Whether a record says that a compilation took its result from a cache.
bool IsCacheHit(std::string_view record);

/// Whether a graph, by its signature, or generated code takes gradients of a forward graph's
/// outputs, by the name that AOTAutograd gives them: `tangents_1`.
bool TakesTangents(std::string_view graph);
bool CodeTakesTangents(std::string_view code);

/// What a record of the backward graph of a compilation is named: PyTorch names records of Inductor
/// the same for both graphs. `post_grad_graph` → `post_grad_graph_backward`; names that say which
/// graph they are (`aot_backward_graph`, `joint_graph`) stay.
std::string BackwardName(std::string_view record);

/// What a record with a graph is to the graphs of its run.
struct GraphStep {
  struct Place {
    size_t graph, snapshot;
  };
  size_t graph = 0;      ///< number of the graph, in order of first appearance
  size_t snapshot = 0;   ///< of the graph
  bool is_same = false;  ///< as the snapshot before it
  /// The graph is new and continues another one: its first snapshot, 0, is this one of the other.
  std::optional<Place> continued = {};
  struct Pass {
    std::string name;
    size_t before = 0, after = 0;  ///< snapshots
    bool is_unchanged = false;
  };
  std::vector<Pass> ended = {};  ///< the passes that this record ends, in order
};

/// Finds the graphs and passes of a run while its records come in.
///
/// `before_X` and the next `after_X` of the same compilation are a pass X. Its graph is the one of
/// the same compilation whose last text is that of `before_X`; outside of compilations, where there
/// is one graph, else the last one that passes ran on; else a graph of its own with the name X,
/// which outside of compilations continues the last graph. What changed in a graph between the
/// passes of which PyTorch logs texts is a pass, too: `before_X`, from the snapshot before X to the
/// text with which X begins. Every other record with a graph, and an `after_X` alone, is a graph of
/// its name, and so is a `before_X` without an end whose text no graph had. An
/// `inductor_post_grad_graph` alone, which PyTorch logs when it takes the graph from a cache, is
/// named as its pass: `post_grad_graph`. A graph that takes tangents is named as BackwardName says.
class GraphTracker {
 public:
  /// `text` is the same for texts that differ in nothing but a graph id.
  GraphStep Add(std::string_view record, std::string_view compile, int32_t text,
                bool takes_tangents = false);
  /// Snapshots that only precede passes that never ended. To be called once, at the end; a snapshot
  /// is then the first one of a new graph, too.
  struct Orphan {
    size_t graph, snapshot;  ///< where it stands
    size_t new_graph;
    int32_t text;
  };
  std::vector<Orphan> TakeOrphans();
  /// Unique: the record's name, behind it `@1/0` when a graph of another compilation has the name,
  /// then `.2`, `.3`, ….
  const std::string& name(size_t graph) const { return graphs_[graph].name; }

 private:
  struct Graph {
    std::string name;
    size_t snapshots = 0;
    int32_t last_text = -1;
    bool has_passes = false;
  };
  struct Open {
    size_t graph, snapshot;
    int32_t text;
    bool is_strange;    // the graph had another text
    bool is_continued;  // the graph began with it, from the text of another graph
    std::string compile, record;
  };
  void Abandon(Open open);
  GraphStep Begin(std::string_view name, std::string_view compile, int32_t text);
  using Key = std::pair<std::string, std::string>;

  GraphStep AddSnapshot(size_t graph, std::string_view compile, int32_t text);
  size_t NewGraph(std::string_view name, std::string_view compile);
  std::optional<size_t> FindGraph(std::string_view compile, int32_t text) const;

  std::vector<Graph> graphs_;
  std::vector<Open> abandoned_;
  std::map<Key, Open> open_;                                    // by compilation and pass
  std::map<std::pair<std::string, int32_t>, size_t> of_text_;   // by compilation and text
  std::optional<size_t> last_outside_;                          // of all compilations
  std::unordered_map<std::string, std::string> first_compile_;  // by name of records
  std::unordered_map<std::string, int> counts_;                 // by name with compilation
  std::unordered_set<std::string> names_;
};

/// Adds the last record of `run` to its graphs and passes.
void AddStep(const GraphStep& step, const GraphTracker& tracker, LogRun& run);
/// Adds the graphs of GraphTracker::TakeOrphans; no record may follow.
void AddOrphans(GraphTracker& tracker, LogRun& run);

}  // namespace strata
