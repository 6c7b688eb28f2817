#pragma once
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

using at::Tensor;

namespace c10 {
struct IValue;
}

// An argument of an operator; by default None. Its constructors are in call.cpp: a graph has
// thousands of arguments, and what stores them takes a compiler long.
class Arg {
 public:
  Arg() = default;
  Arg(const Tensor& value);
  Arg(int64_t value);
  Arg(double value);
  Arg(bool value);
  Arg(const std::string& value);
  Arg(const std::vector<int64_t>& value);
  Arg(c10::complex<double> value);
  Arg(at::ScalarType value);
  Arg(at::Device value);
  Arg(at::Layout value);
  Arg(at::MemoryFormat value);
  Arg(const char* value) = delete;  // would be a bool
  explicit Arg(const c10::IValue& value);

  const c10::IValue& value() const;

 private:
  std::shared_ptr<const c10::IValue> value_;
};

struct NamedArg {
  const char* name;
  Arg arg;
};

// A list of arguments; the operator's schema says of what.
Arg List(std::initializer_list<Arg> elements);

// Calls an operator by its name in PyTorch ("aten::add", overload "Tensor"). Arguments that are not
// given have the defaults of the schema. CallAll is for operators with several results, or with a
// list of them, CallInt for those that read a number from data.
Tensor Call(const char* name, const char* overload, std::initializer_list<Arg> args,
            std::initializer_list<NamedArg> named = {});
std::vector<Tensor> CallAll(const char* name, const char* overload, std::initializer_list<Arg> args,
                            std::initializer_list<NamedArg> named = {});
int64_t CallInt(const char* name, const char* overload, std::initializer_list<Arg> args,
                std::initializer_list<NamedArg> named = {});

// After the last use: frees the memory, unless another tensor shares it.
template <class... Tensors>
void Release(Tensors&... tensors) {
  ((tensors = Tensors()), ...);
}
