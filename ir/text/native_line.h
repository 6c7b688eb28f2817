#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "ir/module.h"

namespace strata {

/// The content of a line of native text besides the computation.
struct NativeLineStyle {
  bool types = true;
  bool aliases = true;
  bool places = true;                                 ///< phase, module path, stream
  bool sources = true;                                ///< sequence number and location
  bool (*attribute)(std::string_view key) = nullptr;  ///< which ones to print; null: all
  bool stable_ids = false;
};

/// The names of nodes, elements and bodies in a line: by default their own.
class NativeNames {
 public:
  NativeNames() = default;
  NativeNames(const NativeNames&) = delete;
  NativeNames& operator=(const NativeNames&) = delete;
  virtual ~NativeNames() = default;

  virtual std::string_view OfNode(const Graph& graph, NodeId node) const;
  /// REQUIRES: the element has a name.
  virtual std::string_view OfElement(const Graph& graph, ValueId element) const;
  /// The `1` of `graph(1)`.
  virtual int32_t OfGraph(const Graph& graph) const;
};

/// One node as a line of native text, without blanks before and without a line break.
void PrintLine(const Graph& graph, NodeId node, const NativeLineStyle& style,
               const NativeNames& names, std::string& out);
/// `graph NAME body foreign`, without a line break.
void PrintGraphLine(const Graph& graph, std::string& out);
/// A line for each symbol of which more is known than its name.
void PrintSymbols(const Module& module, std::string& out);

}  // namespace strata
