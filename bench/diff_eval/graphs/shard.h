#pragma once
#include "ir/module.h"

namespace strata::bench {

/// Whose program it is.
struct RankView {
  int64_t rank = 0, ranks = 4;
};

/// Makes graph 0, a program for one device, that of one of several ranks:
///
///   large float inputs are shards       w = wait(all_gather(p))
///   results of their types are reduced  wait(reduce_scatter(g))
///   scalar results are averaged         wait(all_reduce(loss))
///   some values are cut at the rank's own offset and put together again
///
/// Offsets, sizes of uneven cuts and names of groups depend on the rank, nothing else does: the
/// programs of all ranks have the same nodes with the same StableIds.
void ShardOverRanks(Module& module, const RankView& view);

}  // namespace strata::bench
