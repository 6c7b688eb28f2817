#include "refs/history/generated_code.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <map>
#include <system_error>
#include <utility>

#include "tlparse-export/torch_trace/read/log_graphs.h"
#include "tlparse-export/torch_trace/read/python_json.h"

namespace strata {
namespace {

using Fields = std::vector<JsonField>;

/// `triton_poi_fused_add_0:3` in its parts. Older versions have no number of the call: 0.
std::pair<std::string, int64_t> NameAndNumber(std::string_view key) {
  const size_t colon = key.rfind(':');
  int64_t number = 0;
  if (colon == std::string_view::npos) return {std::string(key), 0};
  const auto [end, error] =
      std::from_chars(key.data() + colon + 1, key.data() + key.size(), number);
  const bool is_number = error == std::errc() && end == key.data() + key.size();
  return {std::string(is_number ? key.substr(0, colon) : key), is_number ? number : 0};
}

}  // namespace

bool IsGeneratedCode(std::string_view record) {
  return record.starts_with("inductor_") && record.ends_with("_code");
}

std::string NameOfCode(std::string_view record, std::string_view text) {
  return CodeTakesTangents(text) ? BackwardName(record) : std::string(record);
}

std::string AotIdOfCode(std::string_view text) {
  constexpr std::string_view kBegin = "# AOT ID: ['", kEnd = "']";
  if (!text.starts_with(kBegin)) return "";
  text.remove_prefix(kBegin.size());
  const std::string_view line = text.substr(0, text.find('\n'));
  return line.ends_with(kEnd) ? std::string(line.substr(0, line.size() - kEnd.size())) : "";
}

bool MapsKernels(std::string_view record) {
  return record.starts_with("inductor_provenance_tracking_node_mappings") ||
         record == "inductor_triton_kernel_to_post_grad_nodes";
}

std::vector<KernelCall> ReadKernelCalls(std::string_view json) {
  Fields fields = ReadJsonObject(json).value_or(Fields{});
  const auto inner = std::ranges::find(fields, "cppCodeToPost", &JsonField::key);
  if (inner != fields.end()) fields = ReadJsonObject(inner->value).value_or(Fields{});
  std::multimap<int64_t, KernelCall> calls;  // by number
  for (const JsonField& field : fields) {
    const auto list = ReadJsonArray(field.value);
    if (!list) continue;
    auto [name, number] = NameAndNumber(field.key);
    KernelCall call{std::move(name), {}};
    for (const std::string_view entry : *list)
      call.nodes.push_back(ReadJsonString(entry).value_or(""));
    calls.emplace(number, std::move(call));
  }
  std::vector<KernelCall> in_order;
  for (auto& [number, call] : calls)
    in_order.push_back(std::move(call));
  return in_order;
}

}  // namespace strata
