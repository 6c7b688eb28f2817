#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "diff/history/history.h"
#include "refs/cut_graph.h"

namespace strata {

/// What a log says of a frame that torch.compile compiled.
struct LoggedCompilation {
  std::string id;                       ///< "0/0"
  LoadedGraph forward;                  ///< of AOTAutograd, or that of inference
  std::optional<LoadedGraph> backward;  ///< none: not compiled
  /// Of DDP with `optimize_ddp`: the graphs of all parts; those above are of the last one.
  std::optional<CutGraph> cut;
  std::vector<std::string> inputs;          ///< of Dynamo's graph, as it names them: "L_x_"
  std::string metadata, subclass_metadata;  ///< texts that AOTAutograd logs; "": it did not
};

/// What one rank logged.
struct LoggedCompilations {
  std::string ref;
  int32_t rank = 0;
  std::vector<LoggedCompilation> compilations;  ///< those with a graph of AOTAutograd
};

/// Of the log that `text` names, or of all logs of a folder: by rank, in order. Errors: as
/// LoadHistories; a compilation with several forward graphs of which the log does not say more.
Result<std::vector<LoggedCompilations>> LoadCompilations(std::string_view text);

}  // namespace strata
