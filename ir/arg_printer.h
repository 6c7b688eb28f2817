#pragma once
#include <span>
#include <string>
#include <string_view>

#include "ir/graph.h"

namespace strata {

/// Appends arguments to a text as Python writes them: `[2, 1e-05, (torch.float32,)]`.
///
/// Names of values and bodies are those of the derived class. The other virtual functions write FX
/// text unless a text format has its own form.
class ArgPrinter {
 public:
  ArgPrinter(const Graph& graph, std::string& out) : graph_(graph), out_(out) {}

  void Print(const Arg& arg);
  /// `a, b, c`
  void PrintList(std::span<const Arg> elements);

 protected:
  ~ArgPrinter() = default;

  virtual void PrintValue(ValueId value) = 0;
  virtual void PrintBody(const Graph& body) = 0;
  virtual void PrintDim(DimId dim);
  /// `device(type='cuda', index=0)`
  virtual void PrintDevice(std::string_view device);
  virtual void PrintRaw(std::string_view text);
  /// `slice(None, 2)`; a call named `key=` is a keyword argument. The first part is the name.
  virtual void PrintCall(std::span<const Arg> parts);

  const Graph& graph_;
  std::string& out_;

 private:
  void PrintDict(std::span<const Arg> parts);
};

}  // namespace strata
