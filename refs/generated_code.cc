#include "refs/generated_code.h"

#include <algorithm>

#include "tlparse-export/torch_trace/read/log_graphs.h"
#include "tlparse-export/torch_trace/read/python_json.h"

namespace strata {
namespace {

using Fields = std::vector<JsonField>;

/// Without the number of the call that newer versions add: `triton_poi_fused_add_0:3`.
std::string_view WithoutCall(std::string_view kernel) {
  const size_t colon = kernel.rfind(':');
  if (colon == std::string_view::npos || colon + 1 == kernel.size()) return kernel;
  const bool is_number =
      std::ranges::all_of(kernel.substr(colon + 1), [](char c) { return c >= '0' && c <= '9'; });
  return is_number ? kernel.substr(0, colon) : kernel;
}

}  // namespace

bool IsGeneratedCode(std::string_view record) {
  return record.starts_with("inductor_") && record.ends_with("_code");
}

std::string NameOfCode(std::string_view record, std::string_view text) {
  return CodeTakesTangents(text) ? BackwardName(record) : std::string(record);
}

bool MapsKernels(std::string_view record) {
  return record.starts_with("inductor_provenance_tracking_node_mappings") ||
         record == "inductor_triton_kernel_to_post_grad_nodes";
}

NodesOfKernels ReadKernelNodes(std::string_view json) {
  Fields fields = ReadJsonObject(json).value_or(Fields{});
  const auto inner = std::ranges::find(fields, "cppCodeToPost", &JsonField::key);
  if (inner != fields.end()) fields = ReadJsonObject(inner->value).value_or(Fields{});
  NodesOfKernels kernels;
  for (const JsonField& field : fields) {
    const auto list = ReadJsonArray(field.value);
    if (!list) continue;
    std::vector<std::string>& nodes = kernels[std::string(WithoutCall(field.key))];
    for (const std::string_view entry : *list) {
      std::string node = ReadJsonString(entry).value_or("");
      if (std::ranges::find(nodes, node) == nodes.end()) nodes.push_back(std::move(node));
    }
  }
  return kernels;
}

}  // namespace strata
