#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace strata {

/// A text as the readers of graphs and logs know it, and what was left out of it.
struct PastedText {
  std::string text;
  std::vector<std::string> warnings;  ///< `12 lines around the graph are skipped`
};

/// Reads what people paste:
///
///   - UTF-8 with a byte order mark and UTF-16 become UTF-8;
///   - lines that a terminal broke at its width are joined (Unwrapped);
///   - the output of TORCH_LOGS becomes a log (WithTorchLogsRead);
///   - of Markdown, quotes (`> `), and other text around graphs, the FX graphs stay;
///   - `str(graph)` and `graph.print_tabular()` become FX text, their types are not known;
///   - several graphs become a log, in which they have the names of their classes.
///
/// Lines of a single graph keep their numbers. Any other text is returned as it is.
PastedText ReadPasted(std::string text);

/// Whether `ReadPasted` may change a text that begins so: it is to be read as a whole.
bool LooksPasted(std::string_view head);

}  // namespace strata
