#include "ir/arg_printer.h"

#include "base/python_literal.h"
#include "ir/module.h"

namespace strata {

void ArgPrinter::Print(const Arg& arg) {
  const Module& module = graph_.module();
  switch (arg.kind()) {
    case ArgKind::kNone:
      out_ += "None";
      return;
    case ArgKind::kValue:
      return PrintValue(arg.value());
    case ArgKind::kInt:
      return AppendInt(arg.as_int(), out_);
    case ArgKind::kFloat:
      return AppendFloat(arg.as_float(), out_);
    case ArgKind::kBool:
      out_ += arg.as_bool() ? "True" : "False";
      return;
    case ArgKind::kDim:
      return PrintDim(arg.dim());
    case ArgKind::kString:
      return AppendQuoted(module.str(arg.str()), out_);
    case ArgKind::kDType:
      out_ += TorchName(arg.dtype());
      return;
    case ArgKind::kDevice:
      return PrintDevice(module.str(arg.str()));
    case ArgKind::kRaw:
      return PrintRaw(module.str(arg.str()));
    case ArgKind::kGraph:
      return PrintBody(module.graph(arg.graph()));
    case ArgKind::kList:
      out_ += '[';
      PrintList(graph_.elements(arg));
      out_ += ']';
      return;
    case ArgKind::kTuple:
      out_ += '(';
      PrintList(graph_.elements(arg));
      out_ += arg.span_size() == 1 ? ",)" : ")";
      return;
    case ArgKind::kDict:
      return PrintDict(graph_.elements(arg));
    case ArgKind::kCall:
      return PrintCall(graph_.elements(arg));
  }
}

void ArgPrinter::PrintList(std::span<const Arg> elements) {
  for (size_t i = 0; i < elements.size(); ++i) {
    if (i > 0) out_ += ", ";
    Print(elements[i]);
  }
}

void ArgPrinter::PrintDict(std::span<const Arg> parts) {
  out_ += '{';
  for (size_t i = 0; i + 1 < parts.size(); i += 2) {
    if (i > 0) out_ += ", ";
    Print(parts[i]);
    out_ += ": ";
    Print(parts[i + 1]);
  }
  out_ += '}';
}

void ArgPrinter::PrintDim(DimId dim) {
  graph_.module().dims().Print(dim, out_);
}

void ArgPrinter::PrintDevice(std::string_view device) {
  const size_t colon = device.find(':');
  out_ += "device(type='";
  out_ += device.substr(0, colon);
  out_ += '\'';
  if (colon != std::string_view::npos) {
    out_ += ", index=";
    out_ += device.substr(colon + 1);
  }
  out_ += ')';
}

void ArgPrinter::PrintRaw(std::string_view text) {
  out_ += text;
}

void ArgPrinter::PrintCall(std::span<const Arg> parts) {
  if (parts.empty()) return;
  const std::string_view name = graph_.module().str(parts[0].str());
  out_ += name;
  if (name.ends_with('=') && parts.size() == 2) return Print(parts[1]);
  out_ += '(';
  PrintList(parts.subspan(1));
  out_ += ')';
}

}  // namespace strata
