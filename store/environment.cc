#include "store/environment.h"

#include <charconv>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace strata {
namespace {

constexpr std::string_view kThreads = "\"threads\":";

}  // namespace

Status AddEnvironment(TraceWriter& trace, RunId run, const Environment& environment) {
  const std::string json = fmt::format("{{{}{}}}", kThreads, environment.threads);
  const auto added =
      trace.AddArtifact(run, "environment.json", kEnvironmentKind, json + "\n", json);
  if (!added) return added.error();
  return Ok();
}

std::optional<Environment> EnvironmentOf(const StoredRun& run) {
  for (const ArtifactInfo& artifact : run.artifacts) {
    if (artifact.kind != kEnvironmentKind) continue;
    std::string_view text = artifact.attributes;
    const size_t begin = text.find(kThreads);
    if (begin == std::string_view::npos) continue;
    text.remove_prefix(begin + kThreads.size());
    Environment environment;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), environment.threads);
    if (read.ec == std::errc() && environment.threads > 0) return environment;
  }
  return std::nullopt;
}

}  // namespace strata
