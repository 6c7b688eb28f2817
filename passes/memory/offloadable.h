#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace strata {

/// `offload(Tensor x) -> Tensor`: starts a copy of `x` to memory of the host.
inline constexpr std::string_view kOffloadOp = "ao.offload.default";
/// `reload(Tensor x, Device device) -> Tensor`: starts a copy of `x` back to memory of the device.
inline constexpr std::string_view kReloadOp = "ao.reload.default";
/// `wait_tensor(Tensor(a) x, Tensor? keepalive, Tensor? last_use) -> Tensor(a)`: `x` when its copy
/// is complete. What the copy reads, `keepalive`, lives to here; the wait stands after `last_use`.
inline constexpr std::string_view kTransferWaitOp = "ao.wait_tensor.default";

/// Whether a node starts or awaits such a copy.
bool IsTransfer(const Graph& graph, NodeId node);

/// Whether a node gives nothing but views of its operands' memory, and writes to none.
bool IsViewNode(const Graph& graph, NodeId node);

/// Results smaller than this stay where they are.
inline constexpr int64_t kSmallestOffload = 4096;

/// Bytes of a result that can be offloaded; 0: it cannot. It can if it is a contiguous tensor of
/// at least kSmallestOffload bytes in memory of its own that nothing writes to, and not an output.
/// Unknown sizes count as kSmallestOffload bytes, unknown strides as contiguous.
int64_t OffloadableBytes(const Graph& graph, ValueId value);

/// By node index, the bytes of such results of a forward node in a layer; 0: it is not offloaded.
/// Results of the last of several layers are not, because backward needs them at once; nor are
/// those of collectives and their waits.
IdVector<NodeId, int64_t> OffloadableBytes(const Graph& graph);

/// Who reads a value, or a view of it. In program order.
struct StorageReaders {
  /// Forward views of the value, each through the ones before.
  std::vector<NodeId> views;
  std::vector<NodeId> forward;   ///< forward nodes, views among them; no transfers
  std::vector<NodeId> backward;  ///< backward nodes
};
StorageReaders ReadersOfStorage(const Graph& graph, ValueId value,
                                const IdVector<NodeId, int32_t>& position);

}  // namespace strata
