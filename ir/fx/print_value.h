#pragma once
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "ir/graph.h"

namespace strata::fx {

/// Appends names, types and arguments of one graph to a text.
class ValuePrinter {
 public:
  ValuePrinter(const Graph& graph, std::string& out);

  /// The names under which the text knows a node and a value: their own where Python accepts them.
  /// An element that has none gets one from its node.
  std::string_view NameOf(NodeId id) const;
  std::string NameOf(ValueId id) const;
  void Print(const Arg& arg);
  /// `a, b, c`
  void PrintList(std::span<const Arg> elements);
  /// `: "f32[2][1]cpu"`; nothing when the type is not known.
  void PrintType(TypeId type);
  /// Of a node with one result; also ` : python.type`.
  void PrintNodeType(NodeId id);

 private:
  void PrintDevice(std::string_view device);
  void FindNames();

  const Graph& graph_;
  std::string& out_;
  // By index, for names that cannot be printed.
  std::unordered_map<int32_t, std::string> node_names_, element_names_;
};

/// The attribute under which a body hangs at its parent: the last part of its path.
std::string_view ChildName(const Graph& body);

/// `base.a.b`; names that Python does not accept go through getattr (torch.fx `_format_target`).
std::string TargetOf(std::string base, std::string_view path);

}  // namespace strata::fx
