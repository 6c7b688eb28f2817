#include "diff/ranks/memberships.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace strata {
namespace {

using Kind = CollectiveMismatch::Kind;

class MembershipChecker {
 public:
  explicit MembershipChecker(const std::vector<RankCollectives>& ranks) : ranks_(ranks) {
    for (const RankCollectives& rank : ranks) {
      given_.insert(rank.rank);
      for (const Collective& collective : *rank.collectives) {
        if (collective.peer >= 0) continue;
        Group& group = groups_[collective.group];
        group.users.insert(rank.rank);
        group.size = std::max(group.size, collective.group_size);
        group.members.insert(collective.members.begin(), collective.members.end());
        if (group.first == nullptr) group.first = &collective;
      }
    }
  }

  std::vector<CollectiveMismatch> Run() {
    CompareNames();
    for (const auto& [name, group] : groups_) {
      if (!group.members.empty()) {
        CheckListed(name, group);
      } else if (!group.has_siblings) {
        CheckSize(name, group);
      }
    }
    return std::move(mismatches_);
  }

 private:
  struct Group {
    std::set<int32_t> users, members;   // ranks that run its collectives; that it lists
    int64_t size = 0;                   // as its collectives say
    const Collective* first = nullptr;  // of its lowest user
    bool has_siblings = false;          // other ranks use another one in its place
  };

  /// Ranks whose collectives are equal but for groups: by place, which names they use.
  void CompareNames() {
    std::map<std::string, std::vector<const RankCollectives*>> alike;
    for (const RankCollectives& rank : ranks_) {
      std::string program;
      for (const Collective& c : *rank.collectives)
        program += fmt::format("{}|{}|{}|{}|{}\n", c.op, c.args, c.dtype, c.shape, c.peer >= 0);
      alike[program].push_back(&rank);
    }
    std::set<std::string> told;
    for (const auto& [program, ranks] : alike) {
      for (size_t i = 0; i < ranks[0]->collectives->size(); ++i) {
        std::map<std::string, std::vector<int32_t>> users;
        for (const RankCollectives* rank : ranks) {
          const Collective& collective = (*rank->collectives)[i];
          if (collective.peer < 0) users[collective.group].push_back(rank->rank);
        }
        if (users.size() > 1) CompareSiblings(users, i, told);
      }
    }
  }

  void CompareSiblings(const std::map<std::string, std::vector<int32_t>>& users, size_t index,
                       std::set<std::string>& told) {
    const auto usual =
        std::ranges::max_element(users, {}, [](const auto& entry) { return entry.second.size(); });
    for (const auto& [name, ranks] : users) {
      Group& group = groups_[name];
      group.has_siblings = true;
      const bool is_odd = ranks.size() < usual->second.size() &&
                          group.users.size() != groups_[usual->first].users.size();
      if (!is_odd || !told.insert(name).second) continue;
      const Collective& collective = CollectiveOf(ranks[0], index);
      Add(Kind::kGroup, name, ranks, collective,
          fmt::format("group: {} in '{}', on the other ranks in '{}'", collective.Text(), name,
                      usual->first));
    }
  }

  const Collective& CollectiveOf(int32_t rank, size_t index) const {
    const auto found = std::ranges::find(ranks_, rank, &RankCollectives::rank);
    return (*found->collectives)[index];
  }

  void CheckListed(const std::string& name, const Group& group) {
    std::vector<int32_t> absent;
    for (int32_t rank : group.members) {
      if (given_.contains(rank) && !group.users.contains(rank)) absent.push_back(rank);
    }
    if (!absent.empty()) AddMissing(name, group, absent);
  }

  void CheckSize(const std::string& name, const Group& group) {
    const auto count = static_cast<int64_t>(given_.size());
    const bool has_gaps = count != *given_.rbegin() + 1;
    if (group.size < 2 || group.size > count || has_gaps) return;
    const auto used = static_cast<int64_t>(group.users.size());
    const int64_t lacking = (group.size - used % group.size) % group.size;
    if (lacking == 0) return;
    std::vector<int32_t> absent;
    std::ranges::set_difference(given_, group.users, std::back_inserter(absent));
    if (std::ssize(absent) == lacking) {
      AddMissing(name, group, absent);
      return;
    }
    const std::vector<int32_t> users(group.users.begin(), group.users.end());
    Add(Kind::kMissing, name, users, *group.first,
        fmt::format("missing on other ranks: {}: its group has {} ranks, {} run{} it",
                    group.first->Text(), group.size, used, used == 1 ? "s" : ""));
  }

  void AddMissing(const std::string& name, const Group& group, std::vector<int32_t> absent) {
    Add(Kind::kMissing, name, std::move(absent), *group.first,
        fmt::format("missing: {} and whatever else its group runs", group.first->Text()));
  }

  void Add(Kind kind, std::string group, std::vector<int32_t> ranks, const Collective& collective,
           std::string what) {
    mismatches_.push_back({kind, std::move(group), 0, std::move(ranks), collective.node,
                           collective.Text(), std::move(what)});
  }

  const std::vector<RankCollectives>& ranks_;
  std::set<int32_t> given_;
  std::map<std::string, Group> groups_;
  std::vector<CollectiveMismatch> mismatches_;
};

}  // namespace

std::vector<CollectiveMismatch> CheckMemberships(const std::vector<RankCollectives>& ranks) {
  return MembershipChecker(ranks).Run();
}

}  // namespace strata
