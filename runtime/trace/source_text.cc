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

// The sources of traced programs, whose lines the graphs show.
constexpr std::pair<std::string_view, const std::string_view*> kSources[] = {
    {"runtime/models/decoder.h", &program_sources::kDecoderH},
    {"runtime/models/deepseek_v3.cc", &program_sources::kDeepseekV3Cc},
    {"runtime/models/layers.cc", &program_sources::kLayersCc},
    {"runtime/models/llama3.cc", &program_sources::kLlama3Cc},
    {"runtime/models/moe.cc", &program_sources::kMoeCc},
    {"runtime/models/qwen3.cc", &program_sources::kQwen3Cc},
    {"runtime/models/rope.cc", &program_sources::kRopeCc},
    {"runtime/models/sequence.cc", &program_sources::kSequenceCc},
    {"runtime/train/programs/adamw.cc", &program_sources::kAdamwCc},
    {"runtime/train/programs/programs.cc", &program_sources::kProgramsCc},
};

/// What the compiler puts before paths in the checkout: it names this file, too.
std::string_view CheckoutPrefix() {
  constexpr std::string_view kFile = __FILE__, kPath = "runtime/trace/source_text.cc";
  static_assert(kFile.ends_with(kPath));
  return kFile.substr(0, kFile.size() - kPath.size());
}

}  // namespace

std::string_view PathInCheckout(std::string_view file) {
  if (file.starts_with(CheckoutPrefix())) return file.substr(CheckoutPrefix().size());
  // A source may be named from the folder in which the compiler ran: ccache does that, to share
  // objects, but not for sources that are compiled together.
  while (file.starts_with("../"))
    file.remove_prefix(3);
  // Objects may come from another checkout.
  for (const auto& [path, text] : kSources) {
    if (file.ends_with(path) && file.substr(0, file.size() - path.size()).ends_with('/'))
      return path;
  }
  return file;
}

std::string_view SourceLine(std::string_view file, uint32_t line) {
  for (const auto& [path, text] : kSources) {
    if (path == file && line > 0) return LineOf(*text, line);
  }
  return {};
}

}  // namespace strata
