#include "prove/sizes/call_sizes.h"

#include <algorithm>

#include "ir/module.h"
#include "prove/sizes/size_arguments.h"

namespace strata::prove {
namespace {

/// A bound that means the end.
bool IsEnd(int64_t value) {
  return value >= int64_t{1} << 62;
}

}  // namespace

Status CallSizes::Run() {
  for (const NodeId node : graph_.nodes())
    if (graph_.node(node).kind == NodeKind::kCall) STRATA_RETURN_IF_ERROR(AddCall(node));
  return Ok();
}

Status CallSizes::AddCall(NodeId node) {
  node_ = node;
  operands_.clear();
  results_.clear();
  for (const ValueId operand : graph_.operands(node))
    operands_.push_back(sizes_.of(operand));
  for (size_t i = 0; i < graph_.node(node).num_results; ++i)
    results_.push_back(sizes_.of(graph_.result(node, i)));
  STRATA_TRY(const bool is_exchange, AddExchange());
  if (!is_exchange) {
    if (const auto rule = ShardingRuleOf(graph_, node)) {
      AddRule(*rule);
    } else {
      AddByShape();
    }
    AddStructure();
  }
  AddPositions();
  AddLiterals();
  return Ok();
}

std::optional<int64_t> CallSizes::Integer(size_t position, std::string_view name) const {
  const auto args = graph_.args(node_);
  const Arg* arg = position < args.size() ? &args[position] : graph_.FindKwarg(node_, name);
  return arg != nullptr && arg->kind() == ArgKind::kInt ? std::optional(arg->as_int())
                                                        : std::nullopt;
}
size_t CallSizes::DimArgument(size_t position, size_t rank) const {
  const int64_t dim = Integer(position, "dim").value_or(0);
  return static_cast<size_t>(dim < 0 ? dim + static_cast<int64_t>(rank) : dim);
}

void CallSizes::TieSlot(uint32_t slot, SizeId size) {
  const Arg& arg = graph_.slot(slot);
  if (arg.kind() != ArgKind::kInt || arg.as_int() != number(size)) return;
  constraints_.Join(sizes_.Argument(slot, arg.as_int(), constraints_), size);
}

void CallSizes::Tie(size_t position, SizeId size) {
  const Node& node = graph_.node(node_);
  if (position < node.num_args) TieSlot(node.args_begin + static_cast<uint32_t>(position), size);
}

void CallSizes::TieList(size_t position, const Dims& sizes) {
  const auto args = graph_.args(node_);
  if (position >= args.size() || !args[position].is_span()) return;
  for (uint32_t i = 0; i < args[position].span_size() && i < sizes.size(); ++i)
    TieSlot(args[position].span_begin() + i, sizes[i]);
}

void CallSizes::AddRule(const ShardingRule& rule) {
  Dims factors(rule.factors.size());
  std::vector<size_t> uses(factors.size(), 0);
  const auto add = [&](SizeId size, const std::vector<int>& loops) {
    Dims parts;
    int64_t product = 1;
    for (const int loop : loops) {
      const auto at = static_cast<size_t>(loop);
      const DimId of_loop = rule.factors[at].size;
      if (++uses[at] == 1)
        factors[at] = constraints_.New(graph_.module().dims().Hint(of_loop).value_or(1));
      parts.push_back(factors[at]);
      product *= number(factors[at]);
    }
    if (product == number(size)) constraints_.AddProduct(std::vector{size}, parts);
  };
  const auto for_each_value = [&](const auto& fn) {
    for (size_t i = 0; i < std::min(operands_.size(), rule.operands.size()); ++i)
      fn(operands_[i], rule.operands[i]);
    for (size_t i = 0; i < std::min(results_.size(), rule.results.size()); ++i)
      fn(results_[i], rule.results[i]);
  };
  for_each_value([&](const Dims& dims, const FactorDims& loops) {
    for (size_t dim = 0; dim < std::min(dims.size(), loops.size()); ++dim)
      add(dims[dim], loops[dim]);
  });
  std::vector<Dims> alone;  // dimensions of loops that no other has, by value
  for_each_value([&](const Dims& dims, const FactorDims& loops) {
    alone.emplace_back();
    for (size_t dim = 0; dim < std::min(dims.size(), loops.size()); ++dim)
      if (loops[dim].size() == 1 && uses[static_cast<size_t>(loops[dim][0])] == 1)
        alone.back().push_back(dims[dim]);
  });
  // `new_zeros` takes nothing but the type of its operand.
  if (!base().starts_with("new_")) JoinAcross(alone);
  if (results_.empty()) return;
  for (const int position : rule.size_lists)
    TieList(static_cast<size_t>(position), results_[0]);
  for (const auto& [position, dim] : rule.size_args)
    if (static_cast<size_t>(dim) < results_[0].size())
      Tie(static_cast<size_t>(position), results_[0][static_cast<size_t>(dim)]);
}

void CallSizes::JoinAcross(const std::vector<Dims>& values) {
  std::map<int64_t, std::vector<Dims>> by_number;  // of each value that has the number
  for (const Dims& dims : values) {
    std::map<int64_t, Dims> own;
    for (const SizeId size : dims)
      own[number(size)].push_back(size);
    for (auto& [number, sizes] : own)
      by_number[number].push_back(std::move(sizes));
  }
  for (const auto& [number, lists] : by_number) {
    const Dims& first = lists[0];
    const bool are_equally_many =
        std::ranges::all_of(lists, [&](const Dims& list) { return list.size() == first.size(); });
    for (const Dims& list : lists)
      for (size_t i = 0; i < list.size(); ++i)
        constraints_.Join(first[are_equally_many ? i : 0], list[i]);
  }
}

void CallSizes::AddByShape() {
  Dims all;
  const Dims* shape = nullptr;
  for (const std::vector<Dims>* values : {&operands_, &results_}) {
    for (const Dims& dims : *values) {
      if (dims.empty()) continue;
      if (shape == nullptr) shape = &dims;
      const bool is_same = std::ranges::equal(
          *shape, dims, {}, [&](SizeId a) { return number(a); },
          [&](SizeId b) { return number(b); });
      if (is_same) {
        JoinDims(*shape, dims);
      } else {
        all.insert(all.end(), dims.begin(), dims.end());
      }
    }
  }
  if (all.empty()) return;
  all.insert(all.end(), shape->begin(), shape->end());
  JoinEqual(all);
}

void CallSizes::AddStructure() {
  if (operands_.empty() || results_.empty()) return;
  const std::string_view op = base();
  const Dims &from = operands_[0], &to = results_[0];
  if (IsSizedView(op)) {
    constraints_.AddProduct(from, to);
    if (from.size() == 2 && to.size() == 1) joined_[to[0]] = from;
    const SizeId ranks = RanksGathered(graph_.operands(node_)[0]);
    if (ranks.valid() && !to.empty()) JoinIfEqual(to[0], ranks);
  } else if (op == "sort" || op == "argsort") {
    for (const Dims& result : results_)
      JoinDims(from, result);
  } else if (op == "cat") {
    Dims parts;
    const size_t dim = DimArgument(1, to.size());
    for (const Dims& operand : operands_)
      if (dim < operand.size()) parts.push_back(operand[dim]);
    if (dim < to.size()) AddParts(to[dim], parts, dim);
  } else if (op.starts_with("split") || op == "chunk") {
    AddSplit(from);
  } else if (op == "stack" || op == "unbind") {
    const Dims& more = op == "stack" ? to : from;
    const size_t dim = DimArgument(1, more.size());
    if (dim < more.size()) constraints_.Keep(more[dim]);
  } else if (op.starts_with("slice")) {
    AddSlice();
  } else if (op == "constant_pad_nd") {
    AddPadding(from, to);
  } else if (op.starts_with("_scaled_dot_product")) {
    AddHeads();
  } else if (op.starts_with("convolution")) {
    AddConvolution();
  } else if (op.find("_pool") != std::string_view::npos || op.starts_with("upsample_nearest")) {
    KeepWindows();
  } else if (op.starts_with("native_group_norm")) {
    AddGroupNorm();
  }
}

void CallSizes::AddHeads() {
  Dims heads;
  for (const Dims& operand : operands_)
    if (operand.size() == 4) heads.push_back(operand[1]);
  for (const SizeId a : heads)
    for (const SizeId b : heads)
      if (number(b) > 0 && number(a) > number(b) && number(a) % number(b) == 0)
        constraints_.AddDivisor(b, a);
}

void CallSizes::AddConvolution() {
  const bool is_backward = base() == "convolution_backward";
  const size_t x = is_backward ? 1 : 0;
  if (operands_.size() < x + 2 || operands_[x + 1].size() < 3) return;
  for (const std::vector<Dims>* values : {&operands_, &results_})
    for (const Dims& dims : *values)
      for (size_t dim = 2; dim < dims.size(); ++dim)
        constraints_.Keep(dims[dim]);
  const int64_t groups = Integer(is_backward ? 9 : 8, "groups").value_or(1);
  if (groups <= 1) return;
  const Dims& weight = operands_[x + 1];
  const SizeId count = Constant(groups);
  constraints_.AddDivisor(count, weight[0]);
  for (const Dims* dims : {&operands_[0], is_backward ? &operands_[1] : &results_[0]})
    if (dims->size() > 1 && number((*dims)[1]) == groups * number(weight[1]))
      constraints_.AddProduct(std::vector{(*dims)[1]}, std::vector{count, weight[1]});
}

void CallSizes::KeepWindows() {
  const auto rank = std::ssize(operands_[0]);
  const int64_t spatial = base().find("3d") != std::string_view::npos ? 3 : 2;
  for (const std::vector<Dims>* values : {&operands_, &results_})
    for (const Dims& dims : *values)
      for (int64_t dim = std::max<int64_t>(rank - spatial, 0); dim < std::ssize(dims); ++dim)
        constraints_.Keep(dims[static_cast<size_t>(dim)]);
}

void CallSizes::AddGroupNorm() {
  const Dims& x = operands_[0];
  if (x.size() < 2) return;
  for (size_t dim = 2; dim < x.size(); ++dim)
    constraints_.Keep(x[dim]);
  const size_t samples = base() == "native_group_norm" ? 3 : 5;
  Tie(samples, x[0]);
  Tie(samples + 1, x[1]);
  const int64_t groups = Integer(samples + 3, "group").value_or(1);
  if (groups > 1) constraints_.AddDivisor(Constant(groups), x[1]);
}

void CallSizes::AddLiterals() {
  Dims all;
  for (const std::vector<Dims>* values : {&operands_, &results_})
    for (const Dims& dims : *values)
      all.insert(all.end(), dims.begin(), dims.end());
  ForEachInteger(graph_, node_, [&](uint32_t slot, IntegerUse use, int64_t value) {
    if (use != IntegerUse::kSize || value < 0 || IsEnd(value)) return;
    if (sizes_.arguments().contains(slot)) return;
    const SizeId literal = sizes_.Argument(slot, value, constraints_);
    for (const SizeId size : all)
      JoinIfEqual(literal, size);
  });
}

Status AddCalls(GraphSizes& sizes, MeshSizes& mesh, SizeConstraints& constraints) {
  return CallSizes(sizes, mesh, constraints).Run();
}

}  // namespace strata::prove
