#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/fingerprint.h"
#include "ir/text/native_line.h"

namespace strata {

/// An edit script that turns one graph into another. Its text is made to be read and reviewed; the
/// grammar is in docs/patch_format.md:
///
///     strata patch 1
///     before 2b6c…  5 nodes
///     after  90aa…  5 nodes
///     carries computation
///
///     graph 0 step from 0
///       1..2  # x … w
///     - 3  relu = aten.relu.default(x) : f32[4, 8]
///     +    gelu = aten.gelu.default(x) : f32[4, 8]
///     ~ 4  mm = aten.mm.default(relu, w) : f32[4, 4]
///     =    mm = aten.mm.default(gelu, w) : f32[4, 4]
///       5  # output
///     names
///       1 x
///       2 w
struct Patch {
  /// What a line contains besides the computation, and what a patch therefore changes.
  enum class Carries : uint8_t {
    kComputation,  ///< operators, arguments, types, aliases, names: all that FX text has as code
    kPlaces,       ///< also phase, module, stream and attributes, where they are trusted
    kEverything,   ///< also sequence numbers and locations
  };
  struct Side {
    Fingerprint fingerprint;
    int32_t nodes = 0;  ///< printed ones, of bodies too
  };
  enum class Action : uint8_t { kKeep, kMove, kDrop, kInsert, kChange };
  /// What happens next in the order of the result. Nodes of the base have numbers from 1.
  struct Step {
    Action action;
    int32_t first = 0, last = 0;         ///< of the base; none for kInsert
    size_t at = 0;                       ///< the step's line, as an offset into `text`
    size_t before_at = 0, after_at = 0;  ///< of the lines below
    std::string_view before, after;      ///< native text: kDrop, kChange; kInsert, kChange
  };
  /// A node of the base, or an element of its tuple, is called `after` in the result.
  struct Name {
    int32_t node;
    int32_t element = -1;
    std::string before, after;
    size_t at = 0;
  };
  struct GraphPart {
    std::string name;
    bool is_body = false, is_foreign = false;
    std::optional<int32_t> from;  ///< number of the base's graph; none: a new graph
    size_t at = 0;
    std::vector<Step> steps;
    std::vector<Name> names;
  };
  struct DroppedGraph {
    int32_t number;
    size_t at;
  };

  Side before, after;
  Carries carries = Carries::kComputation;
  struct SymbolLine {
    std::string_view line;
    size_t at;
  };
  std::optional<std::vector<SymbolLine>> symbols;  ///< of the result; none: those of the base
  std::vector<GraphPart> graphs;                   ///< the program, then its bodies
  std::vector<DroppedGraph> dropped;
  std::unique_ptr<const std::string> text;  ///< what the views point into
  std::string file;                         ///< its name in messages
};

/// How lines of such a patch are printed.
NativeLineStyle LineStyleOf(Patch::Carries carries);
std::string_view ToString(Patch::Carries carries);

}  // namespace strata
