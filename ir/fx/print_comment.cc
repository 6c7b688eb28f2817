#include "ir/fx/print_comment.h"

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

/// Writes `key: value` pairs with commas between them, behind `begin` and before `end`; nothing
/// when there are none.
class Pairs {
 public:
  Pairs(std::string_view begin, std::string_view end, std::string& out)
      : begin_(begin), end_(end), out_(out) {}

  /// Begins a pair; the value follows.
  std::string& Begin(std::string_view key) {
    out_ += is_empty_ ? begin_ : ", ";
    is_empty_ = false;
    out_ += key;
    out_ += ": ";
    return out_;
  }
  void End() {
    if (!is_empty_) out_ += end_;
  }

 private:
  std::string_view begin_, end_;
  std::string& out_;
  bool is_empty_ = true;
};

void AppendMetadata(const Graph& graph, NodeId id, bool marks_backward, std::string& out) {
  const Module& module = graph.module();
  const Node& node = graph.node(id);
  Pairs pairs("# ", " ", out);
  if (marks_backward) pairs.Begin("autograd_backward") += "True";
  if (node.seq_nr >= 0) AppendInt(node.seq_nr, pairs.Begin("seq_nr"));
  for (const auto& [key_id, value_id] : graph.attributes(id)) {
    const std::string_view key = module.str(key_id);
    if (!IsTextKey(key)) pairs.Begin(key) += module.str(value_id);
  }
  pairs.End();
}

void AppendAnnotation(const Graph& graph, NodeId id, std::string& out) {
  const Module& module = graph.module();
  const Node& node = graph.node(id);
  Pairs pairs(" Annotation: {", "}", out);
  if (node.module.valid()) AppendQuoted(module.str(node.module), pairs.Begin("'module_fqn'"));
  for (const auto& [key_id, value_id] : graph.attributes(id)) {
    const std::string_view key = module.str(key_id);
    if (!key.starts_with(kCustomPrefix)) continue;
    std::string quoted;
    AppendQuoted(key.substr(kCustomPrefix.size()), quoted);
    pairs.Begin(quoted) += module.str(value_id);
  }
  pairs.End();
}

}  // namespace

void AppendComment(const Graph& graph, NodeId id, const CommentStyle& style, std::string& out) {
  const Module& module = graph.module();
  const Node& node = graph.node(id);
  const bool is_backward = node.phase == Phase::kBackward;
  AppendMetadata(graph, id, is_backward && style.marks_by_key, out);
  out += '#';
  AppendAnnotation(graph, id, out);
  const std::string_view recompute = graph.attribute(id, "recompute");
  const std::string_view ac_graph_id = graph.attribute(id, "ac_graph_id");
  if (!ac_graph_id.empty()) {
    out += " ac_graph_id: ";
    out += ac_graph_id;
    if (!recompute.empty()) out += " - ";
  } else if (!recompute.empty()) {
    out += " recompute: ";
  }
  out += recompute;
  if (!node.loc.valid()) {
    out += " No stacktrace found for following nodes";
    return;
  }
  const SourceLoc& loc = module.loc(node.loc);
  if (is_backward && style.marks_by_prefix) out += " Backward of forward node:";
  out += " File: ";
  out += module.str(loc.file);
  out += ':';
  AppendInt(loc.line, out);
  out += " in ";
  out += module.str(loc.function);
  out += ", code: ";
  out += module.str(loc.code);
}

}  // namespace strata::fx
