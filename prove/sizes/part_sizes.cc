#include <algorithm>
#include <cstdlib>

#include "prove/sizes/call_sizes.h"

namespace strata::prove {

void CallSizes::AddParts(SizeId whole, const Dims& parts, size_t dim) {
  int64_t sum = 0;
  for (const SizeId part : parts)
    sum += number(part);
  if (sum != number(whole) || parts.empty()) return;
  const bool are_equal =
      std::ranges::all_of(parts, [&](SizeId part) { return number(part) == number(parts[0]); });
  if (!are_equal || parts.size() == 1) {
    constraints_.AddSum(whole, parts);
    return;
  }
  JoinEqual(parts);
  if (const NodeId cat = CatOfResults(); cat.valid()) {
    const SizeId count = constraints_.New(std::ssize(parts));
    sizes_.SetCount(node_, count);
    sizes_.SetCount(cat, count);
    constraints_.DoNotEnlarge(count);
  }
  const auto count = sizes_.counts().find(node_);
  const SizeId pieces =
      count != sizes_.counts().end() ? count->second : Constant(std::ssize(parts));
  constraints_.AddCut(whole, pieces, parts[0]);
  if (dim != 0) return;  // ranks exchange parts of dimension 0
  pieces_[node_] = pieces;
  if (const SizeId ranks = RanksGathered(graph_.operands(node_)[0]); ranks.valid())
    JoinIfEqual(pieces, ranks);
}

NodeId CallSizes::CatOfResults() const {
  const size_t count = graph_.node(node_).num_results;
  if (count < 2) return {};
  NodeId cat;
  for (size_t i = 0; i < count; ++i) {
    for (const Use use : graph_.uses(graph_.result(node_, i))) {
      if (cat.valid() && use.user != cat) return {};
      cat = use.user;
    }
  }
  if (!cat.valid() || graph_.node(cat).kind != NodeKind::kCall) return {};
  const auto args = graph_.args(cat);
  if (BaseName(graph_.op(cat)) != "cat" || args.empty() || !args[0].is_span()) return {};
  const auto pieces = graph_.elements(args[0]);
  if (pieces.size() != count) return {};
  for (size_t i = 0; i < count; ++i)
    if (!pieces[i].is_value() || pieces[i].value() != graph_.result(node_, i)) return {};
  return cat;
}

void CallSizes::AddSplit(const Dims& from) {
  const size_t dim = DimArgument(2, from.size());
  Dims parts;
  for (const Dims& result : results_)
    if (dim < result.size()) parts.push_back(result[dim]);
  if (dim >= from.size()) return;
  AddParts(from[dim], parts, dim);
  if (!parts.empty() && base() != "chunk") {
    Tie(1, parts[0]);
    TieList(1, parts);
  }
}

void CallSizes::AddSlice() {
  const std::string_view op = base();
  if (op == "slice_scatter" && operands_.size() < 2) return;
  const size_t position = op == "slice" ? 1 : 2;  // of the dimension; bounds and step follow
  const Dims& whole = op == "slice_backward" ? results_[0] : operands_[0];
  const Dims& part = op == "slice"            ? results_[0]
                     : op == "slice_backward" ? operands_[0]
                                              : operands_[1];
  const size_t dim = DimArgument(position, whole.size());
  if (dim >= whole.size() || dim >= part.size()) return;
  const int64_t size = number(whole[dim]), length = number(part[dim]);
  const int64_t begin = Integer(position + 1, "start").value_or(0);
  int64_t end = Integer(position + 2, "end").value_or(size);
  if (end > size) end = size;
  if (Integer(position + 3, "step").value_or(1) != 1 || begin < 0 || end < 0) {
    constraints_.Keep(whole[dim]);
    constraints_.Keep(part[dim]);
    return;
  }
  if (begin + length != end) return;
  Dims parts = {part[dim]}, all = {whole[dim], part[dim]};
  if (begin > 0) parts.insert(parts.begin(), constraints_.New(begin));
  const SizeId upto = constraints_.New(end);
  all.push_back(upto);
  constraints_.AddSum(upto, parts);
  if (end == size) {
    constraints_.Join(upto, whole[dim]);
  } else {
    const SizeId rest = constraints_.New(size - end);
    constraints_.AddSum(whole[dim], std::vector{upto, rest});
    all.push_back(rest);
  }
  if (begin > 0) all.push_back(parts[0]);
  JoinEqual(all);
  if (begin > 0) Tie(position + 1, parts[0]);
  Tie(position + 2, upto);
}

void CallSizes::AddPadding(const Dims& from, const Dims& to) {
  const auto args = graph_.args(node_);
  if (args.size() < 2 || !args[1].is_span() || from.size() != to.size()) return;
  for (uint32_t i = 0; i + 1 < args[1].span_size() && i / 2 < to.size(); i += 2) {
    const size_t dim = to.size() - 1 - i / 2;
    Dims padded = {from[dim]}, cut = {to[dim]};
    int64_t sum = number(from[dim]);
    for (const uint32_t slot : {args[1].span_begin() + i, args[1].span_begin() + i + 1}) {
      const Arg& width = graph_.slot(slot);
      if (width.kind() != ArgKind::kInt) return;
      const SizeId argument = sizes_.Argument(slot, std::abs(width.as_int()), constraints_);
      if (width.as_int() > 0) padded.push_back(argument);
      if (width.as_int() < 0) {
        cut.push_back(argument);
        if (number(argument) < number(from[dim])) constraints_.AddLess(argument, from[dim]);
      }
      sum += std::max<int64_t>(width.as_int(), 0);
    }
    const SizeId both = constraints_.New(sum);  // with what is added, before something is cut off
    constraints_.AddSum(both, padded);
    constraints_.AddSum(both, cut);
  }
}

}  // namespace strata::prove
