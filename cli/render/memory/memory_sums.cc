#include "cli/render/memory/memory_sums.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/unicode.h"
#include "cli/render/text_table.h"
#include "ir/module.h"
#include "passes/memory/activations.h"
#include "passes/memory/tags.h"
#include "scene/memory.h"

namespace strata::cli {
namespace {

/// Both sides of a row.
struct SumChange {
  std::string key;
  MemorySum before, after;

  bool differs() const {
    return before.alive_bytes != after.alive_bytes || before.saved_bytes != after.saved_bytes;
  }
};

constexpr std::pair<SumOver, std::string_view> kTables[] = {{SumOver::kModule, "by module"},
                                                            {SumOver::kLine, "by line of code"}};

std::string KeyOf(const Graph& graph, ValueId value, SumOver over) {
  const NodeId node = graph.value(value).def;
  return over == SumOver::kModule ? std::string(ModuleOf(graph, node)) : SourceLine(graph, node);
}

std::string RowName(std::string_view key, SumOver over) {
  if (!key.empty()) return std::string(Visible(key));
  return over == SumOver::kModule ? "(no module)" : "(no line: inputs, constants)";
}

std::vector<SumChange> ChangesOf(const Graph& before, const Graph& after, SumOver over) {
  std::map<std::string, SumChange> by_key;
  for (MemorySum& sum : SumMemory(before, over))
    by_key[sum.key].before = std::move(sum);
  for (MemorySum& sum : SumMemory(after, over))
    by_key[sum.key].after = std::move(sum);
  std::vector<SumChange> changes;
  for (auto& [key, change] : by_key) {
    change.key = key;
    if (change.differs()) changes.push_back(std::move(change));
  }
  std::ranges::stable_sort(changes, std::ranges::greater(), [](const SumChange& change) {
    return std::pair(std::abs(change.after.alive_bytes - change.before.alive_bytes),
                     std::abs(change.after.saved_bytes - change.before.saved_bytes));
  });
  return changes;
}

std::string Arrow(int64_t before, int64_t after) {
  return before == after ? BinarySize(after)
                         : fmt::format("{} → {}", BinarySize(before), BinarySize(after));
}

}  // namespace

std::string SourceLine(const Graph& graph, NodeId node) {
  const LocId id = graph.node(node).loc;
  if (!id.valid()) return "";
  const SourceLoc& loc = graph.module().loc(id);
  return fmt::format("{}:{}", graph.module().str(loc.file), loc.line);
}

std::vector<MemorySum> SumMemory(const Graph& graph, SumOver over) {
  std::map<std::string, MemorySum> by_key;
  for (const MemoryProfile::Holder& holder : ProfileMemory(graph).holders)
    by_key[KeyOf(graph, holder.value, over)].alive_bytes += holder.bytes;
  for (const auto& [storage, bytes] : SavedStorages(graph, ListActivations(graph)))
    by_key[KeyOf(graph, storage, over)].saved_bytes += bytes;
  std::vector<MemorySum> sums;
  for (auto& [key, sum] : by_key) {
    sum.key = key;
    sums.push_back(std::move(sum));
  }
  std::ranges::stable_sort(sums, std::ranges::greater(), [](const MemorySum& sum) {
    return std::pair(sum.alive_bytes, sum.saved_bytes);
  });
  return sums;
}

std::string MemorySumsText(const Graph& graph, size_t shown) {
  std::string text;
  for (const auto& [over, title] : kTables) {
    const std::vector<MemorySum> sums = SumMemory(graph, over);
    const size_t end = shown == 0 ? sums.size() : std::min(shown, sums.size());
    TextTable table;
    table.Add({"at the peak", "saved", ""});
    for (size_t i = 0; i < end; ++i)
      table.Add({BinarySize(sums[i].alive_bytes), BinarySize(sums[i].saved_bytes),
                 RowName(sums[i].key, over)});
    text += fmt::format("\n{}\n{}{}", title, table.Text({0, 1}), MoreRows(end, sums.size()));
  }
  return text;
}

std::string MemorySumChangesText(const Graph& before, const Graph& after, size_t shown) {
  std::string text;
  for (const auto& [over, title] : kTables) {
    const std::vector<SumChange> changes = ChangesOf(before, after, over);
    if (changes.empty()) continue;
    const size_t end = shown == 0 ? changes.size() : std::min(shown, changes.size());
    TextTable table;
    table.Add({"at the peak", "saved", ""});
    for (size_t i = 0; i < end; ++i) {
      const SumChange& change = changes[i];
      table.Add({Arrow(change.before.alive_bytes, change.after.alive_bytes),
                 Arrow(change.before.saved_bytes, change.after.saved_bytes),
                 RowName(change.key, over)});
    }
    text +=
        fmt::format("\nchanges {}\n{}{}", title, table.Text({0, 1}), MoreRows(end, changes.size()));
  }
  return text;
}

void WriteMemorySums(JsonWriter& json, const Graph& graph) {
  for (const auto& [over, key, name] : {std::tuple(SumOver::kModule, "by_module", "module"),
                                        {SumOver::kLine, "by_line", "source"}}) {
    json.Key(key).BeginArray();
    for (const MemorySum& sum : SumMemory(graph, over)) {
      json.Break(2).BeginObject().Field(name, sum.key).Field("alive_bytes", sum.alive_bytes);
      json.Field("saved_bytes", sum.saved_bytes).EndObject();
    }
    json.EndArray();
  }
}

}  // namespace strata::cli
