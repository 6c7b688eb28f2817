#include <algorithm>

#include "prove/ops/elementwise.h"
#include "prove/ops/products.h"
#include "prove/ops/tables.h"

// Flex attention, as PyTorch's tracer writes it. Bodies are evaluated once for all scores: their
// indices are tensors that broadcast. Source: torch/_higher_order_ops/flex_attention.py.

namespace strata::prove {
namespace {

/// Arguments of a call. `[batch, heads, rows, width]`; several heads of queries may share a head of
/// keys.
struct Flex {
  Tensor query, key, value;
  GraphId score_mod, joint_graph, mask_mod;
  std::vector<Argument> block_mask;  ///< lengths, 8 tensors, block sizes, mask_mod
  Residue scale = 1;
  std::vector<Tensor> score_buffers, mask_buffers;

  int64_t heads_per_key() const { return query.size(1) / key.size(1); }
  /// Of the scores.
  Sizes sizes() const { return {query.size(0), query.size(1), query.size(2), key.size(2)}; }
};

Result<GraphId> BodyAt(const Argument& argument) {
  if (const auto* body = std::get_if<GraphId>(&argument.value)) return *body;
  return Error(ErrorCode::kUnsupported, "flex attention without a body");
}

Result<Flex> ReadFlex(Call& call, bool is_backward) {
  const size_t bodies = is_backward ? 7 : 3, mask = bodies + (is_backward ? 2 : 1);
  if (call.num_args() < mask + 2) return Error(ErrorCode::kInvalid, "too few arguments");
  Flex flex;
  STRATA_TRY(flex.query, call.TensorAt(0));
  STRATA_TRY(flex.key, call.TensorAt(1));
  STRATA_TRY(flex.value, call.TensorAt(2));
  STRATA_TRY(flex.score_mod, BodyAt(call.args()[bodies]));
  if (is_backward) {
    STRATA_TRY(flex.joint_graph, BodyAt(call.args()[bodies + 1]));
  }
  const auto* blocks = std::get_if<std::vector<Argument>>(&call.args()[mask].value);
  constexpr size_t kBlockArguments = 13;
  if (blocks == nullptr || blocks->size() != kBlockArguments)
    return Error(ErrorCode::kUnsupported, "a block mask of another form");
  flex.block_mask = *blocks;
  STRATA_TRY(flex.mask_mod, BodyAt(blocks->back()));
  STRATA_TRY(flex.scale, call.NumberAt(mask + 1, {}, 1));
  if (call.num_args() > mask + 3) {
    STRATA_TRY(flex.score_buffers, call.TensorsAt(mask + 3));
  }
  if (call.num_args() > mask + 4) {
    STRATA_TRY(flex.mask_buffers, call.TensorsAt(mask + 4));
  }
  const bool fits = flex.query.dim() == 4 && flex.key.dim() == 4 && flex.value.dim() == 4 &&
                    flex.key.size(1) > 0 && flex.query.size(1) % flex.key.size(1) == 0 &&
                    flex.key.size(2) == flex.value.size(2);
  if (!fits) return Error(ErrorCode::kInvalid, "query, key and value that do not fit");
  return flex;
}

/// Row, head, query and key of each score.
std::vector<Value> ScoreIndices(const Sizes& sizes) {
  std::vector<Value> indices;
  for (size_t dim = 0; dim < sizes.size(); ++dim) {
    std::vector<uint64_t> words;
    for (int64_t i = 0; i < sizes[dim]; ++i)
      words.push_back(static_cast<uint64_t>(i));
    Sizes shape(sizes.size(), 1);
    shape[dim] = sizes[dim];
    indices.emplace_back(OfWords(Domain::kInteger, std::move(shape), std::move(words)));
  }
  return indices;
}

/// The first result of a body, for all scores.
Result<Tensor> RunBody(const Call& call, GraphId body, std::vector<Value> inputs,
                       const std::vector<Tensor>& buffers, const Sizes& sizes) {
  inputs.insert(inputs.end(), buffers.begin(), buffers.end());
  STRATA_TRY(const Values results, call.run_body(body, inputs));
  const auto* tensor = results.empty() ? nullptr : std::get_if<Tensor>(&results[0]);
  if (tensor == nullptr) return Error(ErrorCode::kUnsupported, "a body that returns no tensor");
  return tensor->Expand(sizes);
}

/// `fn(batch, head)` for each head, one after the other: `[batch, heads, …]`.
template <class Fn>
Result<Tensor> OfHeads(int64_t batch, int64_t heads, Sizes matrix, Fn&& fn) {
  std::vector<uint64_t> words;
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t h = 0; h < heads; ++h) {
      STRATA_TRY(const Tensor part, fn(b, h));
      const std::vector<uint64_t> more = part.Read();
      words.insert(words.end(), more.begin(), more.end());
    }
  }
  matrix.insert(matrix.begin(), {batch, heads});
  return OfWords(Domain::kFloat, std::move(matrix), std::move(words));
}

/// 1 where a block of the mask is listed: `[batch or 1, heads or 1, rows, columns]` of blocks.
/// `first`: of the counts, before the indices. None: the mask has no such list.
Result<std::optional<Tensor>> Listed(const Flex& flex, size_t first) {
  const auto* counts = std::get_if<Tensor>(&flex.block_mask[first].value);
  const auto* indices = std::get_if<Tensor>(&flex.block_mask[first + 1].value);
  if (counts == nullptr || indices == nullptr) return std::optional<Tensor>();
  Tensor listed(Domain::kInteger, indices->sizes(), 0);
  const std::vector<uint64_t> count = counts->Read(), index = indices->Read();
  const auto columns = static_cast<size_t>(indices->size(3));
  if (count.size() * columns != index.size())
    return Error(ErrorCode::kInvalid, "counts and indices of blocks that do not fit");
  for (size_t row = 0; row < count.size(); ++row) {
    for (size_t i = 0; i < std::min<size_t>(count[row], columns); ++i) {
      const uint64_t column = index[row * columns + i];
      // A mask that is an input lists any numbers: one beyond the last block counts for nothing.
      if (column < columns) listed.storage()->words[row * columns + column] = 1;
    }
  }
  return std::optional(listed);
}

/// 1 where a query attends to a key: of a full block all, of a partial one those of the mask_mod.
Result<Tensor> VisibleScores(Call& call, const Flex& flex) {
  const Sizes sizes = flex.sizes();
  STRATA_TRY(const Tensor masked,
             RunBody(call, flex.mask_mod, ScoreIndices(sizes), flex.mask_buffers, sizes));
  constexpr size_t kPartial = 2, kFull = 4, kBlockSizes = 10;
  STRATA_TRY(const std::optional<Tensor> partial, Listed(flex, kPartial));
  STRATA_TRY(const std::optional<Tensor> full, Listed(flex, kFull));
  if (!partial) return masked;
  int64_t block[2];
  for (size_t i = 0; i < 2; ++i) {
    const auto* size = std::get_if<int64_t>(&flex.block_mask[kBlockSizes + i].value);
    if (size == nullptr || *size <= 0) return Error(ErrorCode::kInvalid, "no sizes of blocks");
    block[i] = *size;
  }
  const auto is_listed = [&](const std::optional<Tensor>& list, const Sizes& at) {
    if (!list) return false;
    int64_t offset = list->offset();
    for (size_t dim = 0; dim < 4; ++dim)
      if (list->sizes()[dim] > 1) offset += list->strides()[dim] * at[dim];
    return list->storage()->words[static_cast<size_t>(offset)] != 0;
  };
  std::vector<uint64_t> words = masked.Read();
  size_t next = 0;
  for (int64_t b = 0; b < sizes[0]; ++b) {
    for (int64_t h = 0; h < sizes[1]; ++h) {
      for (int64_t row = 0; row < sizes[2]; ++row) {
        for (int64_t column = 0; column < sizes[3]; ++column, ++next) {
          const Sizes at = {b, h, row / block[0], column / block[1]};
          words[next] = is_listed(full, at) || (is_listed(partial, at) && words[next] != 0);
        }
      }
    }
  }
  return OfWords(Domain::kInteger, sizes, std::move(words));
}

/// What both directions compute of the scores, `[batch, heads, queries, keys]`.
struct Scores {
  Tensor raw, visible, exponentials;
  Tensor sums;  ///< of rows, `[batch, heads, queries, 1]`
};

Result<Scores> ComputeScores(Call& call, const Flex& flex) {
  const Sizes sizes = flex.sizes();
  const int64_t group = flex.heads_per_key();
  Scores scores;
  STRATA_TRY(scores.raw, OfHeads(sizes[0], sizes[1], {sizes[2], sizes[3]},
                                 [&](int64_t b, int64_t h) -> Result<Tensor> {
                                   STRATA_TRY(
                                       const Tensor products,
                                       MatrixProduct(HeadOf(flex.query, b, h),
                                                     Transposed(HeadOf(flex.key, b, h / group))));
                                   return Scale(products, flex.scale);
                                 }));
  std::vector<Value> inputs = ScoreIndices(sizes);
  inputs.insert(inputs.begin(), scores.raw);
  STRATA_TRY(const Tensor modified,
             RunBody(call, flex.score_mod, std::move(inputs), flex.score_buffers, sizes));
  STRATA_TRY(scores.visible, VisibleScores(call, flex));
  STRATA_TRY(const Tensor seen, Map(ConvertTo(modified, Domain::kFloat), scores.visible,
                                    Domain::kFloat, [](uint64_t score, uint64_t is_visible) {
                                      return is_visible != 0 ? score : kMinusInfinity;
                                    }));
  scores.exponentials = Exp(seen);
  scores.sums = SumOver(scores.exponentials, {3}, /*keep=*/true);
  return scores;
}

/// The base-2 logarithm of the sums: `[batch, heads, queries]`.
Tensor LogOf(const Tensor& sums) {
  return Apply(FunctionKey("log2"), sums.Reshape({sums.size(0), sums.size(1), sums.size(2)}));
}

/// -> (output [batch, heads, queries, width], logsumexp [batch, heads, queries])
Result<Values> EvaluateFlex(Call& call) {
  STRATA_TRY(const Flex flex, ReadFlex(call, /*is_backward=*/false));
  STRATA_TRY(const Scores scores, ComputeScores(call, flex));
  STRATA_TRY(const Tensor weights, Div(scores.exponentials, scores.sums));
  const Sizes sizes = flex.sizes();
  STRATA_TRY(Tensor output,
             OfHeads(sizes[0], sizes[1], {sizes[2], flex.value.size(3)}, [&](int64_t b, int64_t h) {
               return MatrixProduct(HeadOf(weights, b, h),
                                    HeadOf(flex.value, b, h / flex.heads_per_key()));
             }));
  Values results = {std::move(output), LogOf(scores.sums)};
  results.resize(std::max(results.size(), call.num_results()));
  return results;
}

/// `[batch, heads, …]` summed over the heads of queries that share one of keys.
Result<Tensor> SumOfHeads(const Tensor& a, int64_t heads) {
  const Tensor groups = a.Reshape({a.size(0), heads, a.size(1) / heads, a.size(2), a.size(3)});
  return SumOver(groups, {2}, /*keep=*/false);
}

/// (query, key, value, out, logsumexp, gradient of out, None, …) -> gradients of the first three.
Result<Values> EvaluateFlexBackward(Call& call) {
  STRATA_TRY(const Flex flex, ReadFlex(call, /*is_backward=*/true));
  STRATA_TRY(const Tensor output, call.TensorAt(3));
  STRATA_TRY(const Tensor logarithm, call.TensorAt(4));
  STRATA_TRY(const Tensor gradient, call.TensorAt(5));
  STRATA_TRY(const Scores scores, ComputeScores(call, flex));
  const Sizes sizes = flex.sizes();
  const int64_t group = flex.heads_per_key();
  // Weights are 2^(score / ln 2 - logsumexp): the shares of the sum, if the logarithm is that of
  // the sum, else these times a power of 2 that is not known.
  STRATA_TRY(const Tensor beyond, Sub(LogOf(scores.sums), logarithm));
  const Tensor shift = Apply(FunctionKey("exp2"), beyond);
  STRATA_TRY(const Tensor factor, Map(beyond, shift, Domain::kFloat, [](uint64_t x, uint64_t y) {
               return x == 0 ? uint64_t{1} : y;
             }));
  STRATA_TRY(const Tensor shares, Div(scores.exponentials, scores.sums));
  STRATA_TRY(const Tensor weights, Mul(shares, factor.Reshape({sizes[0], sizes[1], sizes[2], 1})));
  STRATA_TRY(const Tensor of_weights,
             OfHeads(sizes[0], sizes[1], {sizes[2], sizes[3]}, [&](int64_t b, int64_t h) {
               return MatrixProduct(HeadOf(gradient, b, h),
                                    Transposed(HeadOf(flex.value, b, h / group)));
             }));
  STRATA_TRY(const Tensor products, Mul(output, gradient));
  STRATA_TRY(const Tensor centered, Sub(of_weights, SumOver(products, {3}, /*keep=*/true)));
  STRATA_TRY(const Tensor of_modified, Mul(weights, centered));
  std::vector<Value> inputs = ScoreIndices(sizes);
  inputs.insert(inputs.begin(), scores.raw);
  inputs.emplace_back(of_modified);
  STRATA_TRY(const Tensor joint,
             RunBody(call, flex.joint_graph, std::move(inputs), flex.score_buffers, sizes));
  STRATA_TRY(const Tensor of_visible,
             Map(ConvertTo(joint, Domain::kFloat), scores.visible, Domain::kFloat,
                 [](uint64_t x, uint64_t is_visible) { return is_visible != 0 ? x : 0; }));
  const Tensor of_scores = Scale(of_visible, flex.scale);

  STRATA_TRY(Tensor of_query,
             OfHeads(sizes[0], sizes[1], {sizes[2], flex.query.size(3)}, [&](int64_t b, int64_t h) {
               return MatrixProduct(HeadOf(of_scores, b, h), HeadOf(flex.key, b, h / group));
             }));
  STRATA_TRY(const Tensor of_keys,
             OfHeads(sizes[0], sizes[1], {sizes[3], flex.key.size(3)}, [&](int64_t b, int64_t h) {
               return MatrixProduct(Transposed(HeadOf(of_scores, b, h)), HeadOf(flex.query, b, h));
             }));
  STRATA_TRY(const Tensor of_values,
             OfHeads(sizes[0], sizes[1], {sizes[3], flex.value.size(3)}, [&](int64_t b, int64_t h) {
               return MatrixProduct(Transposed(HeadOf(weights, b, h)), HeadOf(gradient, b, h));
             }));
  STRATA_TRY(Tensor of_key, SumOfHeads(of_keys, flex.key.size(1)));
  STRATA_TRY(Tensor of_value, SumOfHeads(of_values, flex.key.size(1)));
  Values results = {std::move(of_query), std::move(of_key), std::move(of_value)};
  results.resize(std::max(results.size(), call.num_results()));
  return results;
}

/// How many of the last dimension's blocks are set, and their indices, the set ones first.
void AddBlocks(const Tensor& blocks, Values& results) {
  const auto columns = static_cast<size_t>(blocks.size(3));
  const std::vector<uint64_t> is_set = blocks.Read();
  std::vector<uint64_t> counts, indices;
  for (size_t row = 0; row * columns < is_set.size(); ++row) {
    const auto set = [&](uint64_t column) { return is_set[row * columns + column] != 0; };
    std::vector<uint64_t> order(columns);
    for (size_t i = 0; i < columns; ++i)
      order[i] = i;
    std::ranges::stable_partition(order, set);
    counts.push_back(static_cast<uint64_t>(std::ranges::count_if(order, set)));
    indices.insert(indices.end(), order.begin(), order.end());
  }
  results.emplace_back(OfWords(Domain::kInteger, {blocks.size(0), blocks.size(1), blocks.size(2)},
                               std::move(counts)));
  results.emplace_back(OfWords(Domain::kInteger, blocks.sizes(), std::move(indices)));
}

Tensor TransposedBlocks(const Tensor& a) {
  return {a.domain(),
          a.storage(),
          {a.size(0), a.size(1), a.size(3), a.size(2)},
          {a.strides()[0], a.strides()[1], a.strides()[3], a.strides()[2]},
          a.offset()};
}

/// (mask_mod, [batch or 1, heads or 1, queries, keys, block of queries, of keys], buffers, device)
/// -> of partial and of full blocks, and of these transposed: counts and indices
Result<Values> EvaluateBlockMask(Call& call) {
  STRATA_TRY(const GraphId body, BodyAt(call.args()[0]));
  const auto given = call.IntegersAt(1, {});
  if (!given || given->size() != 6 || (*given)[4] <= 0 || (*given)[5] <= 0)
    return Error(ErrorCode::kInvalid, "a block mask has six sizes");
  STRATA_TRY(const std::vector<Tensor> buffers, call.TensorsAt(2));
  const Sizes sizes(given->begin(), given->begin() + 4);
  const int64_t queries = (*given)[4], keys = (*given)[5];
  STRATA_TRY(const Tensor mask, RunBody(call, body, ScoreIndices(sizes), buffers, sizes));
  const int64_t rows = (sizes[2] + queries - 1) / queries, columns = (sizes[3] + keys - 1) / keys;
  const Sizes grid = {sizes[0], sizes[1], rows, columns};
  Tensor partial(Domain::kInteger, grid, 0), full(Domain::kInteger, grid, 0);
  std::vector<int64_t> counts(partial.storage()->words.size(), 0);
  const std::vector<uint64_t> words = mask.Read();
  size_t next = 0;
  for (int64_t matrix = 0; matrix < sizes[0] * sizes[1]; ++matrix)
    for (int64_t row = 0; row < sizes[2]; ++row)
      for (int64_t column = 0; column < sizes[3]; ++column)
        counts[static_cast<size_t>((matrix * rows + row / queries) * columns + column / keys)] +=
            words[next++] != 0 ? 1 : 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    full.storage()->words[i] = counts[i] == queries * keys;
    partial.storage()->words[i] = counts[i] > 0 && counts[i] != queries * keys;
  }
  Values results;
  for (const Tensor& blocks : {partial, full, TransposedBlocks(partial), TransposedBlocks(full)})
    AddBlocks(blocks, results);
  results.resize(std::max(results.size(), call.num_results()));
  return results;
}

constexpr OpDefinition kFlexOps[] = {
    {"higher_order.flex_attention", EvaluateFlex},
    {"higher_order.flex_attention_backward", EvaluateFlexBackward},
    {"strata.create_block_mask", EvaluateBlockMask},
};

}  // namespace

std::span<const OpDefinition> FlexOps() {
  return kFlexOps;
}

}  // namespace strata::prove
