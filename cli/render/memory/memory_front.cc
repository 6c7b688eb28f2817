#include "cli/render/memory/memory_front.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

namespace strata::cli {
namespace {

constexpr double kMostBars = 40;

std::string Mebibytes(int64_t bytes) {
  return fmt::format("{:.2f} MiB", static_cast<double>(bytes) / (1024.0 * 1024.0));
}

}  // namespace

std::string FrontText(const Graph& graph, const MemoryFront& front) {
  std::string text = fmt::format(
      "graph {}: time for memory; peaks beside inputs, times as {}\n\n"
      "  {:>14}  {:>14}  {:>10}  {:>9}\n",
      graph.name_text(), front.is_profiled ? "recorded" : "modelled", "peak", "added", "recomputed",
      "offloaded");
  const int64_t most =
      front.plans.empty() ? 1 : std::max<int64_t>(1, front.plans.back().peak_bytes);
  for (const BudgetedPlan& plan : front.plans) {
    const double share = static_cast<double>(plan.peak_bytes) / static_cast<double>(most);
    text += fmt::format("  {:>14}  {:>11.1f} µs  {:>10}  {:>9}  ", Mebibytes(plan.peak_bytes),
                        plan.us, plan.num_recomputed, plan.num_offloaded);
    for (int bar = 0; bar < std::lround(share * kMostBars); ++bar)
      text += "█";
    text += "\n";
  }
  return text;
}

void WriteFront(JsonWriter& json, const MemoryFront& front) {
  json.Field("times", std::string_view(front.is_profiled ? "recorded" : "modelled"));
  json.Key("front").BeginArray();
  for (const BudgetedPlan& plan : front.plans) {
    json.Break(2).BeginObject().Field("bytes", plan.peak_bytes).Field("us", plan.us);
    json.Key("plan").BeginObject();
    json.Field("passes", PassesOf(plan));
    json.Field("recomputed", plan.num_recomputed).Field("offloaded", plan.num_offloaded);
    json.EndObject().EndObject();
  }
  json.EndArray();
}

}  // namespace strata::cli
