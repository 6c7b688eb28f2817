#include "diff/ranks/collectives.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "diff/graph/arguments.h"
#include "diff/graph/hash.h"
#include "diff/graph/listing.h"
#include "diff/graph/sequence.h"
#include "diff/graph/type_text.h"
#include "diff/ranks/memberships.h"
#include "ir/module.h"
#include "ir/ops.h"

namespace strata {
namespace {

bool Contains(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}

bool IsWait(std::string_view op) {
  return BaseName(op).starts_with("wait_tensor") || BaseName(op) == "wait";
}

bool IsSend(std::string_view op) {
  return Contains(BaseName(op), "send");
}
bool IsReceive(std::string_view op) {
  return Contains(BaseName(op), "recv");
}

bool IsLaunch(std::string_view op) {
  if (TraitsOf(op).collective) return true;
  const std::string_view base = BaseName(op);
  const bool is_p2p = IsSend(op) || IsReceive(op);
  return (is_p2p || Contains(op.substr(0, op.size() - base.size()), "c10d")) && !IsWait(op);
}

bool IsNumber(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos &&
         text.size() < 10;
}

/// Reads one launch.
Collective ReadCollective(const Listing& listing, EntityId id) {
  const Graph& graph = listing.graph(id);
  Collective collective;
  collective.node = listing.name(id);
  collective.op = listing.target(id);
  std::vector<std::string> literals, dtypes, shapes;
  std::vector<std::string> ranks;
  for (const Leaf& leaf : LeavesOf(listing, id)) {
    if (leaf.operand.valid()) {
      const TypeText type = TypeTextOf(listing, leaf.operand);
      if (type.dtype) dtypes.push_back(type.dtype->text);
      if (type.shape) shapes.push_back(type.shape->text);
      continue;
    }
    literals.push_back(leaf.text);
    // The older operators list the group's ranks.
    if (leaf.path.find("][") != std::string::npos) ranks.push_back(leaf.text);
  }
  // The group's name is the last word.
  const auto name = std::ranges::find_if(literals.rbegin(), literals.rend(), [](const auto& text) {
    return text.starts_with('\'') || text.starts_with('"');
  });
  const bool listed = collective.op.starts_with("c10d_functional.");
  if (listed && !ranks.empty()) {
    collective.group = fmt::format("[{}]", fmt::join(ranks, ", "));
    for (const std::string& rank : ranks) {
      if (IsNumber(rank)) collective.members.push_back(std::stoi(rank));
    }
  } else if (name != literals.rend() && name->size() >= 2) {
    collective.group = name->substr(1, name->size() - 2);
    literals.erase(std::next(name).base());
  }
  const auto number = std::ranges::find_if(literals, IsNumber);
  if (number != literals.end()) {
    const bool is_p2p = IsSend(collective.op) || IsReceive(collective.op);
    const bool sized = Contains(collective.op, "gather") || Contains(collective.op, "scatter");
    if (is_p2p) collective.peer = std::stoll(*number);
    if (sized) collective.group_size = std::stoll(*number);
  }
  collective.args = fmt::format("{}", fmt::join(literals, ", "));
  collective.dtype = fmt::format("{}", fmt::join(dtypes, " "));
  collective.shape = fmt::format("{}", fmt::join(shapes, " "));
  const ValueId value = listing.value(id);
  if (value.valid()) {
    for (const Use use : graph.uses(value))
      collective.waited |=
          IsWait(graph.op(use.user)) || graph.node(use.user).kind == NodeKind::kOutput;
  } else {
    // Of several results the first tells for all.
    const ValueId first = graph.result(listing[id].node);
    for (const Use use : graph.uses(first))
      collective.waited |= IsWait(graph.op(use.user));
  }
  return collective;
}

class Collector {
 public:
  explicit Collector(const Graph& graph) : listing_(graph) {
    for (size_t i = 1; i < listing_.scopes().size(); ++i)
      bodies_[listing_.scopes()[i].referred_by.index].push_back(i);
  }

  std::vector<Collective> Run() {
    AddScope(0);
    return std::move(collectives_);
  }

 private:
  void AddScope(size_t index) {
    const Listing::Scope& scope = listing_.scopes()[index];
    for (EntityId id{scope.begin}; id.index < scope.end; ++id.index) {
      const Entity& entity = listing_[id];
      const bool is_call = entity.kind == EntityKind::kCompute && !entity.element.valid();
      if (is_call && IsLaunch(listing_.target(id)))
        collectives_.push_back(ReadCollective(listing_, id));
      if (const auto bodies = bodies_.find(id.index); bodies != bodies_.end()) {
        for (size_t body : bodies->second)
          AddScope(body);
      }
    }
  }

  const Listing listing_;
  std::map<int32_t, std::vector<size_t>> bodies_;
  std::vector<Collective> collectives_;
};

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
        Add(Kind::kOrder, std::min(i, j), other, collective.node,
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
      Add(kind, i, other, wrong.node,
          fmt::format("{}: {} {}, on the other ranks {}", name, wrong.Text(), is, should));
    };
    if (right.op != wrong.op) {
      Add(Kind::kOp, i, other, wrong.node,
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
    Add(Kind::kMissing, i, other, right.node, fmt::format("missing: {}", right.Text()));
  }

  void Extra(const Sequence& other, int32_t j) {
    const Collective& wrong = *other.members[static_cast<size_t>(j)];
    Add(Kind::kExtra, j, other, wrong.node,
        fmt::format("missing on the other ranks: {}", wrong.Text()));
  }

  void Add(Kind kind, int32_t index, const Sequence& other, std::string node, std::string what) {
    out_.push_back({kind, group_, index, other.ranks, std::move(node), std::move(what)});
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
      const std::string text = AfterColon(mismatches_[i].what);
      const auto missing = std::ranges::find_if(mismatches_, [&](const CollectiveMismatch& other) {
        return other.kind == Kind::kMissing && other.group != mismatches_[i].group &&
               other.ranks == mismatches_[i].ranks && AfterColon(other.what) == text;
      });
      if (missing == mismatches_.end()) continue;
      missing->kind = Kind::kGroup;
      missing->node = mismatches_[i].node;
      missing->what = fmt::format("group: {} in '{}', on the other ranks in '{}'", text,
                                  mismatches_[i].group, missing->group);
      mismatches_.erase(mismatches_.begin() + static_cast<std::ptrdiff_t>(i--));
    }
  }
  /// A wrong group is told once: who uses it is an extra member of that one.
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
  static std::string AfterColon(const std::string& what) {
    return what.substr(std::min(what.find(": ") + 2, what.size()));
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
      const auto add = [&](size_t index, std::string node, std::string what) {
        mismatches_.push_back({CollectiveMismatch::Kind::kPeer,
                               fmt::format("{} to {}", from, to),
                               static_cast<int32_t>(index),
                               {from, to},
                               std::move(node),
                               std::move(what)});
      };
      size_t i = 0;
      for (; i < both; ++i) {
        const bool known_types = !sends[i]->shape.empty() && !receives[i]->shape.empty();
        if (!known_types ||
            (sends[i]->shape == receives[i]->shape && sends[i]->dtype == receives[i]->dtype)) {
          continue;
        }
        add(i, sends[i]->node,
            fmt::format("rank {} sends {}, rank {} receives {}", from, sends[i]->Text(), to,
                        receives[i]->Text()));
        break;  // what follows is shifted
      }
      if (i == both && sends.size() > both)
        add(both, sends[both]->node,
            fmt::format("missing: rank {} does not receive {}", to, sends[both]->Text()));
      if (i == both && receives.size() > both)
        add(both, receives[both]->node,
            fmt::format("missing: rank {} does not send {}", from, receives[both]->Text()));
    }
  }

  const std::vector<RankCollectives>& ranks_;
  std::map<std::pair<std::string, const std::vector<Collective>*>, Sequence> cache_;
  std::vector<CollectiveMismatch> mismatches_;
};

}  // namespace

std::string Collective::Text() const {
  std::string text(BaseName(op));
  if (!dtype.empty() || !shape.empty()) text += fmt::format(" {}{}", dtype, shape);
  return text;
}

bool Collective::uneven() const {
  return Contains(op, "all_to_all");
}

std::string_view ToString(CollectiveMismatch::Kind kind) {
  static constexpr std::string_view kNames[] = {"op",    "group", "shape", "dtype", "missing",
                                                "extra", "order", "wait",  "peer"};
  return kNames[static_cast<size_t>(kind)];
}

std::vector<Collective> CollectivesOf(const Graph& graph) {
  return Collector(graph).Run();
}

std::vector<CollectiveMismatch> CompareCollectives(const std::vector<RankCollectives>& ranks) {
  return Comparer(ranks).Run();
}

}  // namespace strata
