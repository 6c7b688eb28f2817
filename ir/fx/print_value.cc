#include "ir/fx/print_value.h"

#include <unordered_set>
#include <vector>

#include <fmt/format.h>

#include "ir/fx/operators.h"
#include "ir/module.h"

namespace strata::fx {

namespace {

/// torch.fx gives no node such a name either (`_Namespace`, `_illegal_names`).
bool IsPrintableName(std::string_view name) {
  static const std::unordered_set<std::string_view> kReserved = {
      "False", "None",     "True",  "and",    "as",      "assert", "async",  "await",    "break",
      "class", "continue", "def",   "del",    "elif",    "else",   "except", "finally",  "for",
      "from",  "global",   "if",    "import", "in",      "is",     "lambda", "nonlocal", "not",
      "or",    "pass",     "raise", "return", "try",     "while",  "with",   "yield",    "self",
      "torch", "inf",      "nan",   "device", "Ellipsis"};
  if (!IsIdentifier(name)) return false;
  return IsDigit(name.back()) || !kReserved.contains(name);  // `mm_12`: most names
}

}  // namespace

ValuePrinter::ValuePrinter(const Graph& graph, std::string& out) : ArgPrinter(graph, out) {
  FindNames();
}

void ValuePrinter::FindNames() {
  std::vector<NodeId> nodes;
  std::vector<ValueId> elements;
  for (NodeId id : graph_.nodes()) {
    const Node& node = graph_.node(id);
    if (node.kind != NodeKind::kOutput && !IsPrintableName(graph_.name(id))) nodes.push_back(id);
    for (size_t i = 0; node.returns_tuple && i < node.num_results; ++i) {
      const Value& value = graph_.value(graph_.result(id, i));
      const bool has_name = value.name.valid() && IsPrintableName(graph_.module().str(value.name));
      if (!has_name && (value.name.valid() || value.num_uses > 0)) {
        elements.push_back(graph_.result(id, i));
      }
    }
  }
  if (nodes.empty() && elements.empty()) return;
  std::unordered_set<std::string> taken;
  for (NodeId id : graph_.nodes()) {
    taken.emplace(graph_.name(id));
    const Node& node = graph_.node(id);
    for (size_t i = 0; node.returns_tuple && i < node.num_results; ++i)
      taken.emplace(graph_.value_name(graph_.result(id, i)));
  }
  const auto make = [&](std::string_view name) {
    std::string base;
    for (char c : name)
      base += IsNameChar(c) ? c : '_';
    if (!IsPrintableName(base)) base.insert(0, "_");
    std::string free = base;
    for (int suffix = 1; !taken.insert(free).second; ++suffix)
      free = fmt::format("{}_{}", base, suffix);
    return free;
  };
  for (NodeId id : nodes)
    node_names_[id.index] = make(graph_.name(id));
  for (ValueId id : elements) {
    const Value& value = graph_.value(id);
    element_names_[id.index] =
        make(value.name.valid() ? std::string(graph_.value_name(id))
                                : fmt::format("{}_{}", NameOf(value.def), graph_.result_index(id)));
  }
}

std::string_view ValuePrinter::NameOf(NodeId id) const {
  if (node_names_.empty()) return graph_.name(id);
  const auto found = node_names_.find(id.index);
  return found == node_names_.end() ? graph_.name(id) : std::string_view(found->second);
}

std::string_view ValuePrinter::NameOf(ValueId id) const {
  const Value& value = graph_.value(id);
  if (!graph_.node(value.def).returns_tuple) return NameOf(value.def);
  const auto found = element_names_.find(id.index);
  return found == element_names_.end() ? graph_.value_name(id) : std::string_view(found->second);
}

void ValuePrinter::PrintType(TypeId type) {
  if (type.valid()) out_ += TypeText(type);
}

const std::string& ValuePrinter::TypeText(TypeId type) {
  const TypeTable& types = graph_.module().types();
  if (type_texts_.empty()) type_texts_.resize(types.size());
  std::string& text = type_texts_[static_cast<size_t>(type.index)];
  if (!text.empty()) return text;
  text = ": \"";
  types.Print(type, text);
  return text += '"';
}

void ValuePrinter::PrintNodeType(NodeId id) {
  const std::string_view python_type = graph_.attribute(id, kPythonTypeKey);
  if (!python_type.empty()) {
    out_ += " : ";
    out_ += python_type;
  } else if (!graph_.node(id).returns_tuple && graph_.node(id).num_results > 0) {
    PrintType(graph_.value(graph_.result(id)).type);
  }
}

void ValuePrinter::PrintValue(ValueId value) {
  out_ += NameOf(value);
}

void ValuePrinter::PrintBody(const Graph& body) {
  out_ += ChildName(body);
}

std::string_view ChildName(const Graph& body) {
  const std::string_view path = body.name_text();
  return path.substr(path.rfind('/') + 1);  // npos + 1 is 0
}

std::string TargetOf(std::string base, std::string_view path) {
  while (true) {
    const std::string_view element = path.substr(0, path.find('.'));
    base = IsIdentifier(element) ? fmt::format("{}.{}", base, element)
                                 : fmt::format("getattr({}, \"{}\")", base, element);
    if (element.size() == path.size()) return base;
    path.remove_prefix(element.size() + 1);
  }
}

}  // namespace strata::fx
