#include "viewer/compare/search.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <optional>
#include <re2/re2.h>
#include <unordered_map>

#include <fmt/format.h>

#include "base/text.h"
#include "base/unicode.h"
#include "diff/graph/parallel.h"
#include "scene/cost.h"
#include "scene/words.h"

namespace strata::viewer {
namespace {

/// Tests texts, each distinct one that is given with a key only once.
class Matcher {
 public:
  explicit Matcher(const std::string& text) : expression_(text, Options()) {
    if (!expression_.ok()) literal_.emplace(RE2::QuoteMeta(text), Options());
    if (std::ranges::all_of(text, IsWordChar)) word_ = ToLower(text);
  }
  bool Fits(std::string_view text) const {
    // A word is found without an expression, five times as fast. Letters outside of ASCII may equal
    // one of it in another case.
    if (!word_.empty() && std::ranges::all_of(text, IsAscii)) return HasWord(text);
    return RE2::PartialMatch(re2::StringPiece(text.data(), text.size()),
                             literal_ ? *literal_ : expression_);
  }

 private:
  static RE2::Options Options() {
    RE2::Options options;
    options.set_case_sensitive(false);
    options.set_log_errors(false);
    return options;
  }
  static bool IsAscii(char c) { return static_cast<unsigned char>(c) < 0x80; }
  static char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }
  static std::string ToLower(std::string text) {
    std::ranges::transform(text, text.begin(), Lower);
    return text;
  }
  bool HasWord(std::string_view text) const {
    for (size_t i = 0; i + word_.size() <= text.size(); ++i) {
      size_t k = 0;
      while (k < word_.size() && Lower(text[i + k]) == word_[k])
        ++k;
      if (k == word_.size()) return true;
    }
    return false;
  }

  RE2 expression_;
  std::optional<RE2> literal_;
  std::string word_;  // in lower case; "": the text is more than one word of ASCII
};

/// Whether a value is known, by what names it.
class Known {
 public:
  template <class Test>
  bool operator()(int64_t key, Test&& test) {
    const auto [known, is_new] = known_.try_emplace(key, false);
    if (is_new) known->second = test();
    return known->second;
  }

 private:
  std::unordered_map<int64_t, bool> known_;
};

using NodeTest = std::function<bool(SceneNodeId node)>;

std::optional<double> BytesOf(const Comparison& c, SceneNodeId node) {
  const ValueId value = c.listing_of(node).value(c.entity_of(node));
  const Graph& graph = c.graph_of(node);
  if (!value.valid() || !graph.value(value).type.valid()) return std::nullopt;
  const auto bytes = graph.module().types().Bytes(graph.value(value).type);
  return bytes ? std::optional<double>(static_cast<double>(*bytes)) : std::nullopt;
}

bool Compares(double value, const std::string& op, double limit) {
  if (op == "<") return value < limit;
  if (op == "<=") return value <= limit;
  if (op == ">") return value > limit;
  if (op == ">=") return value >= limit;
  return value == limit;
}

/// The test that `text` writes, if it is one of a property.
std::optional<NodeTest> PropertyTest(const Comparison& c, const std::string& text) {
  static const RE2 kTest(R"(\s*(\w+)\s*([<>]=?|=)\s*(\S+)\s*)");
  std::string key, op, wanted;
  if (!RE2::FullMatch(text, kTest, &key, &op, &wanted)) return std::nullopt;
  if (key == "bytes" || key == "flops") {
    char* end = nullptr;
    double limit = std::strtod(wanted.c_str(), &end);
    const std::string unit = end;
    limit *= unit == "KiB" ? 0x1p10 : unit == "MiB" ? 0x1p20 : unit == "GiB" ? 0x1p30 : 1;
    if (key == "bytes") {
      return [&c, op, limit](SceneNodeId node) {
        const std::optional<double> bytes = BytesOf(c, node);
        return bytes && Compares(*bytes, op, limit);
      };
    }
    return [&c, op, limit](SceneNodeId node) {
      const Entity& entity = c.listing_of(node)[c.entity_of(node)];
      return !entity.element.valid() && Compares(FlopsOf(c.graph_of(node), entity.node), op, limit);
    };
  }
  if (op != "=") return std::nullopt;
  if (key == "dtype")
    return [&c, wanted](SceneNodeId node) { return DtypeOf(c.TypeOf(node)) == wanted; };
  if (key == "phase")
    return [&c, wanted](SceneNodeId node) { return ToString(c.PhaseOf(node)) == wanted; };
  if (key == "status")
    return [&c, wanted](SceneNodeId node) {
      return ToString(c.StatusOf(node)) == wanted || WordOf(c.StatusOf(node)) == wanted;
    };
  return std::nullopt;
}

}  // namespace

namespace {

/// Hits among `nodes`.
std::vector<SceneNodeId> SearchRange(const Comparison& c, const Matcher& matcher,
                                     IdRange<SceneNodeId> nodes) {
  std::vector<SceneNodeId> hits;
  // Operators, types and modules repeat; they are distinguished by their ids in each module.
  Known operators, types, modules;
  for (SceneNodeId i : nodes) {
    const int64_t side = c.node(i).after.valid() ? 0 : int64_t{1} << 40;
    const Node& node = c.ir_node(i);
    const ValueId value = c.listing_of(i).value(c.entity_of(i));
    const TypeId type = value.valid() ? c.graph_of(i).value(value).type : TypeId{};
    const bool element = c.listing_of(i)[c.entity_of(i)].element.valid();
    const int64_t op = side + (element ? -2 : node.op.valid() ? node.op.index : -1);
    const auto attribute = [&] {
      if (element) return false;
      for (const auto& [key, tag] :
           c.graph_of(i).attributes(c.listing_of(i)[c.entity_of(i)].node)) {
        const Module& module = c.graph_of(i).module();
        if (matcher.Fits(fmt::format("{}={}", module.str(key), module.str(tag)))) return true;
      }
      return false;
    };
    if (matcher.Fits(c.NameOf(i)) || operators(op, [&] { return matcher.Fits(c.OperatorOf(i)); }) ||
        modules(c.node(i).cluster.index, [&] { return matcher.Fits(c.ModuleOf(i)); }) ||
        (type.valid() && types(side + type.index, [&] { return matcher.Fits(c.TypeOf(i)); })) ||
        attribute())
      hits.push_back(i);
  }
  return hits;
}

}  // namespace

std::vector<SceneNodeId> SearchNodes(const Comparison& c, const std::string& text) {
  std::vector<SceneNodeId> hits;
  if (text.empty()) return hits;
  if (const std::optional<NodeTest> test = PropertyTest(c, text)) {
    for (SceneNodeId i : c.nodes()) {
      if ((*test)(i)) hits.push_back(i);
    }
    return hits;
  }
  const Matcher matcher(text);
  const IdRange<SceneNodeId> all = c.nodes();
  const SceneNodeId half{c.size() / 2};
  std::vector<SceneNodeId> second;
  AtOnce(
      all.size(), [&] { hits = SearchRange(c, matcher, {all.begin_id(), half}); },
      [&] { second = SearchRange(c, matcher, {half, all.end_id()}); });
  hits.insert(hits.end(), second.begin(), second.end());
  return hits;
}

std::vector<SubjectId> SearchSubjects(const Contents& contents, const std::string& text) {
  std::vector<SubjectId> hits;
  if (text.empty()) return hits;
  const Matcher matcher(text);
  for (SubjectId id : IdsOf(contents.subjects)) {
    const Subject& s = contents.subjects[id];
    if (matcher.Fits(fmt::format("{} {} {}", s.name, s.graph, s.options))) hits.push_back(id);
  }
  return hits;
}

}  // namespace strata::viewer
