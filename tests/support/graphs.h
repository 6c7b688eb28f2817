#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "ir/graph.h"
#include "ir/module.h"

namespace strata::testing {

/// The module of a native text. Ends the test program with the parser's message if the text is
/// invalid.
std::unique_ptr<Module> ParseOrDie(std::string_view text);

/// As ParseOrDie, from text without its first line `graph g`.
std::unique_ptr<Module> ParseBody(std::string_view body);

/// The nodes of graph `g` as native text without types and metadata, after a line break: the form
/// of a test's raw string.
std::string BodyOf(const Module& module);

/// The value of a Result. Ends the test program with the message of an error.
template <class T>
T OrDie(Result<T> result) {
  STRATA_CHECK(result, "{}", result.error().message());
  return std::move(result).value();
}

inline void OrDie(const Status& status) {
  STRATA_CHECK(status, "{}", status.error().message());
}

/// The node named `name`. REQUIRES: there is one.
NodeId NodeNamed(const Graph& graph, std::string_view name);

/// The only result of the node named `name`.
ValueId ValueNamed(const Graph& graph, std::string_view name);

/// The type of the value named `value` in graph "g", as text.
std::string TypeOf(const Module& module, std::string_view value);

}  // namespace strata::testing
