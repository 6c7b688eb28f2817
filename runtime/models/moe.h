#pragma once
#include <cstdint>
#include <optional>
#include <source_location>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "runtime/config/config.h"
#include "runtime/models/chunks.h"
#include "runtime/models/layers.h"
#include "runtime/models/weights.h"

namespace strata {

/// Chooses experts for tokens.
///
///   s = score(gate x), in fp32     chosen = the top k of s + bias     score = s of the chosen
///
/// With groups, experts outside the best groups cannot be chosen; a group is as good as its two
/// best experts together. With `force_load_balance` experts are taken in turn instead.
class Router {
 public:
  Router(const Slot& slot, const TrainConfig& config, int64_t layer);

  struct Choice {
    at::Tensor scores;   ///< fp32 `[tokens, k]`
    at::Tensor experts;  ///< int64 `[tokens, k]`, in no order
  };
  /// `x` `[tokens, dim]`; `bias` fp32 `[experts]`, or undefined.
  Choice operator()(const at::Tensor& x, const at::Tensor& bias,
                    std::source_location location = std::source_location::current()) const;

 private:
  /// 0, 1, …, experts - 1, 0, …: each expert gets as many rows, whatever the scores say.
  at::Tensor InTurn(const at::Tensor& like) const;
  at::Tensor ForbidWeakGroups(const at::Tensor& scores) const;

  MoeConfig config_;
  Linear gate_;
};

/// Many feed-forward layers of one shape.
class Experts {
 public:
  Experts(const Slot& slot, const TrainConfig& config, int64_t layer);

  /// Row i of `x` `[rows, dim]` goes through the expert whose rows it is among: those of expert e
  /// end before `ends[e]` (int32 `[experts]`).
  at::Tensor operator()(const at::Tensor& x, const at::Tensor& ends,
                        std::source_location location = std::source_location::current()) const;

  /// One of them, for rows of its own.
  struct Expert {
    at::Tensor w1, w2, w3;
    at::Tensor operator()(const at::Tensor& x) const;
  };
  std::vector<Expert> Each() const;

 private:
  at::Tensor w1_, w3_;  ///< [experts, hidden, dim]
  at::Tensor w2_;       ///< [experts, dim, hidden]
};

/// A feed-forward layer of which each token uses a few parts: shared(x) + Σ score · expert(x) over
/// the experts chosen for it. Rows are sorted by expert. With `use_grouped_mm` one grouped product
/// runs over all of them, and every size is fixed although which rows an expert reads depends on
/// data; without it each expert has an input of its own, whose size is read from data.
class MixtureOfExperts {
 public:
  MixtureOfExperts(const Slot& slot, const TrainConfig& config, int64_t layer);

  /// `x` `[batch, seq, dim]`. Appends how many rows each expert got, int64 `[experts]`.
  at::Tensor operator()(const at::Tensor& x, std::vector<at::Tensor>& tokens_per_expert,
                        std::source_location location = std::source_location::current()) const;

 private:
  /// sum + Σ weight · expert(rows), each expert on its part of the lists.
  at::Tensor AddEach(at::Tensor sum, const std::vector<at::Tensor>& source,
                     const std::vector<at::Tensor>& rows,
                     const std::vector<at::Tensor>& weight) const;

  MoeConfig config_;
  Experts experts_;
  Router router_;
  std::optional<FeedForward> shared_experts_;
  at::Tensor expert_bias_;  ///< [experts], or undefined
};

/// The second half of a block: `feed_forward`, or `moe` in the layers that have experts.
class DenseOrExperts {
 public:
  DenseOrExperts(const Slot& slot, const TrainConfig& config, int64_t layer);
  /// As of MixtureOfExperts.
  at::Tensor operator()(const at::Tensor& x, std::vector<at::Tensor>& tokens_per_expert,
                        std::source_location location = std::source_location::current()) const;

 private:
  std::optional<FeedForward> dense_;
  std::optional<MixtureOfExperts> experts_;
  ExpertOverlapConfig chunks_;
  ChunkCount chunk_count_;
};

/// Makes experts that got many tokens less likely to be chosen (arXiv 2408.15664), in place:
///
///   d = coeff · sign(mean(tokens) - tokens)     bias += d - mean(d)
void UpdateExpertBias(const at::Tensor& bias, const at::Tensor& tokens_per_expert, double coeff);

}  // namespace strata
