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

}  // namespace

void CommentPrinter::Append(NodeId id, std::string& out) {
  AppendMetadata(id, out);
  if (!graph_.attributes(id).empty()) return AppendParts(id, out);
  const auto are_alike = [&](const Node& a, const Node& b) {
    return a.module == b.module && a.loc == b.loc && a.phase == b.phase;
  };
  if (!parts_of_.valid() || !are_alike(graph_.node(id), graph_.node(parts_of_))) {
    parts_of_ = id;
    parts_.clear();
    AppendParts(id, parts_);
  }
  out += parts_;
}

void CommentPrinter::AppendMetadata(NodeId id, std::string& out) const {
  const Module& module = graph_.module();
  const Node& node = graph_.node(id);
  Pairs pairs("# ", " ", out);
  if (node.phase == Phase::kBackward && style_.marks_by_key)
    pairs.Begin("autograd_backward") += "True";
  if (node.seq_nr >= 0) AppendInt(node.seq_nr, pairs.Begin("seq_nr"));
  for (const auto& [key_id, value_id] : graph_.attributes(id)) {
    const std::string_view key = module.str(key_id);
    if (!IsTextKey(key)) pairs.Begin(key) += module.str(value_id);
  }
  pairs.End();
}

void CommentPrinter::AppendAnnotation(NodeId id, std::string& out) const {
  const Module& module = graph_.module();
  const Node& node = graph_.node(id);
  Pairs pairs(" Annotation: {", "}", out);
  if (node.module.valid()) AppendQuoted(module.str(node.module), pairs.Begin("'module_fqn'"));
  for (const auto& [key_id, value_id] : graph_.attributes(id)) {
    const std::string_view key = module.str(key_id);
    if (!key.starts_with(kCustomPrefix)) continue;
    std::string quoted;
    AppendQuoted(key.substr(kCustomPrefix.size()), quoted);
    pairs.Begin(quoted) += module.str(value_id);
  }
  pairs.End();
}

/// All from the `#` before the known parts.
void CommentPrinter::AppendParts(NodeId id, std::string& out) const {
  const Module& module = graph_.module();
  const Node& node = graph_.node(id);
  out += '#';
  AppendAnnotation(id, out);
  const std::string_view recompute = graph_.attribute(id, "recompute");
  const std::string_view ac_graph_id = graph_.attribute(id, "ac_graph_id");
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
  if (node.phase == Phase::kBackward && style_.marks_by_prefix) out += " Backward of forward node:";
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
