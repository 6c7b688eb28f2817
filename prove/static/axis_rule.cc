#include "prove/static/axis_rule.h"

#include <algorithm>
#include <utility>

namespace strata::prove {
namespace {

bool HasFactor(const FactorDims& tensor, int factor) {
  return std::ranges::any_of(
      tensor, [&](const std::vector<int>& dim) { return std::ranges::count(dim, factor) > 0; });
}

class AxisRule {
 public:
  AxisRule(const Module& module, const ShardingRule& rule, const std::vector<AxisOperand>& operands)
      : module_(module), rule_(rule), operands_(operands) {}

  AxisResult Apply() const {
    std::vector<int> partial, cut;
    for (int i = 0; std::cmp_less(i, operands_.size()); ++i) {
      const AxisPlacement& p = operands_[static_cast<size_t>(i)].placement;
      if (std::ranges::count(rule_.ignored, i) > 0) continue;
      if (!p || (IsCut(*p) && IsRows(*p))) return Unknown();
      if (IsPartial(*p)) partial.push_back(i);
      if (IsCut(*p)) cut.push_back(i);
    }
    if (!partial.empty()) return OfPartial(partial, cut);
    if (!cut.empty()) return OfCut(cut);
    return {.results = std::vector<AxisPlacement>(rule_.results.size(), Replicate()), .error = ""};
  }

 private:
  AxisResult Unknown() const {
    return {.results = std::vector<AxisPlacement>(rule_.results.size()), .error = ""};
  }
  AxisResult Wrong(int operand, std::string error) const {
    AxisResult result = Unknown();
    result.operand = operand;
    result.error = std::move(error);
    return result;
  }
  const Placement& At(int operand) const {
    return *operands_[static_cast<size_t>(operand)].placement;
  }

  /// Sums pass what is linear in them; moves of elements pass every reduction.
  AxisResult OfPartial(const std::vector<int>& partial, const std::vector<int>& cut) const {
    const int first = partial[0];
    const Placement& p = At(first);
    const bool is_alike =
        std::ranges::all_of(partial, [&](int operand) { return At(operand) == p; });
    if (!is_alike) return Wrong(first, "operands are partial in different ways");
    if (!cut.empty()) return Wrong(first, "reads a partial operand together with a part");
    const std::string_view reduce = module_.str(p.reduce);
    const bool is_linear =
        (reduce == "sum" || reduce == "avg") && std::ranges::count(rule_.linear, partial) > 0;
    const bool is_moved =
        rule_.KeepsPartial(p) &&
        (rule_.linear.empty() ? partial == std::vector<int>{0} : partial == rule_.linear[0]);
    if (is_linear || is_moved)
      return {.results = std::vector<AxisPlacement>(rule_.results.size(), p),
              .operand = first,
              .error = ""};
    if (reduce != "sum" && reduce != "avg") return Unknown();
    for (const std::vector<int>& group : rule_.linear) {
      // What all ranks add to their averages is added to the average.
      if (reduce == "avg" && std::ranges::count(group, first) > 0)
        return {.results = std::vector<AxisPlacement>(rule_.results.size(), p),
                .operand = first,
                .error = ""};
      for (const int operand : group) {
        if (group.size() > 1 && std::ranges::count(group, first) > 0 &&
            std::ranges::count(partial, operand) == 0)
          return Wrong(operand, "each rank adds all of it to a partial operand");
      }
    }
    return Wrong(first, "reads a partial operand before the sum");
  }

  std::optional<int64_t> SizeOf(int factor) const {
    return module_.dims().AsConst(rule_.factors[static_cast<size_t>(factor)].size);
  }

  /// The factor that is cut where a dimension lies in `parts` parts already: the slowest one of
  /// which a part has more than one element. -1: not known.
  int FactorToCut(const std::vector<int>& dim, int64_t parts) const {
    if (dim.size() == 1) return dim[0];
    for (const int factor : dim) {
      const std::optional<int64_t> size = SizeOf(factor);
      if (size == 1) continue;
      if (parts == 1) return factor;
      if (!size || parts == 0) return -1;
      if (*size > parts) return *size % parts == 0 ? factor : -1;
      if (parts % *size != 0) return -1;
      parts /= *size;
    }
    return -1;
  }

  /// The factor that makes up all of a dimension; -1: there are several.
  int OnlyFactor(const std::vector<int>& dim) const {
    int only = -1;
    for (const int factor : dim) {
      if (dim.size() > 1 && SizeOf(factor) == 1) continue;
      if (only >= 0) return -1;
      only = factor;
    }
    return only;
  }

  int CutFactor(int operand) const {
    const FactorDims& dims = rule_.operands[static_cast<size_t>(operand)];
    const Placement& p = At(operand);
    const auto dim = static_cast<size_t>(p.dim);
    if (dim >= dims.size()) return -1;
    if (p.split != 0) return OnlyFactor(dims[dim]);
    return FactorToCut(dims[dim], operands_[static_cast<size_t>(operand)].outer_parts);
  }

  AxisResult OfCut(const std::vector<int>& cut) const {
    const int index = CutFactor(cut[0]);
    if (index < 0 || index == rule_.joint || index == rule_.order.tokens ||
        index == rule_.order.rows || index == rule_.order.groups)
      return Unknown();
    for (const int operand : cut) {
      if (CutFactor(operand) != index)
        return Wrong(operand, "is cut in another dimension than the other operands");
      if (At(operand).split != At(cut[0]).split) return Unknown();
    }
    const Factor& factor = rule_.factors[static_cast<size_t>(index)];
    if (factor.kind == Factor::Kind::kWhole)
      return Wrong(cut[0], "reads a part of a dimension that it needs whole");
    for (int i = 0; std::cmp_less(i, operands_.size()); ++i) {
      const bool is_cut = std::ranges::count(cut, i) > 0;
      if (is_cut || std::ranges::count(rule_.ignored, i) > 0) continue;
      if (HasFactor(rule_.operands[static_cast<size_t>(i)], index))
        return Wrong(i, "is whole where the other operands are cut");
    }
    AxisResult result{.results = {}, .operand = cut[0], .error = ""};
    for (const FactorDims& dims : rule_.results)
      result.results.push_back(ResultOf(dims, index, factor, At(cut[0]).split));
    return result;
  }

  AxisPlacement ResultOf(const FactorDims& dims, int index, const Factor& factor,
                         int32_t split) const {
    for (size_t dim = 0; dim < dims.size(); ++dim) {
      if (std::ranges::count(dims[dim], index) == 0) continue;
      const int cut = split == 0 ? FactorToCut(dims[dim], 1) : OnlyFactor(dims[dim]);
      return cut == index ? AxisPlacement(Shard(dim, split)) : std::nullopt;
    }
    if (factor.kind == Factor::Kind::kReduce) return Partial(factor.reduce);
    return std::nullopt;
  }

  const Module& module_;
  const ShardingRule& rule_;
  const std::vector<AxisOperand>& operands_;
};

}  // namespace

AxisResult ApplyRule(const Module& module, const ShardingRule& rule,
                     const std::vector<AxisOperand>& operands) {
  return AxisRule(module, rule, operands).Apply();
}

bool IsNewDim(const ShardingRule& rule, size_t result, int32_t dim) {
  const FactorDims& dims = rule.results[result];
  if (static_cast<size_t>(dim) >= dims.size()) return false;
  return std::ranges::none_of(dims[static_cast<size_t>(dim)], [&](int factor) {
    return std::ranges::any_of(
        rule.operands, [&](const FactorDims& operand) { return HasFactor(operand, factor); });
  });
}

}  // namespace strata::prove
