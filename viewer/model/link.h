#pragma once
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace strata::viewer {

/// What may stand on lines: nothing, or what an overlay of that key writes. The last two are
/// offered where the graph has them.
inline constexpr std::array<std::string_view, 6> kLineLabels = {
    "", "shape", "dtype", "bytes", "placement", "communication"};

/// A link to what is shown: the fragment of the report's page and of `strata-view 'T#…'`. It begins
/// with the selector of a REF, then has the choices that differ from their defaults:
/// `run=1,graph=step,pass=3&tab=table&node=mm_12`. Both programs read and write the same text; the
/// page has the same in assets/report/route.js.
struct Link {
  std::string ref;   ///< "run=1,graph=step,pass=3"; "": the first subject
  std::string from;  ///< the REF that `ref` is compared with, if it is not the graph before a pass
  std::string tab = "graph";     ///< "graph", "table", "text", "patterns"
  std::string mode = "unified";  ///< "unified", "side", "blink"
  std::string node;              ///< the selected node
  std::string hops = "1";        ///< "0" … "3", "all"
  std::string overlay, labels, sort;
  std::string spelling = "native";
  std::vector<std::string> open;  ///< module paths
  std::string filter;
  std::string cam;  ///< "x,y,scale" of the middle of the stage

  friend bool operator==(const Link&, const Link&) = default;
};

/// Reads a fragment, with or without its `#`. Unknown choices are ignored, unknown values become
/// defaults.
Link ParseLink(std::string_view fragment);
/// Without `#`.
std::string PrintLink(const Link& link);
/// The file and the link of `FILE#LINK`, as Model::FullLink writes it: links have no `#`.
std::pair<std::string, Link> SplitLink(std::string_view full);

}  // namespace strata::viewer
