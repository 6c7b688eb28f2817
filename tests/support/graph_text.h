#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "ir/module.h"
#include "ir/native_text.h"
#include "ir/result.h"

namespace strata::testing {

/// The value of a Result that a test relies on; ends the test program with the error otherwise.
template <class T>
T OrDie(Result<T> result) {
  STRATA_CHECK(result, "{}", result.error().message());
  return std::move(result).value();
}

/// A module from native text without its first line `graph g`.
inline std::unique_ptr<Module> ParseBody(std::string_view body) {
  return OrDie(ParseText(fmt::format("graph g\n{}", body)));
}

/// The nodes of graph `g` as native text without types and metadata, after a line break.
inline std::string BodyOf(const Module& module) {
  const Graph* graph = module.FindGraph("g");
  STRATA_CHECK(graph, "no graph 'g'");
  std::string text = PrintText(*graph, {.types = false, .metadata = false});
  return text.substr(text.find('\n'));
}

}  // namespace strata::testing
