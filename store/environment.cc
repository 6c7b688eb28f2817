#include "store/environment.h"

#include <charconv>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace strata {
namespace {

constexpr std::string_view kThreads = "\"threads\":", kSteps = "\"steps\":";

/// The number behind a key; 0: there is none.
int64_t NumberBehind(std::string_view text, std::string_view key) {
  const size_t begin = text.find(key);
  if (begin == std::string_view::npos) return 0;
  text.remove_prefix(begin + key.size());
  int64_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  return read.ec == std::errc() && number > 0 ? number : 0;
}

}  // namespace

Status AddEnvironment(TraceWriter& trace, RunId run, const Environment& environment) {
  std::string json = fmt::format("{{{}{}", kThreads, environment.threads);
  if (environment.steps > 0) json += fmt::format(",{}{}", kSteps, environment.steps);
  json += "}";
  const auto added =
      trace.AddArtifact(run, "environment.json", kEnvironmentKind, json + "\n", json);
  if (!added) return added.error();
  return Ok();
}

std::optional<Environment> EnvironmentOf(const StoredRun& run) {
  for (const ArtifactInfo& artifact : run.artifacts) {
    if (artifact.kind != kEnvironmentKind) continue;
    const Environment environment = {.threads = NumberBehind(artifact.attributes, kThreads),
                                     .steps = NumberBehind(artifact.attributes, kSteps)};
    if (environment.threads > 0) return environment;
  }
  return std::nullopt;
}

}  // namespace strata
