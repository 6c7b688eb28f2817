#include "diff/match/matcher.h"

#include <map>
#include <optional>
#include <utility>

#include "base/flat_map.h"
#include "diff/match/advice.h"
#include "diff/match/chunks.h"
#include "diff/match/cones.h"
#include "diff/match/exchange.h"
#include "diff/match/gaps.h"
#include "diff/match/in_place.h"
#include "diff/match/inputs.h"
#include "diff/match/local.h"
#include "diff/match/prefer_operands.h"
#include "diff/match/radius.h"
#include "diff/match/repair.h"
#include "diff/match/revise_inputs.h"
#include "diff/match/settle_equals.h"

namespace strata {
namespace {

class Matcher {
 public:
  /// `has_pins`: some pairs are matched already.
  Matcher(const Listing& before, const Listing& after, bool has_pins, Matching& matching)
      : listings_{&before, &after},
        matching_(matching),
        local_(matching),
        hopeless_(matching),
        has_pins_(has_pins) {}

  /// Inside one trace identity is known: what has no partner by id has none.
  void MatchStableIds() {
    // An element goes by its node's id and its index.
    const auto key_of = [](const Listing& listing, EntityId id) {
      const Entity& entity = listing[id];
      const Graph& graph = listing.graph(id);
      const auto stable_id = static_cast<uint64_t>(graph.node(entity.node).stable_id);
      const uint64_t element = entity.element.valid() ? graph.result_index(entity.element) + 1 : 0;
      return stable_id == 0 ? 0 : Mix(stable_id, element);
    };
    FlatMap<uint64_t, EntityId> after(listings_[kAfter]->ids().size());
    for (EntityId id : listings_[kAfter]->ids())
      after.Emplace(key_of(*listings_[kAfter], id), id);
    for (EntityId id : listings_[kBefore]->ids()) {
      const uint64_t key = key_of(*listings_[kBefore], id);
      const EntityId* found = after.Find(key);
      if (key == 0 || found == nullptr) continue;
      if (matching_.matched(kBefore, id) || matching_.matched(kAfter, *found)) continue;
      if (!matching_.SameKind(id, *found)) continue;
      matching_.Match(id, *found, Via::kId, 1);
    }
    MatchElementsThatAreNodes();
  }

  void MatchByStructure() {
    for (Side side : {kBefore, kAfter})
      partner_of_scope_[side].resize(listings_[side]->scopes().size());
    constexpr ScopeId kProgram = Listing::kProgram;
    partner_of_scope_[kBefore][kProgram] = partner_of_scope_[kAfter][kProgram] = kProgram;
    MatchScope(kProgram, kProgram);
    for (Side side : {kBefore, kAfter})
      bodies_of_[side] = BodiesByReferrer(side);
    for (std::vector<ScopeId> queue{kProgram}; !queue.empty();) {
      std::vector<ScopeId> next;
      for (ScopeId scope : queue)
        MatchBodies(scope, next);
      queue = std::move(next);
    }
    for (Side side : {kBefore, kAfter}) {
      for (ScopeId scope : IdsOf(listings_[side]->scopes())) {
        if (scope != kProgram) MatchInlined(side, scope);
      }
    }
  }

 private:
  /// A getitem line is an element of its operand's node where it follows that node, and a node of
  /// its own elsewhere: a pass that moves it does not make another one.
  void MatchElementsThatAreNodes() {
    for (Side side : {kBefore, kAfter}) {
      const Side other = side == kBefore ? kAfter : kBefore;
      std::map<std::pair<StableId, int64_t>, EntityId> elements;  // of `other`, without partner
      for (EntityId id : listings_[other]->ids()) {
        const Entity& entity = (*listings_[other])[id];
        if (!entity.element.valid() || matching_.matched(other, id)) continue;
        const Graph& graph = listings_[other]->graph(id);
        elements.emplace(std::pair(graph.node(entity.node).stable_id,
                                   static_cast<int64_t>(graph.result_index(entity.element))),
                         id);
      }
      for (EntityId id : listings_[side]->ids()) {
        if (elements.empty()) break;
        const std::optional<std::pair<StableId, int64_t>> taken = TakenElement(side, id);
        if (!taken || matching_.matched(side, id)) continue;
        const auto found = elements.find(*taken);
        if (found == elements.end()) continue;
        const EntityId before = side == kBefore ? id : found->second;
        matching_.Match(before, side == kBefore ? found->second : id, Via::kId, 1);
        elements.erase(found);
      }
    }
  }

  /// The node, and the place in its results, that a getitem which is a node of its own takes.
  std::optional<std::pair<StableId, int64_t>> TakenElement(Side side, EntityId id) const {
    const Listing& listing = *listings_[side];
    const Entity& entity = listing[id];
    if (entity.element.valid() || listing.target(id) != "_operator.getitem") return std::nullopt;
    const Graph& graph = listing.graph(id);
    const std::span<const Arg> args = graph.args(entity.node);
    if (args.size() != 2 || !args[0].is_value() || args[1].kind() != ArgKind::kInt) return {};
    const StableId source = graph.node(graph.value(args[0].value()).def).stable_id;
    if (source == StableId::kNone) return std::nullopt;
    return std::pair(source, args[1].as_int());
  }

  using BodiesOf = std::map<EntityId, std::vector<ScopeId>>;

  /// Bodies by the entities that refer to them.
  BodiesOf BodiesByReferrer(Side side) const {
    BodiesOf bodies;
    const IdVector<ScopeId, Listing::Scope>& scopes = listings_[side]->scopes();
    for (ScopeId scope : IdsOf(scopes)) {
      for (EntityId referrer : scopes[scope].referrers)
        bodies[referrer].push_back(scope);
    }
    return bodies;
  }

  /// Bodies that nodes of a scope of the before side refer to: a body is that to which the node's
  /// partner refers. Several may refer to one: equal bodies first. Adds those that were matched.
  void MatchBodies(ScopeId outer, std::vector<ScopeId>& matched) {
    const IdRange<EntityId> ids = listings_[kBefore]->scopes()[outer].ids;
    const BodiesOf& before = bodies_of_[kBefore];
    for (const bool equal : {true, false}) {
      for (auto it = before.lower_bound(ids.begin_id());
           it != before.end() && it->first < ids.end_id(); ++it) {
        if (!matching_.matched(kBefore, it->first)) continue;
        const EntityId image = matching_.partner(kBefore, it->first);
        const auto found = bodies_of_[kAfter].find(image);
        const bool is_equal = matching_.labels(kBefore).literals(it->first) ==
                              matching_.labels(kAfter).literals(image);
        if (found == bodies_of_[kAfter].end() || (equal && !is_equal)) continue;
        for (size_t k = 0; k < std::min(it->second.size(), found->second.size()); ++k)
          MatchBody(it->second[k], found->second[k], matched);
      }
    }
  }

  void MatchBody(ScopeId before, ScopeId after, std::vector<ScopeId>& matched) {
    if (partner_of_scope_[kBefore][before].valid()) return;
    if (partner_of_scope_[kAfter][after].valid()) return;
    partner_of_scope_[kBefore][before] = after;
    partner_of_scope_[kAfter][after] = before;
    MatchScope(before, after);
    matched.push_back(before);
  }

  void MatchScope(ScopeId before, ScopeId after) {
    ScopePair scope;
    const std::array<ScopeId, 2> index{before, after};
    for (Side side : {kBefore, kAfter}) {
      const Listing::Scope& side_scope = listings_[side]->scopes()[index[side]];
      scope.begin[side] = side_scope.ids.begin_id();
      scope.end[side] = side_scope.ids.end_id();
    }
    // The scope's pairs are made from here on, but for pins: there may be thousands of scopes.
    has_order_ = true;
    const size_t first = has_pins_ ? 0 : matching_.made().size();
    MatchNodes(scope);
    if (!Done(scope)) {
      if (ReviseInputs(matching_, scope)) local_.Run(scope);
      MatchInputsLeft(matching_, scope);
    }
    // A node that lost its partner may stand where another one did.
    if (Improve(scope) && FillGaps(scope)) Improve(scope);
    // A new pair may decide the next one of a chain.
    for (size_t since = first, made = 0;; since = made) {
      made = matching_.made().size();
      if (!MatchInPlace(*listings_[kBefore], *listings_[kAfter], matching_, scope, since)) break;
      local_.Run(scope);
    }
    // Which frees another node.
    const bool settled =
        !matching_.AnyUnmatched(kBefore, scope) && !matching_.AnyUnmatched(kAfter, scope);
    const auto settle = [&] { return SettleEquals(matching_, scope, local_.EqualsOf(scope)); };
    // What follows may have been about the very same nodes: it has no say among equal ones.
    if (!settled && settle() && Improve(scope)) settle();
    if (ShiftEquals(matching_, local_.EqualsOf(scope))) local_.Run(scope);
    if (PreferOperands(matching_, scope)) local_.Run(scope);
    if (!Done(scope)) MatchEqualValues(matching_, scope);
  }

  /// A repair at one position may decide the next one. Returns true if any was.
  bool Improve(const ScopePair& scope) {
    constexpr int kRounds = 3;
    bool any = false;
    uint32_t repaired_at = 0, exchanged_at = 0;
    for (int round = 0; round < kRounds; ++round) {
      const uint32_t begin = matching_.clock();
      const bool repaired = Repair(matching_, scope, hopeless_, repaired_at);
      repaired_at = begin;
      if (repaired) local_.Run(scope);
      const uint32_t middle = matching_.clock();
      const bool exchanged = Exchange(matching_, scope, exchanged_at);
      exchanged_at = middle;
      if (exchanged) local_.Run(scope);
      if (!repaired && !exchanged) return any;
      any = true;
    }
    return any;
  }

  void MatchNodes(const ScopePair& scope) {
    MatchOutputs(scope);
    MatchInputs(matching_, scope);
    MatchCones(matching_, scope);
    if (Done(scope)) return;
    RadiusMatcher radius(matching_, scope);
    radius.Run(LabelKind::kType, 2, 6);
    ForbidChunks(matching_, scope);
    local_.Run(scope);
    if (ReviseInputs(matching_, scope)) local_.Run(scope);
    const auto is_done_by = [&](LabelKind level, int min_radius, int max_radius) {
      radius.Run(level, min_radius, max_radius);
      local_.Run(scope);
      return Done(scope);
    };
    if (is_done_by(LabelKind::kLiterals, 2, 4) || is_done_by(LabelKind::kOp, 3, 4)) return;
    // Operators that were replaced in place, several in a row.
    is_done_by(LabelKind::kValue, 2, 6);
    FillGaps(scope);
  }

  /// Pairs of one round of gaps may show where the next gaps are. Returns true if any was filled.
  bool FillGaps(const ScopePair& scope) {
    constexpr int kRounds = 16;  // each looks at the whole graph
    bool any = false;
    size_t made = 0;
    RegionMatcher regions(matching_, scope);
    for (int round = 0; round < kRounds && made != matching_.made().size() && !Done(scope);
         ++round) {
      any |= made != 0;
      made = matching_.made().size();
      regions.Run();
      if (matching_.made().size() == made) has_order_ &= MatchGaps(matching_, scope, has_order_);
      local_.Run(scope);
    }
    return any;
  }

  /// A body without a counterpart may have been inlined, or outlined: its nodes are those of the
  /// graph where it was called.
  void MatchInlined(Side side, ScopeId body) {
    const Listing& listing = *listings_[side];
    const Listing::Scope& inner = listing.scopes()[body];
    const ScopeId host = partner_of_scope_[side][listing.scope_of(inner.referred_by)];
    if (partner_of_scope_[side][body].valid() || !host.valid()) return;
    LendInputs(side, inner);
    const Listing::Scope& other = listings_[1 - side]->scopes()[host];
    ScopePair scope;
    scope.begin[side] = inner.ids.begin_id();
    scope.end[side] = inner.ids.end_id();
    scope.begin[1 - side] = other.ids.begin_id();
    scope.end[1 - side] = other.ids.end_id();
    const size_t made = matching_.made().size();
    MatchCones(matching_, scope);
    RadiusMatcher(matching_, scope).Run(LabelKind::kType, 2, 6);
    local_.Run(scope);
    // Bodies inside are called from where this one was inlined.
    if (matching_.made().size() > made) partner_of_scope_[side][body] = host;
  }

  /// Inputs of a body count as what the call of the body reads: its last operands.
  void LendInputs(Side side, const Listing::Scope& body) {
    const Labels& labels = matching_.labels(side);
    EntityId call = body.referred_by;
    // The attribute that holds the body, and its only user.
    if (labels.kind[call] == EntityKind::kConstant) {
      if (labels.users(call).size() != 1) return;
      call = labels.users(call)[0].entity;
    }
    std::vector<EntityId> inputs;
    for (EntityId id : body.ids) {
      if (labels.kind[id] == EntityKind::kInput) inputs.push_back(id);
    }
    const auto operands = labels.operands(call);
    if (operands.size() < inputs.size()) return;
    for (size_t k = 0; k < inputs.size(); ++k) {
      const EntityId value = operands[operands.size() - inputs.size() + k].entity;
      const bool is_new =
          !matching_.matched(side, inputs[k]) && matching_.token(side, inputs[k]) == 0;
      if (matching_.matched(side, value) && is_new) matching_.LendToken(side, inputs[k], value);
    }
  }

  void MatchOutputs(const ScopePair& scope) {
    const EntityId before = OutputOf(kBefore, scope), after = OutputOf(kAfter, scope);
    if (!before.valid() || !after.valid()) return;
    if (matching_.matched(kBefore, before) || matching_.matched(kAfter, after)) return;
    const bool same_arity = matching_.labels(kBefore).operands(before).size() ==
                            matching_.labels(kAfter).operands(after).size();
    if (!same_arity) {
      matching_.ForgetSlotsOf(kBefore, before);
      matching_.ForgetSlotsOf(kAfter, after);
    }
    matching_.Match(before, after, Via::kInput, 1);
  }

  EntityId OutputOf(Side side, const ScopePair& scope) const {
    if (scope.size(side) == 0) return {};
    const EntityId last{scope.end[side].index - 1};
    const bool is_output = matching_.labels(side).kind[last] == EntityKind::kOutput;
    return is_output ? last : EntityId{};
  }

  bool Done(const ScopePair& scope) const {
    return !matching_.AnyUnmatched(kBefore, scope) || !matching_.AnyUnmatched(kAfter, scope);
  }

  std::array<const Listing*, 2> listings_;
  Matching& matching_;
  LocalMatcher local_;
  HopelessNodes hopeless_;
  bool has_pins_;
  bool has_order_ = true;  // of the scope at hand: large gaps may be aligned in order
  std::array<BodiesOf, 2> bodies_of_;
  std::array<IdVector<ScopeId, ScopeId>, 2> partner_of_scope_;
};

}  // namespace

Status MatchListings(const Listing& before, const Listing& after, const DiffOptions& options,
                     Matching& matching) {
  STRATA_RETURN_IF_ERROR(TakeAdvice(before, after, options, matching));
  Matcher matcher(before, after, !options.pins.empty(), matching);
  if (options.stable_ids) {
    matcher.MatchStableIds();
  } else {
    matcher.MatchByStructure();
  }
  return Ok();
}

}  // namespace strata
