#include "cli/render/cost_text.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/json.h"
#include "base/unicode.h"

namespace strata::cli {
namespace {

void AppendList(std::string_view title, const std::vector<CostChange>& changes, size_t shown,
                std::string& out) {
  if (changes.empty()) return;
  out += fmt::format("\n{}\n", title);
  const size_t end = shown == 0 ? changes.size() : std::min(shown, changes.size());
  const bool any_bytes =
      std::ranges::any_of(changes, [](const CostChange& change) { return change.bytes != 0; });
  const bool any_peak =
      std::ranges::any_of(changes, [](const CostChange& change) { return change.peak != 0; });
  for (const CostChange& change : std::span(changes).first(end)) {
    out += fmt::format("  {:>+10.1f} us", change.us);
    if (any_bytes) out += fmt::format("  {:>+14.0f} bytes", change.bytes);
    if (any_peak) out += fmt::format("  {:>+14.0f} at peak", change.peak);
    out += change.places > 1 ? fmt::format("  {:>4}×", change.places) : "       ";
    out += fmt::format("  {}", Visible(change.what));
    if (!change.where.empty()) out += fmt::format("  {}", Visible(change.where));
    out += '\n';
  }
  if (end < changes.size()) out += fmt::format("  … {} more\n", changes.size() - end);
}

void WriteList(JsonWriter& json, std::string_view key, const std::vector<CostChange>& changes) {
  json.Break(2).Key(key).BeginArray();
  for (const CostChange& change : changes) {
    json.Break(4).BeginObject().Field("what", change.what).Field("where", change.where);
    json.Field("places", change.places).Field("us", change.us);
    json.Field("bytes", change.bytes).Field("peak", change.peak).EndObject();
  }
  json.EndArray();
}

}  // namespace

std::string CostText(const CostDiff& costs, size_t shown) {
  std::string out = fmt::format("time   {:.1f} → {:.1f} us a step  ({:+.1f})\n", costs.us_before,
                                costs.us_after, costs.us_after - costs.us_before);
  if (costs.bytes_before != 0 || costs.bytes_after != 0) {
    out +=
        fmt::format("bytes  {:.0f} → {:.0f} read and written in a step  ({:+.0f})\n",
                    costs.bytes_before, costs.bytes_after, costs.bytes_after - costs.bytes_before);
  }
  if (costs.peak_before != 0 || costs.peak_after != 0) {
    out += fmt::format("peak   {:.0f} → {:.0f} bytes  ({:+.0f})\n", costs.peak_before,
                       costs.peak_after, costs.peak_after - costs.peak_before);
  }
  AppendList("by change", costs.patterns, shown, out);
  AppendList("by module", costs.modules, shown, out);
  AppendList("by pass that made the nodes", costs.passes, shown, out);
  AppendList("by node", costs.nodes, shown, out);
  return out;
}

std::string CostJson(const CostDiff& costs, const std::string& before_ref,
                     const std::string& after_ref) {
  std::string out;
  JsonWriter json(out);
  json.BeginObject().Break(2).Field("schema", "strata.cost/1");
  json.Break(2).Key("before").BeginObject().Field("ref", before_ref);
  json.Field("us", costs.us_before).Field("bytes", costs.bytes_before);
  json.Field("peak", costs.peak_before).EndObject();
  json.Break(2).Key("after").BeginObject().Field("ref", after_ref);
  json.Field("us", costs.us_after).Field("bytes", costs.bytes_after);
  json.Field("peak", costs.peak_after).EndObject();
  WriteList(json, "changes", costs.patterns);
  WriteList(json, "modules", costs.modules);
  WriteList(json, "passes", costs.passes);
  WriteList(json, "nodes", costs.nodes);
  json.Break(0).EndObject();
  return out + "\n";
}

}  // namespace strata::cli
