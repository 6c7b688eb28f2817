#include "runtime/trace/source_text.h"

#include <algorithm>
#include <utility>

#include "embedded/program_sources.h"

namespace strata {
namespace {

std::string_view Trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(' ');
  return begin == std::string_view::npos ? "" : text.substr(begin);
}

std::string_view LineOf(std::string_view text, uint32_t line) {
  for (; line > 1 && !text.empty(); --line)
    text.remove_prefix(std::min(text.size(), text.find('\n') + 1));
  return Trimmed(text.substr(0, text.find('\n')));
}

}  // namespace

std::string_view SourceLine(std::string_view file, uint32_t line) {
  const std::pair<std::string_view, std::string_view> sources[] = {
      {"runtime/models/decoder.h", program_sources::kDecoderH},
      {"runtime/models/deepseek_v3.cc", program_sources::kDeepseekV3Cc},
      {"runtime/models/layers.cc", program_sources::kLayersCc},
      {"runtime/models/llama3.cc", program_sources::kLlama3Cc},
      {"runtime/models/moe.cc", program_sources::kMoeCc},
      {"runtime/models/qwen3.cc", program_sources::kQwen3Cc},
      {"runtime/models/rope.cc", program_sources::kRopeCc},
      {"runtime/models/sequence.cc", program_sources::kSequenceCc},
      {"runtime/train/adamw.cc", program_sources::kAdamwCc},
      {"runtime/train/programs.cc", program_sources::kProgramsCc},
  };
  for (const auto& [name, text] : sources) {
    if (name == file && line > 0) return LineOf(text, line);
  }
  return {};
}

}  // namespace strata
