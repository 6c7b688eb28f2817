#include "runtime/trace/scope.h"

#include <utility>

namespace strata {
namespace {

// Per thread, because ranks of one process trace and run on threads of their own; a model written
// as plain ATen calls has no other way to report its position.
Scope& Current() {
  thread_local Scope scope;
  return scope;
}

DeviceTraits& Target() {
  thread_local DeviceTraits target;
  return target;
}

}  // namespace

const Scope& CurrentScope() {
  return Current();
}

ModuleScope::ModuleScope(std::string_view name, std::source_location location)
    : outer_length_(Current().module.size()), outer_location_(Current().location) {
  Scope& scope = Current();
  scope.module = PathInside(name);
  scope.location = location;
}

ModuleScope::~ModuleScope() {
  Current().module.resize(outer_length_);
  Current().location = outer_location_;
}

std::string PathInside(std::string_view name) {
  std::string path = Current().module;
  if (!path.empty()) path += '.';
  return path.append(name);
}

AttributeScope::AttributeScope(Attributes attributes)
    : outer_(std::exchange(Current().attributes, std::move(attributes))) {}

AttributeScope::~AttributeScope() {
  Current().attributes = std::move(outer_);
}

std::vector<int64_t> ReadSizes(const at::Tensor& counts, int64_t total) {
  std::vector<int64_t> sizes;
  SizeRequest request{.index = 0, .count = counts.size(0), .total = total};
  for (; request.index < request.count; ++request.index) {
    const at::Tensor count = counts.select(0, request.index);
    Current().size_request = request;
    sizes.push_back(count.item<int64_t>());
    Current().size_request.reset();
  }
  return sizes;
}

PhaseScope::PhaseScope(Phase phase) : outer_(Current().phase) {
  Current().phase = phase;
}

PhaseScope::~PhaseScope() {
  Current().phase = outer_;
}

const DeviceTraits& CurrentTarget() {
  return Target();
}

TargetScope::TargetScope(DeviceTraits target)
    : outer_(std::exchange(Target(), std::move(target))) {}

TargetScope::~TargetScope() {
  Target() = std::move(outer_);
}

}  // namespace strata
