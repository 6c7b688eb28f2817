#pragma once
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/graph.h"
#include "ir/module.h"

namespace strata {

/// Which parameters the inputs of a log's graphs are. Dynamo names the inputs of its graph after
/// parameters; AOTAutograd numbers them, and says `PlainAOTInput(idx=3)` of the fourth of Dynamo's;
/// Inductor keeps AOTAutograd's names and says nothing. Remembers the last compilations.
class InputPaths {
 public:
  /// Takes what a graph of a compilation says of its inputs.
  void Learn(std::string_view compile, const Graph& graph);
  /// Sets the attribute `fqn` of inputs that do not state their parameter themselves (see
  /// StatedPath) and of which the compilation's graphs so far do.
  void Apply(std::string_view compile, Module& module) const;

 private:
  struct Compilation {
    std::string id;
    std::vector<std::string> dynamo;                       // paths of its inputs, "" of some
    std::unordered_map<std::string, std::string> by_name;  // paths of AOTAutograd's inputs
  };
  std::deque<Compilation> compilations_;
};

}  // namespace strata
