#pragma once
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/module.h"
#include "runtime/config/config.h"

namespace strata::cli {

/// DeepSeek-V3 16B with four sequences of 4096 tokens on each data rank, as words that
/// `strata train --set` takes.
inline constexpr std::string_view kDeepSeek16b =
    "model=deepseek_v3 dim=2048 n_layers=27 n_dense_layers=1 n_heads=16 hidden_dim=10944 "
    "vocab_size=102400 seq_len=4096 batch_size=4 steps=1 mla.q_lora_rank=0 mla.kv_lora_rank=512 "
    "mla.qk_nope_head_dim=128 mla.qk_rope_head_dim=64 mla.v_head_dim=128 moe.num_experts=64 "
    "moe.top_k=6 moe.moe_hidden_dim=1408 moe.num_shared_experts=2 moe.score_func=softmax "
    "training.mixed_precision_param=bfloat16";
/// DeepSeek-V3 671B, the same.
inline constexpr std::string_view kDeepSeek671b =
    "model=deepseek_v3 dim=7168 n_layers=61 n_dense_layers=3 n_heads=128 hidden_dim=18432 "
    "vocab_size=129280 seq_len=4096 batch_size=4 steps=1 mla.q_lora_rank=1536 "
    "mla.kv_lora_rank=512 mla.qk_nope_head_dim=128 mla.qk_rope_head_dim=64 mla.v_head_dim=128 "
    "moe.num_experts=256 moe.top_k=8 moe.moe_hidden_dim=2048 moe.num_shared_experts=1 "
    "moe.score_func=sigmoid moe.route_norm=true moe.route_scale=2.5 "
    "training.mixed_precision_param=bfloat16";

/// The graphs of one rank of a training without weights, after the passes of `pipeline`, into which
/// placement is inserted. `settings`: words that `strata train --set` takes, separated by spaces.
Result<std::unique_ptr<Module>> StepModule(std::initializer_list<std::string_view> settings,
                                           std::string_view pipeline);
Result<std::unique_ptr<Module>> StepModule(const TrainConfig& config, std::string_view pipeline);

/// Appends the words of `text` to `words`.
void AddWords(std::string_view text, std::vector<std::string>& words);

}  // namespace strata::cli
