// Runs the graph of step.cpp:
//   step INPUTS.safetensors [OUTPUTS.safetensors]
// INPUTS has the names of kInputs, as `strata train --dump-inputs` writes them, or the names of nodes. OUTPUTS gets the
// results by the names of kOutputs, then the inputs that the graph wrote to.

#include <exception>
#include <iostream>
#include <set>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>

#include "step.h"
#include "tensors.h"

namespace {

// In memory of its own, as the graph wants it. A dimension of stride 0 has its first element.
at::Tensor Lay(const at::Tensor& tensor, const std::vector<int64_t>& strides) {
  if (strides.empty()) return tensor;
  at::Tensor part = tensor;
  for (size_t i = 0; i < strides.size(); ++i)
    if (strides[i] == 0 && part.size(i) > 1) part = part.narrow(i, 0, 1);
  return part.new_empty_strided(part.sizes(), strides).copy_(part).expand(tensor.sizes());
}

std::string Describe(at::ScalarType type, at::IntArrayRef sizes) {
  std::string text;
  for (const int64_t size : sizes)
    text += (text.empty() ? "" : ", ") + std::to_string(size);
  return c10::toString(type) + (" [" + text + "]");
}

at::Tensor Bytes(const at::Tensor& tensor) {
  return tensor.reshape({-1}).view(at::kByte);
}

int Run(int argc, char** argv) {
  const at::NoGradGuard no_grad;
  const std::map<std::string, at::Tensor> tensors = LoadTensors(argv[1]);
  std::vector<at::Tensor> inputs;
  std::vector<at::Tensor> before;  // of those that may be written: what they were
  for (const Input& input : kInputs) {
    auto found = tensors.find(input.name);
    if (found == tensors.end()) found = tensors.find(input.node);
    if (found == tensors.end()) {
      std::cerr << argv[1] << " lacks the input " << input.name << "\n";
      return 1;
    }
    const at::Tensor& given = found->second;
    const bool is_any = input.type == at::ScalarType::Undefined;
    if (!is_any && (given.scalar_type() != input.type || given.sizes() != at::IntArrayRef(input.sizes))) {
      std::cerr << argv[1] << " is of another graph: " << input.name << " is "
                << Describe(given.scalar_type(), given.sizes()) << ", not " << Describe(input.type, input.sizes) << "\n";
      return 1;
    }
    inputs.push_back(Lay(given, input.strides));
    before.push_back(input.may_be_written ? inputs.back().clone() : at::Tensor());
  }
  at::Generator(at::detail::getDefaultCPUGenerator()).set_current_seed(0);  // as strata run does
  const std::vector<at::Tensor> results = Step(inputs);
  std::vector<std::pair<std::string, at::Tensor>> outputs;
  std::set<std::string> names;
  const auto add = [&](const std::string& name, const at::Tensor& tensor) {
    if (!name.empty() && tensor.defined() && names.insert(name).second) outputs.emplace_back(name, tensor);
  };
  for (size_t i = 0; i < results.size(); ++i) {
    add(kOutputs[i], results[i]);
    if (results[i].defined() && results[i].numel() == 1)
      std::cout << kOutputs[i] << " = " << results[i].item().toDouble() << "\n";
  }
  for (size_t i = 0; i < inputs.size(); ++i)
    if (before[i].defined() && !Bytes(inputs[i]).equal(Bytes(before[i]))) add(kInputs[i].name, inputs[i]);
  if (argc == 3) SaveTensors(argv[2], outputs);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) {
    std::cerr << "usage: step INPUTS.safetensors [OUTPUTS.safetensors]\n";
    return 2;
  }
  try {
    return Run(argc, argv);
  } catch (const c10::Error& error) {
    std::cerr << error.what_without_backtrace() << "\n";
    return 1;
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
