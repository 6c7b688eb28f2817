#include "diff/ranks/rank_programs.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "diff/ranks/rank_form.h"
#include "diff/ranks/rank_rule.h"

namespace strata {
namespace {

/// A graph's form, and what explains its values.
struct KnownForm {
  RankForm form;
  std::vector<RankSite> sites;
  std::set<int64_t> sizes;
};

/// The values of graphs of one form that no rule explains, by graph.
std::vector<std::vector<int64_t>> OddValues(const std::vector<int32_t>& ranks,
                                            const std::vector<const KnownForm*>& forms) {
  constexpr int64_t kFollows = std::numeric_limits<int64_t>::min();
  std::vector<std::vector<int64_t>> odd(ranks.size());
  std::vector<int64_t> values(ranks.size());
  for (size_t site = 0; site < forms[0]->form.values.size(); ++site) {
    for (size_t k = 0; k < ranks.size(); ++k)
      values[k] = forms[k]->form.values[site];
    const bool are_equal = std::ranges::count(values, values[0]) == std::ssize(values);
    if (are_equal || forms[0]->sites[site].names_a_rank) continue;
    const std::optional<RankRule> rule = FindRankRule(ranks, values, forms[0]->sizes);
    for (size_t k = 0; k < ranks.size(); ++k)
      odd[k].push_back(rule && rule->follows[k] ? kFollows : values[k]);
  }
  return odd;
}

}  // namespace

Result<std::vector<size_t>> FindRankPrograms(const std::vector<RankGraph>& graphs) {
  std::map<Fingerprint, KnownForm> known;
  std::map<Fingerprint, std::vector<size_t>> groups;  // graphs by the hash of their form
  for (size_t i = 0; i < graphs.size(); ++i) {
    const auto [at, is_new] = known.try_emplace(graphs[i].fingerprint);
    if (is_new) {
      STRATA_TRY(const LoadedGraph loaded, graphs[i].load());
      at->second = {RankFormOf(loaded.graph()), RankSitesOf(loaded.graph()),
                    SizesOf(loaded.graph())};
    }
    groups[at->second.form.hash].push_back(i);
  }
  std::vector<size_t> programs(graphs.size());
  for (const auto& [hash, group] : groups) {
    std::vector<int32_t> ranks;
    std::vector<const KnownForm*> forms;
    for (const size_t i : group) {
      ranks.push_back(graphs[i].rank);
      forms.push_back(&known.at(graphs[i].fingerprint));
    }
    const std::vector<std::vector<int64_t>> odd = OddValues(ranks, forms);
    std::map<std::vector<int64_t>, size_t> first;
    for (size_t k = 0; k < group.size(); ++k)
      programs[group[k]] = first.try_emplace(odd[k], group[k]).first->second;
  }
  return programs;
}

}  // namespace strata
