#include "runtime/config/attention.h"

#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "passes/flex/flex_body.h"
#include "passes/flex/flex_mods.h"
#include "runtime/config/checks.h"

namespace strata {
namespace {

/// The text of a user's body, checked; "" where none is named.
Result<std::string> ReadBody(const ConfigReader& reader, std::string_view key,
                             const std::string& path, FlexRole role, const TrainConfig& config) {
  if (path.empty()) return std::string();
  STRATA_TRY(std::string text, ReadFile(path));
  STRATA_TRY(const std::vector<std::string> names, FlexBufferNames(text, role, path));
  Module scratch;
  std::vector<TypeId> types;
  for (const std::string& name : names) {
    if (name != kDocumentIds && name != kPositions) {
      return Impossible(reader, key, "{} has the input '{}': bodies may read {} and {}", path, name,
                        kDocumentIds, kPositions);
    }
    if (config.attn_mask_type != AttentionMask::kBlockCausal) {
      return Impossible(reader, key, "{} reads '{}': take attn_mask_type = 'block_causal'", path,
                        name);
    }
    const int64_t sizes[] = {config.batch_size, config.seq_len};
    types.push_back(scratch.types().Tensor(DType::kI64, sizes, "cpu"));
  }
  const auto body = AddFlexBody(scratch, text, role, path, types, "cpu");
  if (!body) return Impossible(reader, key, "{}", body.error().message());
  return text;
}

Status CheckFlex(const ConfigReader& reader, const TrainConfig& config) {
  const FlexConfig& flex = config.flex;
  STRATA_RETURN_IF_ERROR(CheckRange(reader, "flex.window", flex.window, 0, kMaxSize));
  STRATA_RETURN_IF_ERROR(CheckRange(reader, "flex.prefix", flex.prefix, 0, kMaxSize));
  STRATA_RETURN_IF_ERROR(CheckRange(reader, "flex.block_size", flex.block_size, 1, kMaxSize));
  if (flex.soft_cap < 0.0)
    return Impossible(reader, "flex.soft_cap", "{} must be at least 0", flex.soft_cap);
  if (!flex.mask_mod.empty() && (flex.window > 0 || flex.prefix > 0)) {
    return Impossible(reader, "flex.mask_mod",
                      "it is the whole mask: write window and prefix into it, or remove it");
  }
  if (!flex.score_mod.empty() && (flex.soft_cap > 0.0 || flex.alibi)) {
    return Impossible(reader, "flex.score_mod",
                      "it is all that changes scores: write soft_cap and alibi into it, or remove "
                      "it");
  }
  if (config.compile.symbolic_seq || config.compile.symbolic_batch) {
    return Impossible(reader, "compile.symbolic_dims",
                      "block masks of flex attention have constant sizes, take 'none'");
  }
  if (config.compile.TracesSeq()) {
    return Impossible(reader, "compile.ep_overlap.chunk_dim",
                      "block masks of flex attention have constant sizes, take 'batch' or "
                      "strategy = 'eager'");
  }
  return Ok();
}

}  // namespace

void ReadAttention(ConfigReader& reader, TrainConfig& config) {
  reader.Read<AttentionType>("attn_type",
                             {{"sdpa", AttentionType::kSdpa}, {"flex", AttentionType::kFlex}},
                             config.attn_type);
  FlexConfig& flex = config.flex;
  reader.Table("flex");
  reader.Read("flex.window", flex.window);
  reader.Read("flex.prefix", flex.prefix);
  reader.Read("flex.soft_cap", flex.soft_cap);
  reader.Read("flex.alibi", flex.alibi);
  reader.Read("flex.block_size", flex.block_size);
  reader.Read("flex.mask_mod", flex.mask_mod);
  reader.Read("flex.score_mod", flex.score_mod);
}

Status CompleteAttention(const ConfigReader& reader, TrainConfig& config) {
  if (config.attn_type != AttentionType::kFlex) {
    if (!reader.HasTable("flex")) return Ok();
    return Impossible(reader, "attn_type", "the table 'flex' requires 'flex', remove it");
  }
  FlexConfig& flex = config.flex;
  STRATA_RETURN_IF_ERROR(CheckFlex(reader, config));
  STRATA_TRY(flex.mask_mod_text,
             ReadBody(reader, "flex.mask_mod", flex.mask_mod, FlexRole::kMask, config));
  STRATA_TRY(flex.score_mod_text,
             ReadBody(reader, "flex.score_mod", flex.score_mod, FlexRole::kScore, config));
  if (flex.mask_mod.empty()) {
    flex.mask_mod_text =
        MaskModText({.window = flex.window,
                     .prefix = flex.prefix,
                     .has_documents = config.attn_mask_type == AttentionMask::kBlockCausal});
  }
  if (flex.score_mod.empty()) {
    flex.score_mod_text =
        ScoreModText({.soft_cap = flex.soft_cap, .alibi_heads = flex.alibi ? config.n_heads : 0});
  }
  return Ok();
}

}  // namespace strata
