#pragma once
#include <string_view>

#include "ir/rewriter.h"

namespace strata {

/// Of an all-to-all that moves tokens: "dispatch" to the ranks of their experts, "combine" back. In
/// backward each has the label of the forward exchange that it undoes. Names are torchtitan's.
inline constexpr std::string_view kExchangeAttribute = "EP_token_exchange";
/// Of the node that completes it.
inline constexpr std::string_view kExchangeWaitAttribute = "EP_token_exchange_wait";
/// "dispatch": of copies of the counts to the host.
inline constexpr std::string_view kCountSyncAttribute = "EP_token_count_sync";

/// Labels all-to-alls that have none and whose parts have data-dependent sizes: those move tokens.
/// Exchanges of equal parts (of counts) stay without label.
void LabelTokenExchanges(Rewriter& rewriter);

}  // namespace strata
