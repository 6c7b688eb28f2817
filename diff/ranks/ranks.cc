#include "diff/ranks/ranks.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "diff/graph/hash.h"
#include "diff/ranks/compare_collectives.h"
#include "diff/ranks/last_snapshots.h"
#include "diff/ranks/rank_form.h"
#include "diff/ranks/rank_rule.h"
#include "diff/ranks/rank_texts.h"

namespace strata {
namespace {

class RankComparer {
 public:
  explicit RankComparer(const std::vector<History>& histories) : histories_(histories) {
    for (size_t i = 0; i < histories.size(); ++i)
      order_.push_back(i);
    std::ranges::sort(order_, {}, [&](size_t i) { return histories[i].rank; });
  }

  Result<RanksReport> Run() {
    STRATA_TRY(std::vector<std::vector<size_t>> groups, GroupByForm());
    for (const std::vector<size_t>& group : groups)
      STRATA_RETURN_IF_ERROR(SplitByConstants(group));
    STRATA_RETURN_IF_ERROR(FindPartings());
    FindCached();
    MakeClasses();
    FindDifferences();
    STRATA_RETURN_IF_ERROR(FindCollectives());
    return std::move(report_);
  }

 private:
  /// Ranks of one class, by index of their histories.
  struct Members {
    std::vector<size_t> histories;
    /// Set when only a constant distinguishes it from others of its form.
    std::optional<RankDifference> apart;
    /// Where it leaves the largest class; none: it is that.
    std::optional<RankDifference> difference;
  };

  Result<const RankForm*> FormOf(const History& history, int32_t snapshot) {
    const std::string& content = history.snapshot(snapshot).content;
    const auto known = forms_.find(content);
    if (known != forms_.end()) return &known->second;
    STRATA_TRY(const LoadedGraph graph, history.load(snapshot));
    return &(forms_[content] = RankFormOf(graph.graph()));
  }

  /// Ranks whose steps left graphs of the same form.
  Result<std::vector<std::vector<size_t>>> GroupByForm() {
    std::map<std::string, std::string> form_of_contents;  // many ranks did exactly the same
    std::map<std::string, std::vector<size_t>> by_form;
    for (size_t i : order_) {
      const History& history = histories_[i];
      std::string contents;
      for (const HistoryStep& step : history.steps)
        contents += StepText(history, step) + history.snapshot(step.after).content + "\n";
      const auto [known, is_new] = form_of_contents.try_emplace(contents);
      if (is_new) {
        for (const HistoryStep& step : history.steps) {
          STRATA_TRY(const RankForm* form, FormOf(history, step.after));
          known->second += StepText(history, step) + ToString(form->hash) + "\n";
        }
      }
      by_form[known->second].push_back(i);
    }
    std::vector<std::vector<size_t>> groups;
    for (auto& [form, group] : by_form)
      groups.push_back(std::move(group));
    return groups;
  }

  static std::string StepText(const History& history, const HistoryStep& step) {
    return fmt::format("{}|{}|{}|", history.GraphOf(step), step.pass, step.pass_index);
  }

  /// Values at the same places of graphs of one form: a rule explains them, or they split the
  /// class.
  Status SplitByConstants(const std::vector<size_t>& group) {
    std::map<std::vector<int64_t>, Members> parts;  // by the values that no rule explains
    std::vector<std::vector<int64_t>> odd(group.size());
    std::optional<RankDifference> apart;
    const History& first = histories_[group[0]];
    for (size_t s = 0; s < first.steps.size() && group.size() > 1; ++s) {
      std::vector<const RankForm*> forms;
      std::set<const RankForm*> distinct;
      for (size_t i : group) {
        STRATA_TRY(const RankForm* form, FormOf(histories_[i], histories_[i].steps[s].after));
        forms.push_back(form);
        distinct.insert(form);
      }
      if (distinct.size() == 1) continue;
      STRATA_RETURN_IF_ERROR(ExplainValues(group, s, forms, odd, apart));
    }
    for (size_t k = 0; k < group.size(); ++k)
      parts[odd[k]].histories.push_back(group[k]);
    const auto largest = std::ranges::max_element(
        parts, {}, [](const auto& part) { return part.second.histories.size(); });
    const auto ref = [&](const Members& members) {
      const History& history = histories_[members.histories[0]];
      const HistoryStep& step = history.steps[static_cast<size_t>(apart->position)];
      return history.snapshot(step.after).ref;
    };
    const std::string ref_most = apart ? ref(largest->second) : std::string();
    for (auto it = parts.begin(); it != parts.end(); ++it) {
      if (it != largest) {
        it->second.apart = apart;
        it->second.apart->ref_most = ref_most;
        it->second.apart->ref_other = ref(it->second);
      }
      classes_.push_back(std::move(it->second));
    }
    return Ok();
  }

  Status ExplainValues(const std::vector<size_t>& group, size_t s,
                       const std::vector<const RankForm*>& forms,
                       std::vector<std::vector<int64_t>>& odd,
                       std::optional<RankDifference>& apart) {
    const History& history = histories_[group[0]];
    const HistoryStep& step = history.steps[s];
    std::vector<int32_t> ranks;
    for (size_t i : group)
      ranks.push_back(histories_[i].rank);
    NoteDevicesAndGroups(ranks, forms, history.GraphOf(step));
    std::vector<RankSite> sites;
    std::set<int64_t> sizes;
    std::vector<int64_t> values(group.size());
    for (size_t site = 0; site < forms[0]->values.size(); ++site) {
      for (size_t k = 0; k < group.size(); ++k)
        values[k] = forms[k]->values[site];
      if (std::ranges::count(values, values[0]) == std::ssize(values)) continue;
      if (sites.empty()) {
        STRATA_TRY(const LoadedGraph graph, history.load(step.after));
        sites = RankSitesOf(graph.graph());
        sizes = SizesOf(graph.graph());
      }
      const RankSite& where = sites[site];
      const std::optional<RankRule> rule = FindRankRule(ranks, values, sizes);
      if (rule || where.names_a_rank) {
        NoteConstant({history.GraphOf(step), where.node, where.path,
                      rule ? rule->text : "another one on each rank"});
        if (where.names_a_rank || rule->exceptions == 0) continue;
      }
      constexpr int64_t kFollows = std::numeric_limits<int64_t>::min();
      for (size_t k = 0; k < group.size(); ++k)
        odd[k].push_back(rule && rule->follows[k] ? kFollows : values[k]);
      if (apart) continue;
      apart.emplace();
      apart->position = static_cast<int32_t>(s);
      apart->pass_index = step.pass_index;
      apart->pass = step.pass;
      apart->graph = history.GraphOf(step);
      apart->node = where.node;
      apart->what = rule ? fmt::format("{}: {} on the others", where.path,
                                       ExceptionsText(ranks, values, *rule))
                         : fmt::format("{}: {}", where.path, ValuesText(ranks, values));
    }
    return Ok();
  }

  void NoteDevicesAndGroups(const std::vector<int32_t>& ranks,
                            const std::vector<const RankForm*>& forms, const std::string& graph) {
    std::vector<int64_t> devices;
    for (const RankForm* form : forms)
      devices.push_back(form->device.value_or(-1));
    if (std::ranges::count(devices, devices[0]) != std::ssize(devices)) {
      NoteConstant({graph, "", "device", RuleText(ranks, devices)});
    }
    for (size_t g = 0; g < forms[0]->groups.size(); ++g) {
      std::set<std::string> names;
      for (const RankForm* form : forms)
        names.insert(form->groups[g]);
      if (names.size() == 1) continue;
      NoteConstant({graph, "", fmt::format("group '{}'", forms[0]->groups[g]),
                    fmt::format("one of {}", fmt::join(names, ", "))});
    }
  }

  void NoteConstant(RankConstant constant) {
    if (noted_.emplace(constant.graph, constant.node, constant.path).second)
      report_.constants.push_back(std::move(constant));
  }

  /// Of ranks of one class: where both have a step, not even constants differ.
  bool SameConstants(const History& a, const History& b) const {
    return std::ranges::all_of(AlignSteps(a, b), [&](const StepPair& pair) {
      if (pair.a < 0) return MayLack(a, b, b.steps[static_cast<size_t>(pair.b)]);
      const HistoryStep& step = a.steps[static_cast<size_t>(pair.a)];
      if (pair.b < 0) return MayLack(b, a, step);
      return SameConstants(a.snapshot(step.after).content,
                           b.snapshot(b.steps[static_cast<size_t>(pair.b)].after).content);
    });
  }

  void FindCached() {
    for (size_t i : order_) {
      const bool is_cached = std::ranges::any_of(histories_, [&](const History& other) {
        return !std::ranges::includes(other.cached, histories_[i].cached);
      });
      if (is_cached) report_.cached.push_back(histories_[i].rank);
    }
  }

  /// Of graphs of one class.
  bool SameConstants(const std::string& content_a, const std::string& content_b) const {
    if (content_a == content_b) return true;
    const auto a = forms_.find(content_a), b = forms_.find(content_b);
    return a != forms_.end() && b != forms_.end() && a->second.values == b->second.values &&
           a->second.device == b->second.device && a->second.groups == b->second.groups;
  }

  void MakeClasses() {
    std::ranges::sort(classes_, {}, [&](const Members& members) {
      return histories_[members.histories[0]].rank;
    });
    for (const Members& members : classes_) {
      RankClass& rank_class = report_.classes[report_.classes.Add({})];
      const History& first = histories_[members.histories[0]];
      rank_class.ref = first.ref;
      for (size_t i : members.histories) {
        const History& history = histories_[i];
        for (int32_t rank = 0; rank < history.num_ranks; ++rank)
          rank_class.ranks.push_back(history.rank + rank);
        rank_class.identical &= SameConstants(first, history);
      }
    }
    const auto largest =
        std::ranges::find_if(classes_, [](const Members& members) { return !members.difference; });
    report_.largest = {static_cast<int32_t>(largest - classes_.begin())};
  }

  /// Of each class against the largest one. Ranks whose passes have other names, or come in another
  /// number, and leave the same graphs, are not a separate class.
  Status FindPartings() {
    // Of classes of one size that of the lowest rank.
    std::ranges::sort(classes_, std::greater<>(), [&](const Members& members) {
      return std::pair(members.histories.size(), -histories_[members.histories[0]].rank);
    });
    const History& most = histories_[classes_[0].histories[0]];
    BisectOptions options;
    options.identity = [this](const History& history, int32_t snapshot) -> Result<std::string> {
      STRATA_TRY(const RankForm* form, FormOf(history, snapshot));
      return ToString(form->hash);
    };
    options.ignore = MayDifferByRank;
    for (size_t c = 1; c < classes_.size(); ++c) {
      Members& members = classes_[c];
      const History& other = histories_[members.histories[0]];
      STRATA_TRY(const std::optional<Divergence> divergence, FindDivergence(most, other, options));
      if (divergence) {
        members.difference = FromDivergence(*divergence, most, other);
      } else if (members.apart || classes_[0].apart) {
        members.difference = members.apart ? members.apart : classes_[0].apart;
      } else {
        std::vector<size_t>& all = classes_[0].histories;
        all.insert(all.end(), members.histories.begin(), members.histories.end());
        members.histories.clear();
      }
    }
    std::erase_if(classes_, [](const Members& members) { return members.histories.empty(); });
    std::ranges::sort(classes_[0].histories, {}, [&](size_t i) { return histories_[i].rank; });
    return Ok();
  }

  void FindDifferences() {
    for (size_t c = 0; c < classes_.size(); ++c) {
      if (!classes_[c].difference) continue;
      report_.differences.push_back(*classes_[c].difference);
      report_.differences.back().rank_class = {static_cast<int32_t>(c)};
    }
    std::ranges::stable_sort(report_.differences, {}, &RankDifference::position);
  }

  static RankDifference FromDivergence(const Divergence& divergence, const History& most,
                                       const History& other) {
    RankDifference difference;
    difference.position = divergence.position;
    const bool only_other = divergence.steps.a < 0;
    const History& owner = only_other ? other : most;
    const HistoryStep& step =
        owner.steps[static_cast<size_t>(only_other ? divergence.steps.b : divergence.steps.a)];
    difference.pass_index = step.pass_index;
    difference.pass = step.pass;
    difference.graph = divergence.graph;
    difference.node = divergence.node();
    difference.what = divergence.what;
    if (divergence.snapshot_a >= 0) difference.ref_most = most.snapshot(divergence.snapshot_a).ref;
    if (divergence.snapshot_b >= 0)
      difference.ref_other = other.snapshot(divergence.snapshot_b).ref;
    return difference;
  }

  /// Of the graphs as they are in the end: what runs, or what is nearest to it.
  Status FindCollectives() {
    const History* cached = nullptr;
    if (!report_.cached.empty())
      cached = &*std::ranges::max_element(histories_, {},
                                          [](const History& h) { return h.cached.size(); });
    std::vector<std::string> graphs;
    std::map<std::string, std::vector<std::pair<size_t, int32_t>>> users;  // history, snapshot
    for (size_t i : order_) {
      for (const auto& [name, snapshot] : LastSnapshots(histories_[i], cached)) {
        auto [found, is_new] = users.try_emplace(name);
        if (is_new) graphs.push_back(name);
        found->second.emplace_back(i, snapshot);
      }
    }
    using List = std::shared_ptr<const std::vector<Collective>>;
    std::map<std::string, List> known;  // by content
    for (const std::string& graph : graphs) {
      std::vector<RankCollectives> ranks;
      for (const auto& [i, snapshot] : users[graph]) {
        const History& history = histories_[i];
        List& list = known[history.snapshot(snapshot).content];
        if (list == nullptr) {
          STRATA_TRY(const LoadedGraph loaded, history.load(snapshot));
          list = std::make_shared<const std::vector<Collective>>(CollectivesOf(loaded.graph()));
        }
        ranks.push_back({history.rank, list});
      }
      for (CollectiveMismatch& mismatch : CompareCollectives(ranks))
        report_.collectives.push_back({graph, std::move(mismatch)});
    }
    return Ok();
  }

  const std::vector<History>& histories_;
  std::vector<size_t> order_;              // histories by rank
  std::map<std::string, RankForm> forms_;  // by content
  std::set<std::tuple<std::string, std::string, std::string>> noted_;
  std::vector<Members> classes_;
  RanksReport report_;
};

}  // namespace

std::vector<int32_t> RanksReport::FirstRanks() const {
  const RankDifference& first = differences.front();
  std::vector<int32_t> ranks;
  for (const RankDifference& other : differences) {
    if (other.position != first.position || other.node != first.node) continue;
    const std::vector<int32_t>& more = classes[other.rank_class].ranks;
    ranks.insert(ranks.end(), more.begin(), more.end());
  }
  std::ranges::sort(ranks);
  return ranks;
}

Result<RanksReport> CompareRanks(const std::vector<History>& histories) {
  return RankComparer(histories).Run();
}

}  // namespace strata
