#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

// Tensors of a safetensors file, by name. A complex tensor x is stored as x#complex, its real and
// imaginary parts. Both throw std::runtime_error, which names the file.
std::map<std::string, at::Tensor> LoadTensors(const std::string& path);
void SaveTensors(const std::string& path,
                 const std::vector<std::pair<std::string, at::Tensor>>& tensors);
