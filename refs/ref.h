#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "diff/model/diff_options.h"
#include "ir/module.h"
#include "refs/warnings.h"

namespace strata {

/// A parsed REF: `FILE[#SELECTOR]`; a selector is `key=value` pairs joined by commas. A file whose
/// name contains `#` is found, too.
struct Ref {
  /// Which graph of a pass.
  enum class Side : uint8_t { kUnspecified, kBefore, kAfter };

  std::string text;  ///< as the user wrote it
  std::string file;
  std::optional<int64_t> run, rank;
  std::optional<std::string> graph;
  std::optional<std::string> pass;  ///< a number or a name
  Side side = Side::kUnspecified;

  bool has_selector() const { return run || rank || graph || pass; }
};
Result<Ref> ParseRef(std::string_view text);

/// For commands that take whole files. Errors: `text` is an existing file and a selector.
Status CheckWholeFile(const std::string& text);

/// A graph that a REF names, loaded.
struct Snapshot {
  std::string ref;  ///< as the user wrote it
  std::unique_ptr<Module> module;
  GraphId graph_id;
  std::string graph_name;
  /// The run of a trace in which nodes keep their stable ids; "" for foreign graphs. Snapshots with
  /// equal origins and equal graph names are joined by id.
  std::string origin;
  /// Provenance records of the nodes of that run.
  std::vector<Provenance> births;

  const Graph& graph() const { return module->graph(graph_id); }
};

/// How two snapshots are compared: by stable ids and provenance records if both belong to one graph
/// of one run.
DiffOptions OptionsFor(const Snapshot& before, const Snapshot& after);

struct LoadOptions {
  /// Recover from parse errors: keep what could be parsed, and report the rest to `warn`.
  bool lenient = false;
  /// Accept a text of several graphs: `graph_id` is the first, and the module has the others.
  bool whole_text = false;
  WarningSink warn = {};
};

/// Finds and loads the one graph that `ref` names: in a trace, in a log, or as the text of a graph
/// (FX or Strata's own); the content of the file decides which it is.
///
/// Errors: no such file, not a graph, nothing of that name, and several graphs: then the code is
/// kAmbiguous, and the further lines list the REFs of all.
Result<Snapshot> LoadRef(std::string_view ref, const LoadOptions& options = {});

struct SnapshotPair {
  Snapshot before, after;
};

/// Loads two graphs. The error of a file that has none goes before that of one that has several.
Result<SnapshotPair> LoadRefs(std::string_view before, std::string_view after,
                              const LoadOptions& options = {});

/// The error, of code kAmbiguous, for a REF that names several snapshots; `selectors` say which.
Error Ambiguous(const Ref& ref, const std::vector<std::string>& selectors);

}  // namespace strata
