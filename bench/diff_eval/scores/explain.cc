#include "bench/diff_eval/scores/explain.h"

#include <fmt/format.h>

namespace strata::bench {
namespace {

constexpr int kMost = 16;  // lines of each part

const Pair* PairOf(const GraphDiff& diff, int32_t before) {
  const PairId pair = diff.pair_of_before[EntityId{before}];
  return !pair.valid() ? nullptr : &diff.pairs[pair];
}

/// What an edit script costs: a node made or removed 1, a field 0.5, a move 0.25.
double CostOf(const GraphDiff& diff) {
  auto cost = static_cast<double>(diff.inserted.size() + diff.deleted.size());
  for (const Pair& pair : diff.pairs) {
    for (const FieldDiff& field : pair.fields)
      cost += field.derived ? 0 : 0.5;
    cost += pair.status.moved ? 0.25 : 0;
  }
  return cost;
}

void ExplainNodes(const GraphDiff& diff, const Truth& truth) {
  int shown = 0;
  for (int32_t i = 0; i < diff.before.size() && shown < kMost; ++i) {
    const Pair *said = PairOf(diff, i), *is = PairOf(truth.diff, i);
    const auto image = [&](const Pair* pair) {
      return pair == nullptr ? std::string("-") : diff.after.name(pair->after);
    };
    if (image(said) == image(is)) continue;
    fmt::print("    {} is {}, said {} {} {:.3f}\n", diff.before.name({i}), image(is), image(said),
               said == nullptr ? "" : ToString(said->via), said == nullptr ? 0 : said->confidence);
    ++shown;
  }
}

void ExplainFields(const GraphDiff& diff, const Truth& truth) {
  int shown = 0;
  for (int32_t i = 0; i < diff.before.size() && shown < kMost; ++i) {
    const Pair *said = PairOf(diff, i), *is = PairOf(truth.diff, i);
    const auto text = [&](const Pair* pair) {
      std::string lines;
      if (pair == nullptr) return lines;
      for (const FieldDiff& field : pair->fields) {
        lines += fmt::format(" {}: {} -> {}{};", field.path, field.before.value_or("-"),
                             field.after.value_or("-"), field.derived ? " derived" : "");
      }
      return lines;
    };
    if (text(said) == text(is)) continue;
    fmt::print("    {}: said{}\n      is{}\n", diff.before.name({i}), text(said), text(is));
    ++shown;
  }
}

void ExplainRelations(const GraphDiff& diff, const Truth& truth) {
  for (const bool is_true : {false, true}) {
    int shown = 0;
    for (const Relation& relation : is_true ? truth.relations : diff.relations) {
      if (shown++ == kMost) break;
      fmt::print("    {} {}:", is_true ? "is" : "said", ToString(relation.kind));
      for (EntityId id : relation.before)
        fmt::print(" {}", diff.before.name(id));
      fmt::print(" ->");
      for (EntityId id : relation.after)
        fmt::print(" {}", diff.after.name(id));
      fmt::print("\n");
    }
  }
}

}  // namespace

void Explain(const std::string& title, const GraphDiff& diff, const Truth& truth,
             const Tally& tally) {
  fmt::print(
      "  {}: identity +{}/-{} touched +{}/-{} fields +{}/-{} relations +{}/-{}, cost {} for {}\n",
      title, tally.identity.wrong, tally.identity.missed, tally.touched.wrong, tally.touched.missed,
      tally.fields.wrong, tally.fields.missed, tally.relations.wrong, tally.relations.missed,
      CostOf(diff), CostOf(truth.diff));
  ExplainNodes(diff, truth);
  ExplainFields(diff, truth);
  if (tally.relations.wrong + tally.relations.missed > 0) ExplainRelations(diff, truth);
}

}  // namespace strata::bench
