#pragma once
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/module.h"

namespace strata {

/// A graph that Dynamo cut at the ends of DDP's buckets, and those that AOTAutograd made of its
/// parts.
struct CutGraph {
  struct Piece {
    GraphId forward;   ///< or that of inference
    GraphId backward;  ///< none: there is no backward graph
  };
  std::shared_ptr<Module> module;
  GraphId split;              ///< calls the parts: `submod_0`, `submod_1`, …
  std::vector<Piece> pieces;  ///< in that order
};

/// The texts of a CutGraph in a log; "": there is none.
struct CutTexts {
  struct Piece {
    std::string_view forward, backward;
  };
  std::string_view split;
  std::vector<Piece> pieces;
};

/// Reads all texts into one module. Errors: no text of a graph.
Result<CutGraph> ReadCut(const CutTexts& texts, std::string_view file);

}  // namespace strata
