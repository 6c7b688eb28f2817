#pragma once
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace strata::prove {

/// What torch.compile made of a frame on one device: graphs of AOTAutograd, and what the log says
/// of them.
struct CompiledProgram {
  std::string name;                 ///< of the compilation: "0/0"
  const Graph* forward = nullptr;   ///< or that of inference
  const Graph* backward = nullptr;  ///< null: there is none
  std::vector<std::string> inputs;  ///< of Dynamo's graph, as it names them: "L_x_"
  std::string metadata;             ///< text of its ViewAndMutationMeta; "": not logged
  std::string gradient_metadata;    ///< text of its SubclassMeta; "": not logged
};

/// Names of what Dynamo passed to AOTAutograd, which are the same on every device: the path of a
/// parameter without wrappers (`module.` of DDP), else Dynamo's name, else "input 3".
struct InputName {
  std::string text;
  bool is_parameter = false;  ///< or a buffer
};
std::vector<InputName> InputNamesOf(const CompiledProgram& program);

/// A name for an input or output of an AOTAutograd graph, by its descriptor: "w1.weight", "tangent
/// of output 0", "gradient of w1.weight"; "": a value that only the backward graph reads, or None.
std::string KeyOf(std::string_view descriptor, const std::vector<InputName>& inputs);

/// The index of the input of which a descriptor says `PlainAOTInput(idx=3)`; -1: of none.
int64_t InputIndexOf(std::string_view descriptor);

/// An output of a graph.
struct KeyedOutput {
  std::string key;      ///< see KeyOf
  size_t position = 0;  ///< in the tuple that is returned
  size_t index = 0;     ///< of those that are not None
  int64_t input = -1;   ///< whose gradient it is; see InputIndexOf
};
std::vector<KeyedOutput> OutputsOf(const Graph& graph, const std::vector<InputName>& inputs);

/// The keys of the placeholders, in order.
std::vector<std::string> PlaceholderKeys(const Graph& graph, const std::vector<InputName>& inputs);

}  // namespace strata::prove
