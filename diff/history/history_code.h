#pragma once
#include <string>
#include <vector>

#include "base/result.h"
#include "diff/code/code_diff.h"
#include "diff/history/history.h"

namespace strata {

/// A record of generated code that differs between two runs, or that only one has.
struct CodeDifference {
  std::string label;       ///< `inductor_output_code [0/0]`
  int32_t a = -1, b = -1;  ///< indices into History::code; -1: this run does not have it
  std::vector<KernelDiff> kernels;
};

/// Compares the generated code of two runs, record by record: those of one name and compilation in
/// their order. A record that only a compiler cache explains is not a difference. Errors: a text
/// that cannot be loaded.
Result<std::vector<CodeDifference>> DiffGeneratedCode(const History& a, const History& b);

/// `2 kernels differ`, `only in run.log`.
std::string DescribeCode(const CodeDifference& difference, const History& a, const History& b);

}  // namespace strata
