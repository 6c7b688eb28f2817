#include "ir/fx/print_signature.h"

#include <algorithm>
#include <string_view>

#include "ir/fx/operators.h"

namespace strata::fx {

void SignaturePrinter::Print(size_t indent, bool is_expanded) {
  indent_ = indent;
  if (OutputFact(graph_, kSignatureKey) == "boxed") {
    PrintBoxedSignature();
  } else {
    PrintSignature(is_expanded);
    indent_ += 4;
    PrintPrologue(is_expanded);
  }
}

void SignaturePrinter::PrintParameter(NodeId id) {
  const std::string_view argument = graph_.attribute(id, kArgumentKey);
  out_ += argument.empty() ? values_.NameOf(id) : argument;
  values_.PrintNodeType(id);
  if (graph_.node(id).num_args > 0) {
    out_ += " = ";
    values_.Print(graph_.args(id)[0]);
  }
}

void SignaturePrinter::PrintSignature(bool is_expanded) {
  Line("def forward(");
  if (is_expanded) {
    out_ += '\n';
    Line("    self,\n");
  } else {
    out_ += "self";
  }
  const std::string_view separator = is_expanded ? ",\n" : "";
  const auto begin_parameter = [&] {
    if (is_expanded) {
      Line("    ");
    } else {
      out_ += ", ";
    }
  };
  if (OutputFact(graph_, kFlattenKey).empty()) {
    for (NodeId id : graph_.nodes()) {
      if (graph_.node(id).kind != NodeKind::kPlaceholder) continue;
      begin_parameter();
      PrintParameter(id);
      if (is_expanded) {
        out_ += ',';
        PrintDescriptor(id);
        out_ += '\n';
      }
    }
  } else {
    std::string_view arguments = OutputFact(graph_, kArgumentsKey);
    while (!arguments.empty()) {
      const std::string_view argument = arguments.substr(0, arguments.find(", "));
      begin_parameter();
      out_ += argument;
      out_ += separator;
      arguments.remove_prefix(std::min(argument.size() + 2, arguments.size()));
    }
  }
  if (is_expanded) Line("");
  PrintEndOfSignature();
}

void SignaturePrinter::PrintEndOfSignature() {
  out_ += ')';
  if (const std::string_view type = OutputFact(graph_, kReturnTypeKey); !type.empty()) {
    out_ += " -> ";
    out_ += type;
  }
  out_ += ":\n";
}

void SignaturePrinter::PrintBoxedSignature() {
  Line("def forward(self, args_list");
  PrintEndOfSignature();
  indent_ += 4;
  Line("args_iter = iter(args_list)\n");
  for (NodeId id : graph_.nodes()) {
    if (graph_.node(id).kind != NodeKind::kPlaceholder) continue;
    const std::string_view argument = graph_.attribute(id, kArgumentKey);
    Line(argument.empty() ? values_.NameOf(id) : argument);
    out_ += " = next(args_iter)\n";
  }
  Line("args_list.clear()\n");
}

void SignaturePrinter::PrintDescriptor(NodeId id) {
  const std::string_view descriptor = graph_.attribute(id, kDescriptorKey);
  if (descriptor.empty() || !options_.comments) return;
  out_ += "  # ";
  out_ += descriptor;
}

void SignaturePrinter::PrintPrologue(bool is_expanded) {
  const std::string_view flatten = OutputFact(graph_, kFlattenKey);
  if (flatten.empty()) return;
  std::string names;
  bool has_types = false;
  for (NodeId id : graph_.nodes()) {
    if (graph_.node(id).kind != NodeKind::kPlaceholder) continue;
    names += values_.NameOf(id);
    names += ", ";
    const size_t begin = out_.size();
    values_.PrintNodeType(id);
    if (out_.size() == begin) continue;
    const std::string type = out_.substr(begin);
    out_.resize(begin);
    if (is_expanded || !has_types) Line("");
    has_types = true;
    out_ += values_.NameOf(id);
    out_ += type;
    if (is_expanded) {
      PrintDescriptor(id);
      out_ += '\n';
    } else {
      out_ += "; ";
    }
  }
  if (has_types && !is_expanded) out_ += "\n\n";
  Line(names.substr(0, names.empty() ? 0 : names.size() - 1));
  out_ += " = ";
  out_ += flatten;
  out_ += '\n';
}

void SignaturePrinter::PrintAlias(NodeId id) {
  std::string_view argument = graph_.attribute(id, kArgumentKey);
  while (argument.starts_with('*'))
    argument.remove_prefix(1);
  if (argument.empty() || argument == values_.NameOf(id)) return;
  Line(values_.NameOf(id));
  out_ += " = ";
  out_ += argument;
  out_ += '\n';
}

}  // namespace strata::fx
