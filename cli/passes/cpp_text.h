#pragma once
#include <set>
#include <string>
#include <string_view>

#include "ir/type.h"

namespace strata::cli {

/// Gives the identifiers of a C++ program, each once.
class CppNames {
 public:
  /// `wanted` itself where it is an identifier that no one took, no word of C++ and none of the
  /// program around; else one like it.
  std::string Take(std::string_view wanted);

 private:
  std::set<std::string> taken_;
};

/// A string literal: any text stays on its line.
std::string CppString(std::string_view text);

/// A literal of a double with the same bits; of a NaN with any.
std::string CppDouble(double value);

/// `// TEXT`, for the end of a line: never goes on in the next one. "": for no text.
std::string CppComment(std::string_view text);

/// `torch.float32` as a constant of ATen; empty: it has none here.
std::string_view CppScalarType(DType dtype);

}  // namespace strata::cli
