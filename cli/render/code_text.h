#pragma once
#include <string>
#include <vector>

#include "base/json.h"
#include "diff/history/history.h"
#include "diff/history/history_code.h"

namespace strata::cli {

struct CodeTextOptions {
  bool all = false;  ///< every line; else the first ones of each record
};

/// Which records of generated code of two runs differ, and their lines; "": none.
std::string CodeDifferencesText(const std::vector<CodeDifference>& differences, const History& a,
                                const History& b, const CodeTextOptions& options = {});

/// Key `code` of an object: a list of {record, only_in, kernels: [{name, status, nodes, deleted,
/// inserted, lines}]}.
void WriteCodeJson(JsonWriter& json, const std::vector<CodeDifference>& differences,
                   const History& a, const History& b);

}  // namespace strata::cli
