#include "runtime/config/config.h"

#include <string>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/file.h"
#include "runtime/config/attention.h"
#include "runtime/config/checks.h"
#include "runtime/config/compile.h"
#include "runtime/config/flavors.h"
#include "runtime/config/loop.h"
#include "runtime/config/model.h"
#include "runtime/config/pipeline.h"
#include "runtime/config/ranks.h"
#include "runtime/config/reader.h"
#include "runtime/config/toml_jobs.h"
#include "runtime/config/tree.h"

namespace strata {
namespace {

ConfigFormat FormatOf(const std::string& path, std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  const bool is_object = first != std::string_view::npos && text[first] == '{';
  return path.ends_with(".json") || is_object ? ConfigFormat::kJson : ConfigFormat::kToml;
}

Result<std::vector<ConfigEntry>> MergedEntries(std::string_view text, ConfigFormat format,
                                               std::string_view file,
                                               std::span<const std::string> overrides) {
  STRATA_TRY(std::vector<ConfigEntry> entries, ParseConfigEntries(text, format, file));
  for (const std::string& assignment : overrides) {
    STRATA_RETURN_IF_ERROR(OverrideEntry(assignment, entries));
  }
  return entries;
}

void ReadRope(ConfigReader& reader, RopeConfig& rope) {
  reader.Table("rope");
  reader.Read("rope.theta", rope.theta);
  reader.Read<RopeBackend>("rope.backend",
                           {{"complex", RopeBackend::kComplex}, {"cos_sin", RopeBackend::kCosSin}},
                           rope.backend);
  reader.Read<RopeScaling>(
      "rope.scaling",
      {{"none", RopeScaling::kNone}, {"llama", RopeScaling::kLlama}, {"yarn", RopeScaling::kYarn}},
      rope.scaling);
  reader.Read("rope.max_seq_len", rope.max_seq_len);
  reader.Read("rope.scaling_factor", rope.scaling_factor);
  reader.Read("rope.low_freq_factor", rope.low_freq_factor);
  reader.Read("rope.high_freq_factor", rope.high_freq_factor);
  reader.Read("rope.original_max_position_embeddings", rope.original_max_position_embeddings);
  reader.Read("rope.rope_factor", rope.rope_factor);
  reader.Read("rope.beta_fast", rope.beta_fast);
  reader.Read("rope.beta_slow", rope.beta_slow);
  reader.Read("rope.original_seq_len", rope.original_seq_len);
}

Status CheckYarn(const ConfigReader& reader, const RopeConfig& rope) {
  STRATA_RETURN_IF_ERROR(CheckSize(reader, "rope.original_seq_len", rope.original_seq_len));
  STRATA_RETURN_IF_ERROR(CheckPositive(reader, "rope.beta_slow", rope.beta_slow));
  if (rope.rope_factor < 1.0) {
    return Impossible(reader, "rope.rope_factor", "{} must be at least 1", rope.rope_factor);
  }
  if (rope.beta_fast <= rope.beta_slow) {
    return Impossible(reader, "rope.beta_fast", "{} must be more than beta_slow {}", rope.beta_fast,
                      rope.beta_slow);
  }
  if (rope.theta == 1.0) {
    return Impossible(reader, "rope.theta", "YaRN divides by its logarithm, 1 will not do");
  }
  return Ok();
}

Status CompleteRope(const ConfigReader& reader, TrainConfig& config) {
  RopeConfig& rope = config.rope;
  if (!reader.Has("rope.max_seq_len")) rope.max_seq_len = config.seq_len;
  STRATA_RETURN_IF_ERROR(CheckPositive(reader, "rope.theta", rope.theta));
  STRATA_RETURN_IF_ERROR(CheckSize(reader, "rope.max_seq_len", rope.max_seq_len));
  if (rope.max_seq_len < config.seq_len) {
    return Impossible(reader, "rope.max_seq_len", "{} positions do not hold seq_len {}",
                      rope.max_seq_len, config.seq_len);
  }
  if (rope.scaling == RopeScaling::kYarn) return CheckYarn(reader, rope);
  if (rope.scaling != RopeScaling::kLlama) return Ok();
  STRATA_RETURN_IF_ERROR(CheckPositive(reader, "rope.scaling_factor", rope.scaling_factor));
  STRATA_RETURN_IF_ERROR(CheckPositive(reader, "rope.low_freq_factor", rope.low_freq_factor));
  STRATA_RETURN_IF_ERROR(CheckSize(reader, "rope.original_max_position_embeddings",
                                   rope.original_max_position_embeddings));
  if (rope.high_freq_factor <= rope.low_freq_factor) {
    return Impossible(reader, "rope.high_freq_factor", "{} must be more than low_freq_factor {}",
                      rope.high_freq_factor, rope.low_freq_factor);
  }
  return Ok();
}

struct ValueWriter {
  std::string operator()(std::monostate /*null*/) const { return "null"; }
  std::string operator()(const std::string& text) const { return fmt::format("'{}'", text); }
  std::string operator()(const std::vector<std::string>& texts) const {
    return fmt::format("['{}']", fmt::join(texts, "', '"));
  }
  std::string operator()(const WordLists& lists) const {
    std::vector<std::string> texts;
    for (const std::vector<std::string>& list : lists)
      texts.push_back((*this)(list));
    return fmt::format("[{}]", fmt::join(texts, ", "));
  }
  std::string operator()(const OtherConfigValue& other) const { return std::string(other.kind); }
  template <class Number>
  std::string operator()(Number number) const {
    return fmt::format("{}", number);
  }
};

/// Different for different values.
std::string TextOf(const ConfigValue& value) {
  return std::visit(ValueWriter(), value);
}

}  // namespace

std::string_view Name(ModelFamily model) {
  switch (model) {
    case ModelFamily::kLlama3:
      return "llama3";
    case ModelFamily::kQwen3:
      return "qwen3";
    case ModelFamily::kDeepSeekV3:
      return "deepseek_v3";
    case ModelFamily::kProgram:
      return "program";
    case ModelFamily::kLibrary:
      return "library";
  }
  return "";
}

std::string_view Name(Precision precision) {
  switch (precision) {
    case Precision::kFloat32:
      return "float32";
    case Precision::kBFloat16:
      return "bfloat16";
    case Precision::kFloat64:
      return "float64";
  }
  return "";
}

Result<TrainConfig> LoadTrainConfig(const std::string& path, std::span<const std::string> overrides,
                                    std::optional<int64_t> world) {
  STRATA_TRY(const std::string text, ReadFile(path));
  return ParseTrainConfig(text, FormatOf(path, text), path, overrides, world);
}

Result<std::string> MergedConfig(const std::string& path, std::span<const std::string> overrides) {
  STRATA_TRY(const std::string text, ReadFile(path));
  STRATA_TRY(const std::vector<ConfigEntry> entries,
             MergedEntries(text, FormatOf(path, text), path, overrides));
  return ToJson(entries);
}

Result<TrainConfig> ParseTrainConfig(std::string_view text, ConfigFormat format,
                                     std::string_view file, std::span<const std::string> overrides,
                                     std::optional<int64_t> world) {
  STRATA_TRY(std::vector<ConfigEntry> entries, MergedEntries(text, format, file, overrides));
  STRATA_RETURN_IF_ERROR(AddFlavor(entries));
  TrainConfig config;
  for (const ConfigEntry& entry : entries)
    config.fields.emplace_back(entry.key, TextOf(entry.value));
  ConfigReader reader(std::move(entries), file);
  ReadTomlJob(reader);
  ReadModel(reader, config);
  ReadRope(reader, config.rope);
  ReadLoop(reader, config);
  ReadAttention(reader, config);
  STRATA_RETURN_IF_ERROR(reader.Finish());

  STRATA_RETURN_IF_ERROR(CompleteRanks(reader, world, config.parallelism));
  STRATA_RETURN_IF_ERROR(CompleteLoop(reader, config));
  STRATA_RETURN_IF_ERROR(CompleteRope(reader, config));
  STRATA_RETURN_IF_ERROR(CompleteModel(reader, file, config));
  STRATA_RETURN_IF_ERROR(CompleteAttention(reader, config));
  STRATA_RETURN_IF_ERROR(CompletePipeline(reader, config));
  STRATA_RETURN_IF_ERROR(CheckModelOnRanks(reader, config));
  STRATA_RETURN_IF_ERROR(CheckExpertOverlap(reader, config));
  STRATA_RETURN_IF_ERROR(CheckAsyncTensor(reader, config));
  STRATA_RETURN_IF_ERROR(CheckAutoParallel(reader, config));
  STRATA_RETURN_IF_ERROR(CheckOverlapPolicy(reader, config));
  return config;
}

}  // namespace strata
