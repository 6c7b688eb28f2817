#pragma once
#include <map>
#include <set>
#include <string>
#include <utility>

#include "ir/graph.h"

namespace strata {

/// The C++ that calls of graphs run on CPUs, for people: functions without the preamble of a file
/// (cpp_source.h, flex_source.h). Keeps what it made, so the graphs must not change.
class KernelCode {
 public:
  /// The function of a fused body or of flex attention; of a region those of the calls inside, each
  /// once. "": the call runs no code that Strata generates, or its sizes are not known.
  const std::string& Of(const Graph& graph, NodeId call);

 private:
  std::string Make(const Graph& graph, NodeId call);
  const std::string& OfBody(const Graph& body, bool is_exact);
  std::string OfRegion(const Graph& body);
  /// Finds the code of all calls of flex attention: their kernels follow from a plan of the graph.
  void AddFlexCode(const Graph& graph);

  std::map<std::pair<const Graph*, NodeId>, std::string> of_call_;
  std::map<std::pair<const Graph*, bool>, std::string> of_body_;
  std::map<std::pair<const Graph*, NodeId>, std::string> of_flex_;
  std::set<const Graph*> has_flex_code_;
};

}  // namespace strata
