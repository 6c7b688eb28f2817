#include "prove/evaluation/inputs.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/random.h"
#include "ir/ops.h"
#include "prove/evaluation/evaluator.h"
#include "prove/evaluation/integer_inputs.h"
#include "prove/evaluation/labels.h"
#include "prove/evaluation/work.h"
#include "prove/ops/elementwise.h"

namespace strata::prove {
namespace {

constexpr int64_t kMaxElements = int64_t{1} << 26;
constexpr uint64_t kSmallIntegers = 4;  // without a use that bounds them

Result<Sizes> SizesOf(const Module& module, const Type& type) {
  Sizes sizes;
  int64_t elements = 1;
  for (const DimId dim : type.sizes) {
    const std::optional<int64_t> size = module.dims().Hint(dim);
    if (!size) return Error(ErrorCode::kUnsupported, "a size that is not known");
    sizes.push_back(*size);
    elements *= std::max<int64_t>(*size, 1);
    if (elements > kMaxElements)
      return Error(ErrorCode::kUnsupported, "a tensor of more than {} elements", kMaxElements);
  }
  return sizes;
}

/// A number that is neither 0 nor a code.
Residue RandomNumber(uint64_t key, uint64_t index) {
  return 1 + RandomBits(key, index) % (kPrime - 1);
}

/// What an integer input is read as.
struct IndexUse {
  int64_t bound = 0;               ///< the number of elements that it indexes; 0: unknown
  std::optional<int64_t> ignored;  ///< a label of this value does not count
  bool is_index = false;           ///< an operator takes it as it is: all are within the bound
};

int64_t SizeAt(const Graph& graph, NodeId node, size_t argument, int64_t dim) {
  const Module& module = graph.module();
  if (argument >= graph.args(node).size() || !graph.args(node)[argument].is_value()) return 0;
  const TypeId type = graph.value(graph.args(node)[argument].value()).type;
  if (type == TypeId{}) return 0;
  const std::vector<DimId>& sizes = module.types()[type].sizes;
  const int64_t at = dim < 0 ? dim + static_cast<int64_t>(sizes.size()) : dim;
  if (at < 0 || at >= static_cast<int64_t>(sizes.size())) return 0;
  return module.dims().Hint(sizes[static_cast<size_t>(at)]).value_or(0);
}

int64_t LiteralAt(const Graph& graph, NodeId node, size_t argument, int64_t otherwise) {
  const auto args = graph.args(node);
  return argument < args.size() && args[argument].kind() == ArgKind::kInt ? args[argument].as_int()
                                                                          : otherwise;
}

void Bound(IndexUse& use, int64_t bound) {
  if (bound > 0) use.bound = use.bound == 0 ? bound : std::min(use.bound, bound);
}

/// Follows an integer through views and copies to what reads it. `is_chosen`: another value stands
/// where it does not count.
void FollowUses(const Graph& graph, ValueId value, bool is_chosen, int depth, IndexUse& use) {
  if (depth > 8) return;
  for (const Use reader : graph.uses(value)) {
    const NodeId node = reader.user;
    if (graph.node(node).kind != NodeKind::kCall) continue;
    const std::string_view op = graph.op(node);
    const std::string_view base = BaseName(op);
    const uint32_t argument = reader.slot - graph.node(node).args_begin;
    if (base == "embedding" && argument == 1) {
      Bound(use, SizeAt(graph, node, 0, 0));
      use.is_index |= !is_chosen;
    } else if (base == "embedding_dense_backward" && argument == 1) {
      Bound(use, LiteralAt(graph, node, 2, 0));
    } else if (base == "nll_loss_forward" && argument == 1) {
      Bound(use, SizeAt(graph, node, 0, 1));
      use.ignored = LiteralAt(graph, node, 4, -100);
    } else if ((base == "gather" || base == "index_select" || base == "index_add" ||
                base.starts_with("scatter")) &&
               argument == 2) {
      Bound(use, SizeAt(graph, node, 0, LiteralAt(graph, node, 1, 0)));
      use.is_index |= !is_chosen;
    } else if (base == "max_pool2d_with_indices_backward" && argument == 7) {
      Bound(use, SizeAt(graph, node, 1, -1) * SizeAt(graph, node, 1, -2));
      use.is_index = true;
    } else if (base == "index" && argument >= graph.node(node).num_args) {
      Bound(use, SizeAt(graph, node, 0, 0));
    } else if (base == "ne" || base == "eq") {
      const int64_t literal = LiteralAt(graph, node, 1, 0);
      if (literal < 0) use.ignored = literal;
    }
    if (TraitsOf(op).view || base == "_to_copy" || base == "clone" || base == "unsqueeze" ||
        base == "where" || base == "reshape" || base == "redistribute") {
      for (size_t i = 0; i < graph.node(node).num_results; ++i)
        FollowUses(graph, graph.result(node, i), is_chosen || base == "where", depth + 1, use);
    }
  }
}

/// The first and last row of each part into which few ranks cut `bound` rows: there, a bound of a
/// mask that is off by one shows.
std::vector<uint64_t> EndsOfParts(uint64_t bound) {
  std::vector<uint64_t> ends;
  for (const uint64_t parts : {1U, 2U, 3U, 4U}) {
    if (bound % parts != 0) continue;
    for (uint64_t part = 0; part < parts; ++part) {
      ends.push_back(part * (bound / parts));
      ends.push_back((part + 1) * (bound / parts) - 1);
    }
  }
  std::ranges::sort(ends);
  ends.erase(std::ranges::unique(ends).begin(), ends.end());
  return ends;
}

/// Half of indices, at random places, are random ends of parts. Ends in turn would be equally
/// frequent, and so hide an exchange of two counts.
void FillIntegers(const Tensor& tensor, const IndexUse& use, uint64_t key,
                  std::optional<int64_t> rank) {
  std::vector<uint64_t>& words = tensor.storage()->words;
  const uint64_t bound = use.bound > 0 ? static_cast<uint64_t>(use.bound) : kSmallIntegers;
  const std::vector<uint64_t> ends = EndsOfParts(bound);
  for (size_t i = 0; i < words.size(); ++i) {
    const uint64_t bits = RandomBits(key, i);
    const bool is_end = use.bound > 0 && bits >> 63 == 0;
    words[i] = is_end ? ends[(bits >> 32) % ends.size()] : bits % bound;
  }
  if (use.ignored && !use.is_index) IgnoreLabels(tensor, *use.ignored, key ^ 1, rank);
}

}  // namespace

Tensor RandomNumbers(Domain domain, Sizes sizes, uint64_t key) {
  Tensor tensor(domain, std::move(sizes), 0);
  std::vector<uint64_t>& words = tensor.storage()->words;
  for (size_t i = 0; i < words.size(); ++i)
    words[i] = RandomNumber(key, i);
  return tensor;
}

Tensor RandomTruths(Sizes sizes, uint64_t key) {
  Tensor tensor(Domain::kInteger, std::move(sizes), 0);
  IndexUse use;
  use.bound = 2;
  FillIntegers(tensor, use, key, {});
  return tensor;
}

Result<Value> RandomValue(const Module& module, TypeId id, uint64_t key) {
  if (id == TypeId{}) return Error(ErrorCode::kUnsupported, "a value of unknown type");
  const Type& type = module.types()[id];
  if (type.kind == TypeKind::kSymInt) {
    const std::optional<int64_t> number = module.dims().Hint(type.dim);
    if (!number) return Error(ErrorCode::kUnsupported, "an integer that is not known");
    return Value(*number);
  }
  if (type.kind == TypeKind::kOpaque || type.dtype == DType::kUnknown)
    return Error(ErrorCode::kUnsupported, "a value of unknown type");
  STRATA_TRY(Sizes sizes, SizesOf(module, type));
  const Domain domain = DomainOf(type.dtype);
  if (domain != Domain::kInteger) return Value(RandomNumbers(domain, std::move(sizes), key));
  if (type.dtype == DType::kBool) return Value(RandomTruths(std::move(sizes), key));
  Tensor tensor(domain, std::move(sizes), 0);
  FillIntegers(tensor, IndexUse(), key, {});
  return Value(std::move(tensor));
}

Status CheckWork(const Graph& graph, int64_t num_ranks) {
  if (const double products = ProductsOf(graph); products > kMaxProducts) {
    return Error(ErrorCode::kUnsupported,
                 "graph {} needs {:.0e} products, more than the {:.0e} that a proof evaluates: "
                 "record a smaller batch, sequence or width",
                 graph.name_text(), products, kMaxProducts);
  }
  constexpr double kGigabyte = 1 << 30;
  const double bytes = PeakElementsOf(graph) * sizeof(Residue) * static_cast<double>(num_ranks);
  if (bytes > kMaxBytes) {
    return Error(ErrorCode::kUnsupported,
                 "graph {} needs {:.1f} GB on {} ranks, more than the {:.0f} GB that a proof "
                 "takes: record fewer layers or ranks, or a smaller width",
                 graph.name_text(), bytes / kGigabyte, num_ranks, kMaxBytes / kGigabyte);
  }
  return Ok();
}

Result<Value> MakeInput(const Graph& graph, NodeId placeholder, uint64_t seed,
                        std::optional<int64_t> rank) {
  const TypeId type = graph.value(graph.result(placeholder)).type;
  const uint64_t key = Mix(seed ^ FunctionKey(graph.name(placeholder)));
  Result<Value> value = RandomValue(graph.module(), type, key);
  if (!value) return std::move(value).error().In(fmt::format("input {}", graph.name(placeholder)));
  if (const auto* tensor = std::get_if<Tensor>(&*value);
      tensor != nullptr && tensor->domain() == Domain::kInteger &&
      graph.module().types()[type].dtype != DType::kBool) {
    if (const auto numbers = NumberUseOf(graph, graph.result(placeholder))) {
      FillNumbers(*tensor, graph.module().types()[type].dtype, *numbers, key);
      return value;
    }
    IndexUse use;
    FollowUses(graph, graph.result(placeholder), false, 0, use);
    FillIntegers(*tensor, use, key, rank);
  }
  return value;
}

Result<std::vector<Value>> MakeInputs(const Graph& graph, uint64_t seed,
                                      std::optional<int64_t> rank) {
  STRATA_RETURN_IF_ERROR(CheckWork(graph, 1));
  std::vector<Value> inputs;
  for (const NodeId node : graph.placeholders()) {
    STRATA_TRY(inputs.emplace_back(), MakeInput(graph, node, seed, rank));
  }
  return inputs;
}

}  // namespace strata::prove
