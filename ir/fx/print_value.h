#pragma once
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/arg_printer.h"

namespace strata::fx {

/// Appends names, types and arguments of one graph to a text.
class ValuePrinter final : public ArgPrinter {
 public:
  ValuePrinter(const Graph& graph, std::string& out);

  /// The names under which the text knows a node and a value: their own where Python accepts them.
  /// An element that has none gets one from its node.
  std::string_view NameOf(NodeId id) const;
  std::string_view NameOf(ValueId id) const;
  /// `: "f32[2][1]cpu"`; nothing when the type is not known.
  void PrintType(TypeId type);
  /// Of a node with one result; also ` : python.type`.
  void PrintNodeType(NodeId id);

 private:
  void PrintValue(ValueId value) override;
  void PrintBody(const Graph& body) override;
  void FindNames();
  /// `: "f32[2][1]cpu"`
  const std::string& TypeText(TypeId type);

  std::vector<std::string> type_texts_;  // by TypeId; "": not printed yet
  // By index, for names that cannot be printed.
  std::unordered_map<int32_t, std::string> node_names_, element_names_;
};

/// The attribute under which a body hangs at its parent: the last part of its path.
std::string_view ChildName(const Graph& body);

/// `base.a.b`; names that Python does not accept go through getattr (torch.fx `_format_target`).
std::string TargetOf(std::string base, std::string_view path);

}  // namespace strata::fx
