#pragma once
#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "prove/foreign/evaluation.h"
#include "prove/foreign/setup.h"

namespace strata::prove {

/// What a difference ends with that is a factor: "rank 0: 1/2 of the expected value".
inline constexpr std::string_view kMultiple = " of the expected value";

/// What is assumed of how ranks hold inputs, and of code outside of the graphs.
struct Setting {
  std::map<std::string, Relation, std::less<>> inputs;  ///< by key; tangents too
  /// By axis: what code outside of the graphs does with what ranks leave partial; kReplicate:
  /// nothing.
  std::vector<Term::Kind> outside;
  bool is_outside_stated = false;  ///< by the user
  bool is_outside_likely = false;  ///< graphs take none of these means
};

/// An output of the ranks, compared with that of one device.
struct ComparedOutput {
  std::string key;
  Part part = Part::kForward;
  /// Of the operands of the graph's output node; none: an input that is written to.
  std::optional<size_t> index = {};
  Relation relation = {};  ///< that was expected, or that holds where several may
  std::optional<std::string> difference = {};
};

/// The outputs of ranks under a setting.
struct Attempt {
  Setting setting;
  RanksValues ranks;
  std::vector<ComparedOutput> outputs;
  std::vector<std::string> unpaired;  ///< keys of outputs that one side lacks

  size_t failures() const;
};

/// Evaluates the ranks under a setting. Errors: those of EvaluateRanks.
Result<Attempt> Try(const ForeignSetup& setup, std::span<const CompiledProgram> ranks,
                    const SingleValues& single, Setting setting, uint64_t seed,
                    const RanksObserver& observe = {});

/// What ranks should hold of output `key` of one device: where an axis is averaged outside of the
/// graphs, gradients of what it cuts are as many times too large as the axis has ranks.
Value ExpectedOf(const Value& whole, const std::string& input, const Setting& setting,
                 const Mesh& mesh);

}  // namespace strata::prove
