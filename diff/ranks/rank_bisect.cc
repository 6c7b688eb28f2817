#include "diff/ranks/rank_bisect.h"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "diff/graph/listing.h"
#include "diff/ranks/rank_form.h"
#include "diff/ranks/rank_rule.h"

namespace strata {
namespace {

/// Compares graphs of two ranks.
class RankPairComparer {
 public:
  RankPairComparer(const History& a, const History& b) : a_(a), b_(b) {}

  Result<bool> Agree(int32_t a, int32_t b) {
    STRATA_TRY(const RankForm* form_a, FormOf(a_, a, forms_a_));
    STRATA_TRY(const RankForm* form_b, FormOf(b_, b, forms_b_));
    if (form_a->hash != form_b->hash) return false;
    if (form_a->values == form_b->values) return true;
    STRATA_TRY(const LoadedGraph graph, a_.load(a));
    const std::vector<RankSite> sites = RankSitesOf(graph.graph());
    const std::set<int64_t> sizes = SizesOf(graph.graph());
    odd_.clear();
    for (size_t i = 0; i < sites.size(); ++i) {
      if (!Follows(sites[i], form_a->values[i], form_b->values[i], sizes))
        odd_.emplace(sites[i].node, sites[i].path);
    }
    return odd_.empty();
  }

  /// Whether a difference follows from the ranks. Of the graphs that were compared last.
  bool Ignores(const GraphDiff& diff, const Pair& pair, const FieldDiff& field) const {
    return MayDifferByRank(diff, pair, field) &&
           !odd_.contains({diff.before.name(pair.before), std::string(field.path)}) &&
           !odd_.contains({diff.after.name(pair.after), std::string(field.path)});
  }

 private:
  using Forms = std::map<int32_t, RankForm>;

  static Result<const RankForm*> FormOf(const History& history, int32_t snapshot, Forms& forms) {
    if (const auto known = forms.find(snapshot); known != forms.end()) return &known->second;
    STRATA_TRY(const LoadedGraph graph, history.load(snapshot));
    return &(forms[snapshot] = RankFormOf(graph.graph()));
  }

  bool Follows(const RankSite& site, int64_t a, int64_t b, const std::set<int64_t>& sizes) const {
    if (a == b || site.names_a_rank) return true;
    std::vector<int32_t> ranks = {a_.rank, b_.rank};
    std::vector<int64_t> values = {a, b};
    if (a_.rank > b_.rank) {
      std::swap(ranks[0], ranks[1]);
      std::swap(values[0], values[1]);
    }
    return FindRankRule(ranks, values, sizes).has_value();
  }

  const History &a_, &b_;
  Forms forms_a_, forms_b_;
  std::set<std::pair<std::string, std::string>> odd_;  // nodes and paths
};

}  // namespace

Result<std::optional<Divergence>> FindRankDivergence(const History& a, const History& b) {
  if (a.rank == b.rank) return FindDivergence(a, b);
  RankPairComparer comparer(a, b);
  BisectOptions options;
  options.agree = [&](int32_t i, int32_t k) { return comparer.Agree(i, k); };
  options.ignore = [&](const GraphDiff& diff, const Pair& pair, const FieldDiff& field) {
    return comparer.Ignores(diff, pair, field);
  };
  return FindDivergence(a, b, options);
}

}  // namespace strata
