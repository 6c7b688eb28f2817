#include "cli/render/ranks_report.h"

#include <cstdint>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/json.h"
#include "base/shell.h"
#include "base/unicode.h"

namespace strata::cli {
namespace {

/// `0..3, 7`.
std::string RanksText(const std::vector<int32_t>& ranks) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < ranks.size();) {
    size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1)
      ++end;
    if (end - i > 2) {
      parts.push_back(fmt::format("{}..{}", ranks[i], ranks[end - 1]));
    } else {
      for (size_t k = i; k < end; ++k)
        parts.push_back(fmt::format("{}", ranks[k]));
    }
    i = end;
  }
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", fmt::join(parts, ", "));
}

/// On one line, whatever names it has.
std::string PlaceText(const RankDifference& difference) {
  std::string text = difference.pass_index < 0
                         ? fmt::format("graph '{}'", difference.graph)
                         : fmt::format("pass {} '{}', graph '{}'", difference.pass_index,
                                       difference.pass, difference.graph);
  if (!difference.node.empty()) text += fmt::format(", node {}", difference.node);
  return Visible(text);
}

void WriteRanks(JsonWriter& json, std::string_view key, const std::vector<int32_t>& ranks) {
  json.Key(key).BeginArray();
  for (int32_t rank : ranks)
    json.Int(rank);
  json.EndArray();
}

void WriteDifference(JsonWriter& json, const RankDifference& difference,
                     const std::vector<int32_t>& ranks) {
  json.BeginObject().Key("pass");
  difference.pass_index < 0 ? json.Null() : json.Int(difference.pass_index);
  json.Field("pass_name", difference.pass).Field("graph", difference.graph).Key("node");
  difference.node.empty() ? json.Null() : json.String(difference.node);
  WriteRanks(json, "ranks", ranks);
  json.Field("what", difference.what);
  json.Key("refs").BeginArray();
  for (const std::string* ref : {&difference.ref_most, &difference.ref_other}) {
    if (!ref->empty()) json.String(*ref);
  }
  json.EndArray().EndObject();
}

}  // namespace

std::string RanksReportText(const RanksReport& report) {
  size_t num_ranks = 0;
  for (const RankClass& c : report.classes)
    num_ranks += c.ranks.size();
  std::string out = fmt::format("{} rank{}, {} class{}\n", num_ranks, num_ranks == 1 ? "" : "s",
                                report.classes.size(), report.classes.size() == 1 ? "" : "es");
  for (const RankClass& c : report.classes) {
    out += fmt::format("  {}  {}{}\n", RanksText(c.ranks), Visible(c.ref),
                       c.identical ? "" : "  (equal but for constants of ranks)");
  }
  if (!report.cached.empty()) {
    out += fmt::format(
        "  {} took from a compiler cache what others compiled; compared is what all have\n",
        RanksText(report.cached));
  }
  if (!report.differences.empty()) {
    out += fmt::format("\nfirst difference: {}, {}\n", PlaceText(report.differences[0]),
                       RanksText(report.FirstRanks()));
    for (const RankDifference& difference : report.differences) {
      const RankClass& c = report.classes[difference.rank_class];
      out += fmt::format("  {}: {}: {}\n", RanksText(c.ranks), PlaceText(difference),
                         Visible(difference.what));
      if (!difference.ref_most.empty() && !difference.ref_other.empty()) {
        out += fmt::format("    strata diff {} {}\n", ShellWord(difference.ref_most),
                           ShellWord(difference.ref_other));
      }
    }
  }
  if (!report.collectives.empty()) out += "\ncollectives\n";
  for (const auto& [graph, mismatch] : report.collectives) {
    out += fmt::format("  graph '{}', group '{}', {} at {}, {}\n    {}\n", Visible(graph),
                       Visible(mismatch.group), Visible(mismatch.node), mismatch.index,
                       RanksText(mismatch.ranks), Visible(mismatch.what));
  }
  if (!report.constants.empty()) out += "\nconstants of ranks\n";
  for (const RankConstant& constant : report.constants) {
    const std::string node = constant.node.empty() ? "" : constant.node + " ";
    out += fmt::format("  {} {}{} = {}\n", Visible(constant.graph), Visible(node),
                       Visible(constant.path), constant.formula);
  }
  return out;
}

std::string RanksReportJson(const RanksReport& report) {
  std::string out;
  JsonWriter json(out);
  json.BeginObject().Break(2).Field("schema", "strata.ranks/1");
  json.Break(2).Key("classes").BeginArray();
  for (const RankClass& c : report.classes) {
    json.BeginArray();
    for (int32_t rank : c.ranks)
      json.Int(rank);
    json.EndArray();
  }
  json.EndArray().Break(2).Key("refs").BeginArray();
  for (const RankClass& c : report.classes)
    json.String(c.ref);
  json.EndArray().Break(2).Key("first_difference");
  if (report.differences.empty()) {
    json.Null();
  } else {
    WriteDifference(json, report.differences[0], report.FirstRanks());
  }
  json.Break(2).Key("differences").BeginArray();
  for (const RankDifference& difference : report.differences) {
    json.Break(4);
    WriteDifference(json, difference, report.classes[difference.rank_class].ranks);
  }
  json.EndArray().Break(2).Key("collectives").BeginArray();
  for (const auto& [graph, mismatch] : report.collectives) {
    json.Break(4).BeginObject().Field("index", mismatch.index);
    WriteRanks(json, "ranks", mismatch.ranks);
    json.Field("what", mismatch.what).Field("kind", ToString(mismatch.kind));
    json.Field("group", mismatch.group).Field("graph", graph);
    json.Field("node", mismatch.node).EndObject();
  }
  json.EndArray().Break(2).Key("constants").BeginArray();
  for (const RankConstant& constant : report.constants) {
    json.Break(4).BeginObject().Field("graph", constant.graph).Field("node", constant.node);
    json.Field("path", constant.path).Field("formula", constant.formula).EndObject();
  }
  json.EndArray().Break(0).EndObject();
  return out + "\n";
}

}  // namespace strata::cli
