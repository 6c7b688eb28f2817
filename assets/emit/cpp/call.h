#pragma once
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

using at::Tensor;
using Arg = c10::IValue;
using NamedArg = std::pair<const char*, Arg>;

// A list of arguments; the operator's schema says of what.
Arg List(std::initializer_list<Arg> elements);

// Calls an operator by its name in PyTorch ("aten::add", overload "Tensor"). Arguments that are not
// given have the defaults of the schema. CallAll is for operators with several results, or with a
// list of them, CallInt for those that read a number from data.
Tensor Call(const char* name, const char* overload, std::vector<Arg> args,
            std::vector<NamedArg> named = {});
std::vector<Tensor> CallAll(const char* name, const char* overload, std::vector<Arg> args,
                            std::vector<NamedArg> named = {});
int64_t CallInt(const char* name, const char* overload, std::vector<Arg> args,
                std::vector<NamedArg> named = {});

// After the last use: frees the memory, unless another tensor shares it.
template <class... Tensors>
void Release(Tensors&... tensors) {
  ((tensors = Tensors()), ...);
}
