#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "diff/history/bisect.h"
#include "ir/fingerprint.h"
#include "ir/graph.h"

namespace strata {

/// A graph without what may rightly differ from rank to rank of one program: integers at places
/// that distinguish shards (bounds of slices, offsets that are added or compared, fill values,
/// peers of sends and receives, which part of a split tensor is used and where it is put), the
/// number of the device, names of process groups. Names of nodes and metadata are not in it either.
struct RankForm {
  Fingerprint hash;             ///< of the rest, which must be equal
  std::vector<int64_t> values;  ///< the integers, in order
  std::optional<int64_t> device;
  std::vector<std::string> groups;  ///< process groups, in order of first use
};
RankForm RankFormOf(const Graph& graph);

/// Where one of RankForm::values stands.
struct RankSite {
  std::string node;
  std::string path;           ///< "args[2]"
  bool names_a_rank = false;  ///< the peer of a send, a share of an all-to-all: any value will do
};
/// Of all values, in their order.
std::vector<RankSite> RankSitesOf(const Graph& graph);

/// True when a difference of a pair is left out of the RankForms of its graphs.
bool MayDifferByRank(const GraphDiff& diff, const Pair& pair, const FieldDiff& field);

/// What offsets of shards are made of: sizes, strides and numbers of elements of a graph's values,
/// and 1. Empty when no sizes are known.
std::set<int64_t> SizesOf(const Graph& graph);

}  // namespace strata
