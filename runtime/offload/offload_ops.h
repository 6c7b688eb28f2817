#pragma once

namespace strata {

/// Gives LibTorch the operators of passes/memory/offloadable.h, for plans that call operators one
/// after the other. On a CPU they copy at once. On a GPU they issue copies to the current stream,
/// with pinned memory of the host; runtime/plan/device/schedule.h orders the streams. Call it as
/// often as you like.
void RegisterOffloadOps();

}  // namespace strata
