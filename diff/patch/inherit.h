#pragma once
#include "ir/graph.h"
#include "ir/rewriter.h"
#include "ir/text/native_line.h"

namespace strata {

/// Copies to `to` the metadata of a node of another module that lines of `style` do not carry:
/// phase, module and stream, source location, attributes.
void InheritMetadata(const Graph& base, NodeId from, const NativeLineStyle& style,
                     Rewriter& rewriter, NodeId to);

}  // namespace strata
