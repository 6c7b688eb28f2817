#include <algorithm>

#include "ir/module.h"
#include "prove/sizes/call_sizes.h"
#include "prove/sizes/element_read.h"

namespace strata::prove {

Result<bool> CallSizes::AddExchange() {
  const std::string_view op = base();
  if (operands_.empty() || results_.empty()) return false;
  const Dims &from = operands_[0], &to = results_[0];
  if (op == "wait_tensor" || op == "all_reduce") {
    JoinDims(from, to);
    return true;
  }
  if (op == "all_gather_into_tensor") {
    STRATA_TRY(const SizeId ranks, GroupAt(2));
    gathered_[graph_.result(node_)] = ranks;
    return AddGathered(to, from, 0, 1, 2);
  }
  if (op == "reduce_scatter_tensor") {
    STRATA_TRY(const SizeId ranks, GroupAt(3));
    JoinPiecesSent(ranks);
    return AddGathered(from, to, 0, 2, 3);
  }
  if (op == "axis_shard") return AddGathered(from, to, DimArgument(1, from.size()), 3, 2);
  if (op != "all_to_all_single") return false;
  STRATA_TRY(const SizeId count, GroupAt(3));
  AddAllToAll(from, to, count);
  return true;
}

void CallSizes::AddAllToAll(const Dims& from, const Dims& to, SizeId count) {
  JoinDims(from, to);
  const auto args = graph_.args(node_);
  const ValueId received = ElementsForEachRank(args[1], count),
                sent = ElementsForEachRank(args[2], count);
  if (received.valid() && sent.valid()) {
    JoinRows(received, to);
    JoinRows(sent, from);
    sizes_.SetCount(node_, count);
    return constraints_.DoNotEnlarge(count);
  }
  const int64_t ranks = number(count);
  if (from.empty() || number(from[0]) % ranks != 0) return constraints_.Keep(count);
  const SizeId rows = constraints_.New(number(from[0]) / ranks);
  constraints_.AddCut(from[0], count, rows);
  gathered_[graph_.result(node_)] = count;
  JoinPiecesSent(count);
  for (const size_t position : {1, 2}) {
    const bool has_equal_rows =
        args[position].is_span() &&
        std::ranges::all_of(graph_.elements(args[position]), [&](const Arg& arg) {
          return arg.kind() == ArgKind::kInt && arg.as_int() == number(rows);
        });
    if (!has_equal_rows) return constraints_.Keep(count);
    TieList(position, Dims(args[position].span_size(), rows));
  }
  sizes_.SetCount(node_, count);
  constraints_.DoNotEnlarge(count);
}

/// Number i is the same function of i for each rank, so the list is that of any number of ranks.
/// One number that is another element, or of another vector, could be right for fewer ranks only:
/// then the group stays.
ValueId CallSizes::ElementsForEachRank(const Arg& list, SizeId count) {
  if (!list.is_span() || list.span_size() != number(count)) return {};
  std::vector<ElementRead> reads;
  for (const Arg& element : graph_.elements(list)) {
    const auto read = element.is_value() ? ElementReadBy(graph_, graph_.value(element.value()).def)
                                         : std::nullopt;
    if (!read || read->index != std::ssize(reads)) return {};
    reads.push_back(*read);
    if (read->vector != reads[0].vector) return {};
  }
  const Dims& vector = sizes_.of(reads[0].vector);
  if (vector.size() != 1 || number(vector[0]) != number(count)) return {};
  constraints_.Join(vector[0], count);
  for (const ElementRead& read : reads)
    sizes_.SetPosition(graph_.node(read.select).args_begin + 2);
  return reads[0].vector;
}

void CallSizes::JoinRows(ValueId counts, const Dims& exchanged) {
  if (exchanged.empty()) return;
  JoinIfEqual(rows_of_counts_.emplace(counts, exchanged[0]).first->second, exchanged[0]);
}

SizeId CallSizes::RanksGathered(ValueId value) const {
  const NodeId def = graph_.value(value).def;
  if (BaseName(graph_.op(def)) == "wait_tensor") value = graph_.operands(def)[0];
  const auto found = gathered_.find(value);
  return found == gathered_.end() ? SizeId() : found->second;
}

void CallSizes::JoinPiecesSent(SizeId ranks) {
  const NodeId def = graph_.value(graph_.operands(node_)[0]).def;
  if (graph_.node(def).kind != NodeKind::kCall) return;
  if (const auto pieces = pieces_.find(def); pieces != pieces_.end()) {
    JoinIfEqual(pieces->second, ranks);
  } else if (IsSizedView(BaseName(graph_.op(def)))) {
    const Dims& dims = sizes_.of(graph_.operands(def)[0]);
    if (!dims.empty()) JoinIfEqual(dims[0], ranks);
  }
}

Result<SizeId> CallSizes::GroupAt(size_t position) {
  const auto args = graph_.args(node_);
  if (position >= args.size() || args[position].kind() != ArgKind::kString)
    return Error(ErrorCode::kUnsupported, "{} does not name its group", graph_.name(node_));
  return mesh_.OfGroup(graph_.module().str(args[position].str()));
}

Result<bool> CallSizes::AddGathered(const Dims& whole, const Dims& part, size_t dim, size_t count,
                                    size_t group) {
  STRATA_TRY(const SizeId ranks, GroupAt(group));
  Tie(count, ranks);
  if (dim >= whole.size() || whole.size() != part.size()) return true;
  if (number(whole[dim]) == number(ranks) * number(part[dim])) {
    constraints_.AddCut(whole[dim], ranks, part[dim]);
  } else {
    for (const SizeId size : {whole[dim], ranks, part[dim]})
      constraints_.Keep(size);
  }
  for (size_t other = 0; other < whole.size(); ++other)
    if (other != dim) JoinIfEqual(whole[other], part[other]);
  return true;
}

}  // namespace strata::prove
