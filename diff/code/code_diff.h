#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace strata {

/// The nodes of the post-grad graph that each kernel computes, by the kernel's name.
using NodesOfKernels = std::map<std::string, std::vector<std::string>, std::less<>>;

/// A call in generated code: of a kernel, or of an operator, `extern_kernels.mm`.
struct KernelCall {
  std::string name;
  std::vector<std::string> nodes;  ///< of the post-grad graph, that it computes
};

/// What a compiler wrote for a graph: Python with Triton or C++ kernels, or C++.
struct CodeText {
  std::string text;
  std::vector<KernelCall> calls = {};  ///< in order of the code, as far as they are known
};

/// The kernels of a text, each with its nodes as far as they are known: those of its calls, else of
/// the comment above it.
NodesOfKernels FindKernels(const CodeText& code);

/// A kernel that differs, or what stands around the kernels.
struct KernelDiff {
  enum class Kind : uint8_t { kChanged, kOnlyBefore, kOnlyAfter };
  std::string name;  ///< "": the code around the kernels
  Kind kind = Kind::kChanged;
  std::vector<std::string> nodes;  ///< that it computes, of the side that has it (after, if both)
  int32_t deleted = 0, inserted = 0;  ///< lines
  /// Changed lines with `-` or `+` and up to two lines around them with a blank, `…` between.
  std::vector<std::string> lines;
};

/// How two texts of generated code differ: kernels by their names in order of `before`, those of
/// `after` alone behind them, what stands around kernels last. Empty: they are equal but for places
/// of files in a compiler's cache. Of a kernel that no record maps to nodes, the nodes are those of
/// the comment above it.
std::vector<KernelDiff> DiffCode(const CodeText& before, const CodeText& after);

/// `kernel triton_poi_fused_add_0 (add, relu): +3 −2`.
std::string DescribeKernel(const KernelDiff& diff);

}  // namespace strata
