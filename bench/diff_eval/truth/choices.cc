#include "bench/diff_eval/truth/choices.h"

#include <algorithm>
#include <compare>

namespace strata::bench {
namespace {

using Partners = std::vector<int32_t>;

size_t At(int32_t i) {
  return static_cast<size_t>(i);
}

Partners Inverse(const Partners& partners, int32_t size) {
  Partners inverse(At(size), -1);
  for (size_t i = 0; i < partners.size(); ++i) {
    if (partners[i] >= 0) inverse[At(partners[i])] = static_cast<int32_t>(i);
  }
  return inverse;
}

class Chooser {
 public:
  Chooser(const Labels& before, const Labels& after, const Partners& claim, const Partners& lineage)
      : before_(before), after_(after), claim_(claim), lineage_(lineage), chosen_(lineage) {}

  std::vector<std::pair<int32_t, int32_t>> Run() {
    std::vector<std::vector<int32_t>> open = Exchanges();
    for (const std::vector<int32_t>& nodes : open)
      Choose(nodes, claim_);
    // What falls may have held others.
    for (size_t last = open.size() + 1; open.size() < last;) {
      last = open.size();
      std::erase_if(open, [&](const std::vector<int32_t>& nodes) {
        const Worth claimed = WorthOf(nodes);
        Choose(nodes, lineage_);
        if (WorthOf(nodes) > claimed) return true;
        Choose(nodes, claim_);
        return false;
      });
    }
    std::vector<std::pair<int32_t, int32_t>> pairs;
    for (const std::vector<int32_t>& nodes : open) {
      for (int32_t i : nodes) {
        if (claim_[At(i)] >= 0) pairs.emplace_back(i, claim_[At(i)]);
      }
    }
    return pairs;
  }

 private:
  /// Sets of before nodes of one label that have each other's partners, and no others.
  std::vector<std::vector<int32_t>> Exchanges() const {
    const Partners claimed_by = Inverse(claim_, after_.size());
    const Partners came_from = Inverse(lineage_, after_.size());
    std::vector<bool> seen(claim_.size());
    std::vector<std::vector<int32_t>> exchanges;
    for (int32_t i = 0; i < before_.size(); ++i) {
      if (seen[At(i)] || claim_[At(i)] == lineage_[At(i)]) continue;
      std::vector<int32_t> nodes{i};
      seen[At(i)] = true;
      const auto reach = [&](int32_t node) {
        if (node < 0 || seen[At(node)]) return;
        seen[At(node)] = true;
        nodes.push_back(node);
      };
      for (size_t next = 0; next < nodes.size(); ++next) {
        const int32_t mine = claim_[At(nodes[next])], theirs = lineage_[At(nodes[next])];
        if (mine >= 0) reach(came_from[At(mine)]);
        if (theirs >= 0) reach(claimed_by[At(theirs)]);
      }
      if (AreAlike(nodes)) exchanges.push_back(std::move(nodes));
    }
    return exchanges;
  }

  bool AreAlike(const std::vector<int32_t>& nodes) const {
    const uint64_t type = before_.type[At(nodes[0])];
    int pairs = 0;
    for (int32_t i : nodes) {
      if (before_.type[At(i)] != type) return false;
      for (const int32_t j : {claim_[At(i)], lineage_[At(i)]}) {
        if (j >= 0 && after_.type[At(j)] != type) return false;
      }
      pairs += (claim_[At(i)] >= 0 ? 1 : 0) - (lineage_[At(i)] >= 0 ? 1 : 0);
    }
    return pairs == 0;
  }

  void Choose(const std::vector<int32_t>& nodes, const Partners& partners) {
    for (int32_t i : nodes)
      chosen_[At(i)] = partners[At(i)];
  }

  struct Worth {
    int place = 0, operands = 0, users = 0, in_order = 0;
    friend auto operator<=>(const Worth&, const Worth&) = default;
  };

  Worth WorthOf(const std::vector<int32_t>& nodes) const {
    Worth worth;
    for (int32_t i : nodes) {
      const int32_t j = chosen_[At(i)];
      if (j < 0) continue;
      const auto theirs = after_.operands(j);
      for (const Labels::Edge& operand : before_.operands(i)) {
        const int32_t image = chosen_[At(operand.entity)];
        const auto slot = At(operand.slot);
        const auto reads = [&](const Labels::Edge& edge) { return edge.entity == image; };
        // At another slot is better than not at all.
        if (image >= 0 && slot < theirs.size() && theirs[slot].entity == image) {
          worth.operands += 2;
        } else if (image >= 0 && std::ranges::any_of(theirs, reads)) {
          worth.operands += 1;
        }
      }
      for (const Labels::Edge& user : before_.users(i)) {
        const int32_t image = chosen_[At(user.entity)];
        if (image < 0) continue;
        const auto read = after_.operands(image);
        worth.users += At(user.slot) < read.size() && read[At(user.slot)].entity == j ? 1 : 0;
      }
    }
    for (const int32_t a : nodes) {
      for (const int32_t b : nodes) {
        const int32_t x = chosen_[At(a)], y = chosen_[At(b)];
        worth.in_order += a < b && x >= 0 && x < y ? 1 : 0;
      }
    }
    // Inputs are what they are by their place.
    if (before_.kind[At(nodes[0])] != EntityKind::kCompute) worth.place = worth.in_order;
    return worth;
  }

  const Labels& before_;
  const Labels& after_;
  const Partners& claim_;
  const Partners& lineage_;
  Partners chosen_;
};

}  // namespace

std::vector<std::pair<int32_t, int32_t>> ChoicesAsGood(const Labels& before, const Labels& after,
                                                       const std::vector<int32_t>& claim,
                                                       const std::vector<int32_t>& lineage) {
  return Chooser(before, after, claim, lineage).Run();
}

}  // namespace strata::bench
