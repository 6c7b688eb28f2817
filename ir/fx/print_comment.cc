#include "ir/fx/print_comment.h"

#include <fmt/format.h>

#include "base/python_literal.h"
#include "ir/fx/operators.h"
#include "ir/module.h"

namespace strata::fx {
namespace {

/// Attributes that are printed elsewhere than among a comment's `key: value` pairs.
bool IsTextKey(std::string_view key) {
  return key == kArgumentKey || key == kDescriptorKey || key == kPythonTypeKey ||
         key == "recompute" || key == "ac_graph_id" || key.starts_with(kCustomPrefix);
}

}  // namespace

std::string CommentOf(const Graph& graph, NodeId id, const CommentStyle& style) {
  const Module& module = graph.module();
  const Node& node = graph.node(id);
  const bool is_backward = node.phase == Phase::kBackward;
  std::string metadata, custom;
  const auto add = [](std::string& list, std::string_view key, std::string_view value) {
    if (!list.empty()) list += ", ";
    list += key;
    list += ": ";
    list += value;
  };
  if (is_backward && style.marks_by_key) add(metadata, "autograd_backward", "True");
  if (node.seq_nr >= 0) add(metadata, "seq_nr", std::to_string(node.seq_nr));
  if (node.module.valid()) {
    std::string quoted;
    AppendQuoted(module.str(node.module), quoted);
    add(custom, "'module_fqn'", quoted);
  }
  for (const auto& [key_id, value_id] : graph.attributes(id)) {
    const std::string_view key = module.str(key_id);
    if (key.starts_with(kCustomPrefix)) {
      std::string quoted;
      AppendQuoted(key.substr(kCustomPrefix.size()), quoted);
      add(custom, quoted, module.str(value_id));
    } else if (!IsTextKey(key)) {
      add(metadata, key, module.str(value_id));
    }
  }
  std::string comment;
  if (!metadata.empty()) comment += "# " + metadata + ' ';
  comment += '#';
  if (!custom.empty()) comment += " Annotation: {" + custom + '}';
  const std::string_view recompute = graph.attribute(id, "recompute");
  const std::string_view ac_graph_id = graph.attribute(id, "ac_graph_id");
  if (!ac_graph_id.empty()) {
    fmt::format_to(std::back_inserter(comment), " ac_graph_id: {}{}{}", ac_graph_id,
                   recompute.empty() ? "" : " - ", recompute);
  } else if (!recompute.empty()) {
    fmt::format_to(std::back_inserter(comment), " recompute: {}", recompute);
  }
  if (!node.loc.valid()) return comment + " No stacktrace found for following nodes";
  const SourceLoc& loc = module.loc(node.loc);
  if (is_backward && style.marks_by_prefix) comment += " Backward of forward node:";
  fmt::format_to(std::back_inserter(comment), " File: {}:{} in {}, code: {}", module.str(loc.file),
                 loc.line, module.str(loc.function), module.str(loc.code));
  return comment;
}

}  // namespace strata::fx
