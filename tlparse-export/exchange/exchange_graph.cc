#include "tlparse-export/exchange/exchange_graph.h"

#include <algorithm>
#include <unordered_set>

#include <fmt/format.h>

#include "ir/fx/fx.h"
#include "ir/fx/operators.h"

namespace strata {
namespace {

constexpr std::string_view kNoComment = "# No stacktrace found for following nodes";
/// As deep as the FX parser reads.
constexpr size_t kMaxDepth = 40;

/// One line of text: a statement must not end early, nor begin a new one.
void AppendLine(size_t indent, std::string_view text, std::string& out) {
  out.append(indent, ' ');
  for (const char c : text)
    out += c == '\n' || c == '\r' ? ' ' : c;
  out += '\n';
}

/// Writes classes as FX does, with one parameter a line, and notes whose line each is.
class TextWriter {
 public:
  using Nodes = std::unordered_map<int64_t, ExchangeNode>;
  using Bodies = std::map<std::string, std::vector<int64_t>>;

  TextWriter(const Nodes& nodes, const Bodies& bodies, const ExchangeTexts& texts,
             std::vector<int64_t>& lines)
      : nodes_(nodes), bodies_(bodies), texts_(texts), lines_(lines) {}

  std::string Write(const std::string& class_name) {
    WriteClass("", fx::IsIdentifier(class_name) ? class_name : "GraphModule", 0, 0);
    return std::move(out_);
  }

 private:
  void Line(size_t indent, std::string_view text, int64_t id = 0) {
    AppendLine(indent, text, out_);
    lines_.push_back(id);
  }

  void WriteClass(const std::string& path, std::string_view class_name, size_t indent,
                  size_t depth) {
    const auto body = bodies_.find(path);
    if (body == bodies_.end()) return;
    Line(indent, fmt::format("class {}(torch.nn.Module):", class_name));
    WriteSignature(body->second, indent + 4);
    std::string_view last_comment;
    bool has_return = false, has_lines = false;
    for (const int64_t id : body->second) {
      const ExchangeNode& node = nodes_.at(id);
      if (node.kind == ExchangeNode::Kind::kInput || has_return) continue;
      has_lines = true;
      if (node.kind == ExchangeNode::Kind::kOutput) {
        Line(indent + 8, "return " + node.text, id);
        has_return = true;
        continue;
      }
      const auto comment = texts_.find(node.comment);
      const std::string_view text = comment == texts_.end() || !comment->second.starts_with('#')
                                        ? (last_comment.empty() ? std::string_view{} : kNoComment)
                                        : std::string_view(comment->second);
      if (text != last_comment) Line(indent + 8, text);
      last_comment = text;
      Line(indent + 8, node.text, id);
    }
    if (!has_lines) Line(indent + 8, "pass");
    if (depth < kMaxDepth) WriteChildren(path, indent + 4, depth + 1);
  }

  void WriteSignature(const std::vector<int64_t>& order, size_t indent) {
    Line(indent, "def forward(");
    Line(indent + 4, "self,");
    for (const int64_t id : order) {
      const ExchangeNode& node = nodes_.at(id);
      if (node.kind == ExchangeNode::Kind::kInput) Line(indent + 4, node.text + ",", id);
    }
    Line(indent, "):");
    for (const int64_t id : order) {
      const ExchangeNode& node = nodes_.at(id);
      if (node.kind != ExchangeNode::Kind::kInput || node.alias.empty()) continue;
      const std::string_view argument =
          std::string_view(node.text).substr(0, node.text.find_first_of(": ="));
      Line(indent + 4, fmt::format("{} = {}", node.alias, argument));
    }
  }

  void WriteChildren(const std::string& path, size_t indent, size_t depth) {
    const std::string prefix = path.empty() ? path : path + "/";
    for (const auto& [child, order] : bodies_) {
      if (child.size() <= prefix.size() || !child.starts_with(prefix)) continue;
      const std::string_view name = std::string_view(child).substr(prefix.size());
      if (!fx::IsIdentifier(name)) continue;  // a grandchild, or no name
      Line(0, "");
      WriteClass(child, name, indent, depth);
    }
  }

  const Nodes& nodes_;
  const Bodies& bodies_;
  const ExchangeTexts& texts_;
  std::vector<int64_t>& lines_;
  std::string out_;
};

}  // namespace

void ExchangeGraph::Apply(ExchangeRecord record) {
  for (ExchangeNode& node : record.nodes)
    nodes_.insert_or_assign(node.id, std::move(node));
  if (!record.class_name.empty()) class_name_ = std::move(record.class_name);
  if (record.bodies.empty()) return;
  bodies_.clear();
  // An id stands for one node of a graph and its bodies.
  std::unordered_set<int64_t> placed;
  for (ExchangeBody& body : record.bodies) {
    std::vector<int64_t>& order = bodies_[std::move(body.path)];
    for (const auto& [first, count] : body.order) {
      for (int64_t id = first; id < first + count; ++id) {
        // A range goes no further than the nodes that were written.
        if (!nodes_.contains(id)) break;
        if (placed.insert(id).second) order.push_back(id);
      }
    }
  }
  std::erase_if(nodes_, [&](const auto& node) { return !placed.contains(node.first); });
}

std::string ExchangeGraph::Text(const ExchangeTexts& texts, std::vector<int64_t>& lines) const {
  return TextWriter(nodes_, bodies_, texts, lines).Write(class_name_);
}

Result<ExchangeGraph::Built> ExchangeGraph::Build(const ExchangeTexts& texts,
                                                  ExchangeIds& ids) const {
  std::vector<int64_t> lines;
  const std::string text = Text(texts, lines);
  std::vector<StableId> line_ids(lines.size(), StableId::kNone);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i] != 0) line_ids[i] = ids.Of(lines[i]);
  }
  FxOptions options{.file = name_, .graph_name = name_};
  options.first_stable_id = ids.next();
  options.line_ids = &line_ids;
  STRATA_TRY(FxDocument document, ParseFx(text, options));
  Built built;
  for (const FxDiagnostic& diagnostic : document.diagnostics)
    built.warnings.push_back(fmt::format("{}: {}", diagnostic.what, diagnostic.skipped));
  ids.ReserveBelow(document.module->next_stable_id());
  built.module = std::move(document.module);
  return built;
}

}  // namespace strata
