#include "diff/ranks/compare_collectives.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "diff/graph/hash.h"
#include "diff/graph/sequence.h"
#include "diff/ranks/memberships.h"

namespace strata {
namespace {

/// What must be equal on all ranks of a group.
std::string SignatureOf(const Collective& c) {
  return fmt::format("{}|{}|{}|{}|{}", c.op, c.uneven() ? "" : c.args, c.dtype,
                     c.uneven() ? "" : c.shape, c.waited);
}

/// The collectives of one group on ranks that run the same.
struct Sequence {
  std::vector<const Collective*> members;
  std::vector<uint64_t> signatures;
  std::vector<int32_t> ranks;
};

class GroupComparer {
 public:
  GroupComparer(std::string group, std::vector<CollectiveMismatch>& out)
      : group_(std::move(group)), out_(out) {}

  /// `everywhere`: how many ranks run a sequence, those of other groups of the name included.
  void Run(const std::vector<const Sequence*>& sequences,
           const std::map<std::vector<uint64_t>, size_t>& everywhere) {
    if (sequences.size() < 2) return;
    // What most ranks run is right; among equals, what the first rank runs.
    const Sequence* most = *std::ranges::max_element(sequences, {}, [&](const Sequence* sequence) {
      return std::tuple(sequence->ranks.size(), everywhere.at(sequence->signatures),
                        -sequence->ranks[0]);
    });
    for (const Sequence* other : sequences) {
      if (other != most) Compare(*most, *other);
    }
  }

 private:
  using Kind = CollectiveMismatch::Kind;

  void Compare(const Sequence& most, const Sequence& other) {
    std::vector<int32_t> lacking, extra;  // indices that have no partner
    size_t i = 0, j = 0;
    auto pairs = CommonSubsequence(most.signatures, other.signatures);
    pairs.emplace_back(most.members.size(), other.members.size());
    for (const auto& [end_i, end_j] : pairs) {
      // What stands at one place on both sides is one collective that differs.
      std::vector<int32_t> here, there;
      for (; i < static_cast<size_t>(end_i); ++i)
        here.push_back(static_cast<int32_t>(i));
      for (; j < static_cast<size_t>(end_j); ++j)
        there.push_back(static_cast<int32_t>(j));
      ++i, ++j;
      gaps_.push_back({std::move(here), std::move(there)});
    }
    TakeMoved(most, other);
    for (const Gap& gap : gaps_) {
      const size_t both = std::min(gap.here.size(), gap.there.size());
      for (size_t k = 0; k < both; ++k)
        Different(most, other, gap.here[k], gap.there[k]);
      for (size_t k = both; k < gap.here.size(); ++k)
        Missing(most, other, gap.here[k]);
      for (size_t k = both; k < gap.there.size(); ++k)
        Extra(other, gap.there[k]);
    }
    gaps_.clear();
  }

  struct Gap {
    std::vector<int32_t> here, there;
  };

  /// What is missing at one place and there at another one has changed its order.
  void TakeMoved(const Sequence& most, const Sequence& other) {
    std::map<uint64_t, std::vector<std::pair<size_t, int32_t>>> there;  // by signature: gap, index
    for (size_t g = 0; g < gaps_.size(); ++g) {
      for (int32_t j : gaps_[g].there)
        there[other.signatures[static_cast<size_t>(j)]].emplace_back(g, j);
    }
    for (Gap& gap : gaps_) {
      std::erase_if(gap.here, [&](int32_t i) {
        const auto found = there.find(most.signatures[static_cast<size_t>(i)]);
        if (found == there.end() || found->second.empty()) return false;
        const auto [g, j] = found->second.front();
        found->second.erase(found->second.begin());
        std::erase(gaps_[g].there, j);
        const Collective& collective = *other.members[static_cast<size_t>(j)];
        Add(Kind::kOrder, std::min(i, j), other, collective,
            fmt::format("order: {} comes {}, on the other ranks {}", collective.Text(), Nth(j),
                        Nth(i)));
        return true;
      });
    }
  }

  static std::string Nth(int32_t index) { return fmt::format("at {}", index); }

  void Different(const Sequence& most, const Sequence& other, int32_t i, int32_t j) {
    const Collective& right = *most.members[static_cast<size_t>(i)];
    const Collective& wrong = *other.members[static_cast<size_t>(j)];
    const auto add = [&](Kind kind, std::string_view name, std::string_view is,
                         std::string_view should) {
      Add(kind, i, other, wrong,
          fmt::format("{}: {} {}, on the other ranks {}", name, wrong.Text(), is, should));
    };
    if (right.op != wrong.op) {
      Add(Kind::kOp, i, other, wrong,
          fmt::format("op: {}, on the other ranks {}", wrong.Text(), right.Text()));
    } else if (right.dtype != wrong.dtype) {
      add(Kind::kDType, "dtype", wrong.dtype, right.dtype);
    } else if (right.shape != wrong.shape && !right.uneven()) {
      add(Kind::kShape, "shape", wrong.shape, right.shape);
    } else if (right.waited != wrong.waited) {
      add(Kind::kWait, "wait", wrong.waited ? "is waited for" : "is not waited for",
          right.waited ? "it is" : "it is not");
    } else {
      add(Kind::kOp, "arguments", wrong.args, right.args);
    }
  }

  void Missing(const Sequence& most, const Sequence& other, int32_t i) {
    const Collective& right = *most.members[static_cast<size_t>(i)];
    Add(Kind::kMissing, i, other, right, fmt::format("missing: {}", right.Text()));
  }

  void Extra(const Sequence& other, int32_t j) {
    const Collective& wrong = *other.members[static_cast<size_t>(j)];
    Add(Kind::kExtra, j, other, wrong, fmt::format("missing on the other ranks: {}", wrong.Text()));
  }

  void Add(Kind kind, int32_t index, const Sequence& other, const Collective& collective,
           std::string what) {
    out_.push_back(
        {kind, group_, index, other.ranks, collective.node, collective.Text(), std::move(what)});
  }

  const std::string group_;
  std::vector<CollectiveMismatch>& out_;
  std::vector<Gap> gaps_;
};

class Comparer {
 public:
  explicit Comparer(const std::vector<RankCollectives>& ranks) : ranks_(ranks) {}

  std::vector<CollectiveMismatch> Run() {
    std::map<std::string, std::vector<const RankCollectives*>> users;
    std::map<const std::vector<Collective>*, std::set<std::string>> groups_of;
    for (const RankCollectives& rank : ranks_) {
      auto [groups, is_new] = groups_of.try_emplace(rank.collectives.get());
      if (is_new) {
        for (const Collective& collective : *rank.collectives) {
          if (collective.peer < 0) groups->second.insert(collective.group);
        }
      }
      for (const std::string& group : groups->second)
        users[group].push_back(&rank);
    }
    for (const auto& [group, members] : users)
      CompareGroup(group, members);
    JoinGroupChanges();
    AddMemberships();
    ComparePeers();
    std::ranges::stable_sort(mismatches_, [](const auto& a, const auto& b) {
      return std::tie(a.group, a.index, a.ranks) < std::tie(b.group, b.index, b.ranks);
    });
    return std::move(mismatches_);
  }

 private:
  const Sequence& SequenceOf(const std::string& group, const RankCollectives& rank) {
    Sequence& sequence = cache_[{group, rank.collectives.get()}];
    if (!sequence.members.empty()) return sequence;
    for (const Collective& collective : *rank.collectives) {
      if (collective.group != group || collective.peer >= 0) continue;
      sequence.members.push_back(&collective);
      sequence.signatures.push_back(HashText(SignatureOf(collective)));
    }
    return sequence;
  }

  /// Ranks that run the same, each sequence once.
  std::vector<Sequence> Distinct(const std::string& group,
                                 const std::vector<const RankCollectives*>& members) {
    std::vector<Sequence> distinct;
    std::map<std::vector<uint64_t>, size_t> index;
    for (const RankCollectives* rank : members) {
      const Sequence& sequence = SequenceOf(group, *rank);
      const auto [found, is_new] = index.try_emplace(sequence.signatures, distinct.size());
      if (is_new) distinct.push_back(sequence);
      distinct[found->second].ranks.push_back(rank->rank);
    }
    return distinct;
  }

  void CompareGroup(const std::string& group, const std::vector<const RankCollectives*>& members) {
    const std::vector<Sequence> all = Distinct(group, members);
    if (all.size() < 2) return;
    int64_t size = 0;
    for (const Sequence& sequence : all) {
      for (const Collective* collective : sequence.members)
        size = std::max(size, collective->group_size);
    }
    std::map<std::vector<uint64_t>, size_t> everywhere;
    for (const Sequence& sequence : all)
      everywhere[sequence.signatures] = sequence.ranks.size();
    std::vector<CollectiveMismatch> best;
    bool have_best = false;
    const auto consider = [&](const auto& part_of) {
      std::map<int32_t, std::vector<const RankCollectives*>> parts;
      for (const RankCollectives* rank : members)
        parts[part_of(rank->rank)].push_back(rank);
      std::vector<CollectiveMismatch> found;
      for (const auto& [unused, part] : parts) {
        const std::vector<Sequence> distinct = Distinct(group, part);
        std::vector<const Sequence*> sequences;
        for (const Sequence& sequence : distinct)
          sequences.push_back(&sequence);
        GroupComparer(group, found).Run(sequences, everywhere);
      }
      if (!have_best || found.size() < best.size()) best = std::move(found);
      have_best = true;
    };
    const auto count = static_cast<int64_t>(members.size());
    if (size < 2 || size >= count) {
      consider([](int32_t) { return 0; });
    } else {
      const auto n = static_cast<int32_t>(size);
      for (int32_t stride = 1; stride * size <= count; ++stride) {
        if (count % (stride * size) != 0) continue;
        consider([&](int32_t rank) { return rank / (stride * n) * stride + rank % stride; });
      }
      if (!have_best) consider([](int32_t) { return 0; });
    }
    mismatches_.insert(mismatches_.end(), best.begin(), best.end());
  }

  /// A collective that is missing in one group and extra in another one, on the same ranks, has
  /// the wrong group.
  void JoinGroupChanges() {
    using Kind = CollectiveMismatch::Kind;
    for (size_t i = 0; i < mismatches_.size(); ++i) {
      if (mismatches_[i].kind != Kind::kExtra) continue;
      const auto missing = std::ranges::find_if(mismatches_, [&](const CollectiveMismatch& other) {
        return other.kind == Kind::kMissing && other.group != mismatches_[i].group &&
               other.ranks == mismatches_[i].ranks && other.collective == mismatches_[i].collective;
      });
      if (missing == mismatches_.end()) continue;
      missing->kind = Kind::kGroup;
      missing->node = mismatches_[i].node;
      missing->what = fmt::format("group: {} in '{}', on the other ranks in '{}'",
                                  missing->collective, mismatches_[i].group, missing->group);
      mismatches_.erase(mismatches_.begin() + static_cast<std::ptrdiff_t>(i--));
    }
  }

  /// A wrong group is reported once: who uses it is an extra member of that one.
  void AddMemberships() {
    using Kind = CollectiveMismatch::Kind;
    for (CollectiveMismatch& found : CheckMemberships(ranks_)) {
      std::erase_if(mismatches_, [&](const CollectiveMismatch& other) {
        return found.kind == Kind::kGroup && other.kind == Kind::kExtra &&
               other.group == found.group && other.ranks == found.ranks;
      });
      const bool is_told = std::ranges::any_of(mismatches_, [&](const CollectiveMismatch& other) {
        return other.kind == found.kind && other.node == found.node && other.ranks == found.ranks;
      });
      if (!is_told) mismatches_.push_back(std::move(found));
    }
  }

  /// Sends of one rank to another, and what that one receives from it.
  void ComparePeers() {
    std::map<std::pair<int32_t, int32_t>, std::array<std::vector<const Collective*>, 2>> channels;
    std::set<int32_t> known;
    for (const RankCollectives& rank : ranks_) {
      known.insert(rank.rank);
      for (const Collective& collective : *rank.collectives) {
        if (collective.peer < 0) continue;
        const auto peer = static_cast<int32_t>(collective.peer);
        const bool sends = IsSend(collective.op);
        channels[sends ? std::pair(rank.rank, peer) : std::pair(peer, rank.rank)][sends ? 0 : 1]
            .push_back(&collective);
      }
    }
    for (const auto& [ends, channel] : channels) {
      const auto [from, to] = ends;
      if (!known.contains(from) || !known.contains(to)) continue;
      const auto& [sends, receives] = channel;
      const size_t both = std::min(sends.size(), receives.size());
      const auto add = [&](size_t index, const Collective& collective, std::string what) {
        mismatches_.push_back({CollectiveMismatch::Kind::kPeer,
                               fmt::format("{} to {}", from, to),
                               static_cast<int32_t>(index),
                               {from, to},
                               collective.node,
                               collective.Text(),
                               std::move(what)});
      };
      size_t i = 0;
      for (; i < both; ++i) {
        const bool known_types = !sends[i]->shape.empty() && !receives[i]->shape.empty();
        if (!known_types ||
            (sends[i]->shape == receives[i]->shape && sends[i]->dtype == receives[i]->dtype)) {
          continue;
        }
        add(i, *sends[i],
            fmt::format("rank {} sends {}, rank {} receives {}", from, sends[i]->Text(), to,
                        receives[i]->Text()));
        break;  // what follows is shifted
      }
      if (i == both && sends.size() > both)
        add(both, *sends[both],
            fmt::format("missing: rank {} does not receive {}", to, sends[both]->Text()));
      if (i == both && receives.size() > both)
        add(both, *receives[both],
            fmt::format("missing: rank {} does not send {}", from, receives[both]->Text()));
    }
  }

  const std::vector<RankCollectives>& ranks_;
  std::map<std::pair<std::string, const std::vector<Collective>*>, Sequence> cache_;
  std::vector<CollectiveMismatch> mismatches_;
};

}  // namespace

std::vector<CollectiveMismatch> CompareCollectives(const std::vector<RankCollectives>& ranks) {
  return Comparer(ranks).Run();
}

}  // namespace strata
