#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "base/result.h"
#include "ir/verify.h"
#include "passes/core/chunk_attributes.h"
#include "passes/expert/ep_chunk.h"
#include "prove/proof.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"

/// Graphs `g` whose modules are cut into chunks.
namespace strata::testing {

inline constexpr std::string_view kSymbol = "symbol u0 hint=4 min=2 max=4 unbacked\ngraph g";

inline std::unique_ptr<Module> Parsed(std::string_view body, std::string_view head = kSymbol) {
  return ParseOrDie(std::string(head) + std::string(body));
}

inline ChunkOptions Options(std::string_view pattern, int64_t num_static = 0) {
  ChunkOptions options;
  options.module_fqn = pattern;
  options.num_static_inputs = num_static;
  return options;
}

inline ChunkOptions SeqOptions(std::string_view pattern) {
  ChunkOptions options = Options(pattern);
  options.chunk_dim = ChunkDim::kSeq;
  return options;
}

inline Status Chunk(Module& module, const ChunkOptions& options) {
  Graph& graph = *module.FindGraph("g");
  return ChunkRegions(graph, ChunkRoots(graph, options.module_fqn), options);
}

inline std::string ErrorOf(std::string_view body, const ChunkOptions& options,
                           std::string_view head = kSymbol) {
  return MessageOf(Chunk(*Parsed(body, head), options));
}

/// A graph before and after. `same` says that the outputs are those of the whole.
struct Chunked {
  std::unique_ptr<Module> before, module;
  const Graph& graph;

  Chunked(std::string_view body, const ChunkOptions& options, std::string_view head = kSymbol)
      : before(Parsed(body, head)), module(before->Clone()), graph(*module->FindGraph("g")) {
    REQUIRE_OK(Chunk(*module, options));
    CHECK_OK(Verify(*module));
  }

  prove::Proof Proof() const { return prove::Prove(*before->FindGraph("g"), graph, {}); }

  std::vector<NodeId> Calls(std::string_view op) const {
    std::vector<NodeId> nodes;
    for (const NodeId node : graph.nodes())
      if (graph.node(node).kind == NodeKind::kCall && graph.op(node) == op) nodes.push_back(node);
    return nodes;
  }
  /// Chunks of the nodes with an operator: "01" for a copy in each of two.
  std::string ChunksOf(std::string_view op) const {
    std::string chunks;
    for (const NodeId node : Calls(op)) {
      if (Role(node) == kBodyRole)
        chunks += graph.attribute(node, kChunkIdAttribute);
      else
        chunks += '-';
    }
    return chunks;
  }
  std::string_view Role(NodeId node) const { return graph.attribute(node, kChunkRoleAttribute); }
  std::string Operands(NodeId node) const {
    std::string names;
    for (const ValueId operand : graph.operands(node))
      names += std::string(names.empty() ? "" : " ") + std::string(graph.value_name(operand));
    return names;
  }
  std::string TypeOf(std::string_view name) const {
    return module->types().ToString(graph.value(graph.result(NodeNamed(graph, name))).type);
  }
};

#define CHECK_SAME_VALUES(chunked)                                            \
  do {                                                                        \
    const prove::Proof proof = (chunked).Proof();                             \
    INFO(proof.reason, proof.findings.empty() ? "" : proof.findings[0].what); \
    CHECK(proof.verdict == prove::Verdict::kProven);                          \
  } while (false)

inline constexpr std::string_view kLinear = R"(
  w = placeholder : f32[3, 3][3, 1]cpu
  x = placeholder : f32[u0, 3][3, 1]cpu
  y = aten.mm.default(x, w) : f32[u0, 3][3, 1]cpu {forward module=layers.0}
  z = aten.relu.default(y) : f32[u0, 3][3, 1]cpu {forward module=layers.0}
  output([z])
)";

inline constexpr std::string_view kTwoRoots = R"(
  x = placeholder : f32[u0, 3][3, 1]cpu
  r = aten.relu.default(x) : f32[u0, 3][3, 1]cpu {forward module=layers.0}
  n = aten.neg.default(r) : f32[u0, 3][3, 1]cpu {forward module=layers.1}
  output([n])
)";

}  // namespace strata::testing
