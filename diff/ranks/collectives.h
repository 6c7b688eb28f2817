#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace strata {

/// A node in which several ranks take part.
struct Collective {
  std::string node;          ///< its name
  std::string op;            ///< "_c10d_functional.all_reduce.default"
  std::string args;          ///< its literals but the group: "'sum'"
  std::string group;         ///< the group's name, or its list of ranks
  std::string dtype, shape;  ///< of what it is given; of several tensors all, joined by " "
  int64_t group_size = 0;    ///< where it says; 0: it does not
  std::vector<int32_t> members = {};  ///< the group's ranks, where it lists them
  int64_t peer = -1;                  ///< of a send or receive: the other rank
  bool waited = false;                ///< something waits for its result

  /// `all_gather_into_tensor f32[4, 8]`.
  std::string Text() const;
  /// Whether its sizes may differ among the ranks of its group.
  bool uneven() const;
};

/// Launches in program order, those of bodies where their caller stands. Waits are listed with
/// what they wait for.
std::vector<Collective> CollectivesOf(const Graph& graph);

/// The collectives that one rank runs.
struct RankCollectives {
  int32_t rank = 0;
  std::shared_ptr<const std::vector<Collective>> collectives;
};

/// A place at which ranks of one group would not meet.
struct CollectiveMismatch {
  enum class Kind : uint8_t { kOp, kGroup, kShape, kDType, kMissing, kExtra, kOrder, kWait, kPeer };
  Kind kind = Kind::kOp;
  std::string group;
  int32_t index = 0;           ///< index among the collectives of the group
  std::vector<int32_t> ranks;  ///< those that differ from most of the group
  std::string node;            ///< on the first of them; where it is missing, on the others
  std::string collective;      ///< its `Text`, on the rank of `node`
  std::string what;
};
std::string_view ToString(CollectiveMismatch::Kind kind);

/// Of the text of an operator: a send or a receive between two ranks.
bool IsSend(std::string_view op);
bool IsReceive(std::string_view op);

}  // namespace strata
