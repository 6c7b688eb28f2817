#pragma once
#include <cstdint>

#include "ir/arg.h"
#include "ir/graph.h"
#include "ir/module.h"
#include "ir/type.h"

/// The bytes of snapshots; docs/trace_format.md shows them as a table. What both the encoder and
/// the decoder know stands here.
///
///   node   = stable_id, kind, phase, string op, string module,          \  what `changed` compares
///            args, kwargs, results                                       /
///            string name, element names, location, seq_nr, text_line, stream, attributes
///   type   = kind, dtype, flags, device, wrapper, dim, sizes, strides, placements, text
///   chunk  = ids of nodes, each as the difference to the one before
///   root   = graphs (the program, then its bodies: name, flags, chunks), then symbols
///
/// Strings, types, nodes and chunks are ids of records in their pools; 0: absent.
namespace strata {

// DO NOT CHANGE the values of these enums: they are stored. New enumerators go to the end.
static_assert(static_cast<int>(NodeKind::kPlaceholder) == 0);
static_assert(static_cast<int>(NodeKind::kGetAttr) == 1);
static_assert(static_cast<int>(NodeKind::kCall) == 2);
static_assert(static_cast<int>(NodeKind::kCallMethod) == 3);
static_assert(static_cast<int>(NodeKind::kCallModule) == 4);
static_assert(static_cast<int>(NodeKind::kOutput) == 5);

static_assert(static_cast<int>(Phase::kUnknown) == 0);
static_assert(static_cast<int>(Phase::kForward) == 1);
static_assert(static_cast<int>(Phase::kLoss) == 2);
static_assert(static_cast<int>(Phase::kBackward) == 3);
static_assert(static_cast<int>(Phase::kOptimizer) == 4);

static_assert(static_cast<int>(ArgKind::kNone) == 0);
static_assert(static_cast<int>(ArgKind::kValue) == 1);
static_assert(static_cast<int>(ArgKind::kInt) == 2);
static_assert(static_cast<int>(ArgKind::kFloat) == 3);
static_assert(static_cast<int>(ArgKind::kBool) == 4);
static_assert(static_cast<int>(ArgKind::kDim) == 5);
static_assert(static_cast<int>(ArgKind::kString) == 6);
static_assert(static_cast<int>(ArgKind::kDType) == 7);
static_assert(static_cast<int>(ArgKind::kDevice) == 8);
static_assert(static_cast<int>(ArgKind::kRaw) == 9);
static_assert(static_cast<int>(ArgKind::kGraph) == 10);
static_assert(static_cast<int>(ArgKind::kList) == 11);
static_assert(static_cast<int>(ArgKind::kTuple) == 12);
static_assert(static_cast<int>(ArgKind::kDict) == 13);
static_assert(static_cast<int>(ArgKind::kCall) == 14);

static_assert(static_cast<int>(TypeKind::kTensor) == 0);
static_assert(static_cast<int>(TypeKind::kSymInt) == 1);
static_assert(static_cast<int>(TypeKind::kOpaque) == 2);

static_assert(static_cast<int>(DType::kUnknown) == 0);
static_assert(static_cast<int>(DType::kI64) == 5);
static_assert(static_cast<int>(DType::kBF16) == 12);
static_assert(static_cast<int>(DType::kBool) == 17);
static_assert(static_cast<int>(DType::kF4E2M1FNX2) == 28);

static_assert(static_cast<int>(Placement::Kind::kReplicate) == 0);
static_assert(static_cast<int>(Placement::Kind::kShard) == 1);
static_assert(static_cast<int>(Placement::Kind::kPartial) == 2);

static_assert(static_cast<int>(Origin::kTraced) == 0);
static_assert(static_cast<int>(Origin::kCreated) == 1);
static_assert(static_cast<int>(Origin::kCloned) == 2);
static_assert(static_cast<int>(Origin::kReplaced) == 3);

namespace snapshot_format {

inline constexpr auto kLastNodeKind = NodeKind::kOutput;
inline constexpr auto kLastPhase = Phase::kOptimizer;
inline constexpr auto kLastArgKind = ArgKind::kCall;
inline constexpr auto kLastTypeKind = TypeKind::kOpaque;
inline constexpr auto kLastDType = DType::kF4E2M1FNX2;
inline constexpr auto kLastPlacementKind = Placement::Kind::kPartial;
/// In the place of a kind: a shard whose `split` follows its dimension.
inline constexpr uint8_t kStridedShard = 3;
inline constexpr auto kLastOrigin = Origin::kReplaced;

// The kind of an operand that is result 0 of its node, as nearly all are: it needs no index.
inline constexpr uint8_t kFirstResult = 0x41;
static_assert(kFirstResult > static_cast<uint8_t>(kLastArgKind));

// Beside the kind of a node.
inline constexpr uint8_t kReturnsTuple = 0x80;

// Flags of a graph in the root.
inline constexpr uint8_t kIsBody = 1;
inline constexpr uint8_t kIsForeign = 2;

// Flags of a type.
inline constexpr uint8_t kHasStrides = 1;
inline constexpr uint8_t kRequiresGrad = 2;

// Flags of a symbol.
inline constexpr uint8_t kBacked = 1;
inline constexpr uint8_t kHasHint = 2;

// How a size is written: nothing, a number, or the text of an expression.
inline constexpr uint64_t kNoDim = 0;
inline constexpr uint64_t kConstDim = 1;
inline constexpr uint64_t kFirstTextDim = 2;  ///< plus the id of the string, minus 1

// Arguments nest in lists, tuples, dicts and calls.
inline constexpr int kMaxDepth = 200;

}  // namespace snapshot_format
}  // namespace strata
