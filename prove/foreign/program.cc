#include "prove/foreign/program.h"

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>

#include "base/text.h"
#include "ir/module.h"
#include "ir/stated_path.h"

namespace strata::prove {
namespace {

// Attributes that the FX parser sets (ir/fx/fx.h).
constexpr std::string_view kDescriptor = "descriptor", kDescriptors = "descriptors";
constexpr std::string_view kPlainInput = "PlainAOTInput(idx=";

/// `layers.0.w` of `module.layers.0._orig_mod.w`.
std::string WithoutWrappers(std::string_view path) {
  constexpr std::array<std::string_view, 4> kWrappers = {
      "module.", "_orig_mod.", "_fsdp_wrapped_module.", "_checkpoint_wrapped_module."};
  std::string result;
  while (!path.empty()) {
    const auto wrapper = std::ranges::find_if(
        kWrappers, [&](std::string_view name) { return path.starts_with(name); });
    if (wrapper != kWrappers.end()) {
      path.remove_prefix(wrapper->size());
      continue;
    }
    const size_t end = std::min(path.find('.'), path.size() - 1) + 1;
    result += path.substr(0, end);
    path.remove_prefix(end);
  }
  return result;
}

/// What is inside `outer(inner=…, attr=…)`, for the part of a DTensor that is its local tensor.
std::string_view WithoutSubclass(std::string_view descriptor) {
  constexpr std::string_view kSuffix = ", attr='_local_tensor')";
  for (const std::string_view prefix :
       {"SubclassGetAttrAOTInput(base=", "SubclassGetAttrAOTOutput(base="}) {
    if (!descriptor.starts_with(prefix) || !descriptor.ends_with(kSuffix)) continue;
    descriptor.remove_prefix(prefix.size());
    descriptor.remove_suffix(kSuffix.size());
  }
  return descriptor;
}

/// What is inside `prefix…)`; "": another text.
std::string_view InsideCall(std::string_view text, std::string_view prefix) {
  if (!text.starts_with(prefix) || !text.ends_with(')')) return {};
  text.remove_prefix(prefix.size());
  text.remove_suffix(1);
  return text;
}

}  // namespace

int64_t InputIndexOf(std::string_view descriptor) {
  const size_t found = descriptor.find(kPlainInput);
  if (found == descriptor.npos) return -1;
  descriptor.remove_prefix(found + kPlainInput.size());
  int64_t index = -1;
  std::from_chars(descriptor.data(), descriptor.data() + descriptor.size(), index);
  return index;
}

std::vector<InputName> InputNamesOf(const CompiledProgram& program) {
  std::vector<InputName> names(program.inputs.size());
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string& name = program.inputs[i];
    names[i].text = name;
    names[i].is_parameter =
        name.find("_parameters_") != name.npos || name.find("_buffers_") != name.npos;
  }
  for (const NodeId node : program.forward->placeholders()) {
    const int64_t index = InputIndexOf(program.forward->attribute(node, kDescriptor));
    if (index < 0) continue;
    const auto at = static_cast<size_t>(index);
    if (at >= names.size()) names.resize(at + 1);
    const std::string path = StatedPath(*program.forward, node);
    if (!path.empty()) names[at] = {.text = WithoutWrappers(path), .is_parameter = true};
  }
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i].text.empty()) names[i].text = fmt::format("input {}", i);
  return names;
}

std::string KeyOf(std::string_view descriptor, const std::vector<InputName>& inputs) {
  descriptor = WithoutSubclass(descriptor);
  if (descriptor.empty() || descriptor == "None" || descriptor.starts_with("SavedForBackwards"))
    return "";
  if (const std::string_view output = InsideCall(descriptor, "PlainAOTOutput(idx=");
      !output.empty())
    return fmt::format("output {}", output);
  if (const std::string_view of = InsideCall(descriptor, "TangentAOTInput(output="); !of.empty())
    return "tangent of " + KeyOf(of, inputs);
  if (const std::string_view of = InsideCall(descriptor, "GradAOTOutput(grad_of="); !of.empty())
    return "gradient of " + KeyOf(of, inputs);
  const int64_t index = InputIndexOf(descriptor);
  if (index < 0 || static_cast<size_t>(index) >= inputs.size()) return std::string(descriptor);
  const std::string& name = inputs[static_cast<size_t>(index)].text;
  if (!InsideCall(descriptor, kPlainInput).empty()) return name;
  return fmt::format("{} of {}", descriptor.substr(0, descriptor.find('(')), name);
}

std::vector<KeyedOutput> OutputsOf(const Graph& graph, const std::vector<InputName>& inputs) {
  std::vector<KeyedOutput> outputs;
  std::string_view lines = graph.attribute(graph.output(), kDescriptors);
  const Arg& returned = graph.args(graph.output())[0];
  size_t position = 0, index = 0;
  for (const Arg& element : graph.elements(returned)) {
    const std::string_view line = TakeLine(lines);
    if (element.is_value()) {
      std::string key = KeyOf(line, inputs);
      if (!key.empty()) outputs.push_back({std::move(key), position, index, InputIndexOf(line)});
      ++index;
    }
    ++position;
  }
  return outputs;
}

std::vector<std::string> PlaceholderKeys(const Graph& graph, const std::vector<InputName>& inputs) {
  std::vector<std::string> keys;
  for (const NodeId node : graph.placeholders())
    keys.push_back(KeyOf(graph.attribute(node, kDescriptor), inputs));
  return keys;
}

}  // namespace strata::prove
