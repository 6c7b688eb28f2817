#include <optional>
#include <string_view>

#include "ir/module.h"
#include "ir/ops.h"
#include "prove/sizes/call_sizes.h"

namespace strata::prove {
namespace {

/// Operators whose operand 0 is a dimension's owner and whose argument 2 indexes that dimension.
bool ReadsPositions(std::string_view base) {
  return base == "gather" || base == "index_select" || base == "index_add" ||
         base.starts_with("scatter");
}

/// Whether results have elements of operand 0, of any rank, and no others.
bool MovesElements(std::string_view op) {
  const std::string_view base = BaseName(op);
  return TraitsOf(op).view || base == "reshape" || base == "clone" || base == "_to_copy" ||
         base == "index_select" || base.starts_with("split") || base == "wait_tensor" ||
         base == "all_gather_into_tensor" || base == "all_to_all_single" || base == "axis_shard";
}

}  // namespace

void CallSizes::AddPositions() {
  if (operands_.empty() || results_.empty()) return;
  const std::string_view op = base();
  const Dims& from = operands_[0];
  const auto rank = static_cast<int64_t>(from.size());
  if ((op == "topk" || op == "sort") && results_.size() == 2 && rank > 0) {
    const bool is_later = op == "topk" || graph_.op(node_).ends_with(".stable");
    const int64_t dim = Integer(is_later ? 2 : 1, "dim").value_or(-1);
    if (dim < -rank || dim >= rank) return;
    const SizeId size = from[static_cast<size_t>(dim < 0 ? dim + rank : dim)];
    positions_[graph_.result(node_, 1)] = size;
    if (op == "topk") AddChosen(size, results_[0][static_cast<size_t>(dim < 0 ? dim + rank : dim)]);
    return;
  }
  if (op == "repeat_interleave" && rank == 1) positions_[graph_.result(node_)] = from[0];
  if (op == "floor_divide" || op == "remainder") return AddQuotient();
  const auto args = graph_.args(node_);
  if (ReadsPositions(op) && args.size() > 2 && args[2].is_value()) {
    const size_t dim = DimArgument(1, from.size());
    const auto found = positions_.find(args[2].value());
    if (found != positions_.end() && dim < from.size()) JoinIfEqual(found->second, from[dim]);
  }
  const auto moved = positions_.find(graph_.operands(node_)[0]);
  if (moved == positions_.end() || !MovesElements(graph_.op(node_))) return;
  const SizeId size = moved->second;
  for (size_t i = 0; i < results_.size(); ++i)
    positions_[graph_.result(node_, i)] = size;
}

void CallSizes::AddChosen(SizeId all, SizeId chosen) {
  Tie(1, chosen);
  if (number(chosen) < number(all)) constraints_.AddLess(chosen, all);
}

void CallSizes::AddQuotient() {
  const ValueId index = graph_.operands(node_)[0];
  const auto position = positions_.find(index);
  const auto joined = position == positions_.end() ? joined_.end() : joined_.find(position->second);
  if (joined == joined_.end() || Integer(1, "other") != number(joined->second.back())) return;
  sizes_.SetBound(graph_.node(node_).args_begin + 1, joined->second.back());
  const bool is_rest = base() == "remainder";
  positions_[graph_.result(node_)] = is_rest ? joined->second.back() : joined->second.front();
}

}  // namespace strata::prove
