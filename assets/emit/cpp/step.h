#pragma once
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

struct Input {
  std::string name;
  std::string node;              // its name in the graph
  at::ScalarType type;           // Undefined: any
  std::vector<int64_t> sizes;    // of a type that is defined
  std::vector<int64_t> strides;  // empty: contiguous
  bool may_be_written = false;
};

extern const std::vector<Input> kInputs;
extern const std::vector<std::string> kOutputs;  // "" for an output None

// The graph: results in the order of kOutputs. Takes the tensors of kInputs; some graphs write to
// them.
std::vector<at::Tensor> Step(std::vector<at::Tensor> given);
