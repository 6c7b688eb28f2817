#include "prove/foreign/dtensor_metadata.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace strata::prove {
namespace {

/// What follows `key` up to the bracket that closes the one at its end; "": there is none.
std::string_view Inside(std::string_view text, std::string_view key) {
  const size_t found = text.find(key);
  if (found == text.npos) return {};
  text.remove_prefix(found + key.size());
  int depth = 1;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '(' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == ']' || c == '}') --depth;
    if (depth == 0) return text.substr(0, i);
  }
  return {};
}

/// The elements of a list in brackets, without the blanks around them.
std::vector<std::string_view> ElementsOf(std::string_view list) {
  std::vector<std::string_view> elements;
  int depth = 0;
  size_t begin = 0;
  const auto add = [&](size_t end) {
    std::string_view element = list.substr(begin, end - begin);
    const size_t first = element.find_first_not_of(" \n\t");
    if (first == element.npos) return;
    element = element.substr(first, element.find_last_not_of(" \n\t") - first + 1);
    elements.push_back(element);
  };
  for (size_t i = 0; i < list.size(); ++i) {
    const char c = list[i];
    if (c == '(' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == ']' || c == '}') --depth;
    if (c != ',' || depth != 0) continue;
    add(i);
    begin = i + 1;
  }
  add(list.size());
  return elements;
}

std::optional<int64_t> IntegerOf(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<Term> TermOf(std::string_view text) {
  if (text == "Replicate()") return Term();
  if (text == "Partial(sum)") return Term{.kind = Term::Kind::kSum};
  if (text == "Partial(avg)") return Term{.kind = Term::Kind::kMean};
  if (!text.starts_with("Shard(")) return std::nullopt;
  const auto dim = IntegerOf(Inside(text, "Shard(dim="));
  if (!dim || *dim < 0) return std::nullopt;
  return Term{.kind = Term::Kind::kShard, .dim = *dim};
}

/// Of `DeviceMesh((dp=2, tp=2), 'cpu', stride=(2, 1))`; none: of another form.
std::vector<MeshAxis> AxesOf(std::string_view mesh) {
  std::vector<MeshAxis> axes;
  const std::vector<std::string_view> strides = ElementsOf(Inside(mesh, "stride=("));
  const std::vector<std::string_view> sizes = ElementsOf(Inside(mesh, "DeviceMesh(("));
  if (strides.size() != sizes.size()) return {};
  for (size_t i = 0; i < sizes.size(); ++i) {
    const size_t equals = sizes[i].find('=');
    const bool is_named = equals != std::string_view::npos;
    const auto size = IntegerOf(is_named ? sizes[i].substr(equals + 1) : sizes[i]);
    const auto stride = IntegerOf(strides[i]);
    if (!size || !stride || *size < 1 || *stride < 1) return {};
    axes.push_back({.name = std::string(is_named ? sizes[i].substr(0, equals) : ""),
                    .size = *size,
                    .stride = *stride});
  }
  return axes;
}

}  // namespace

DTensorSpecs ReadDTensorSpecs(std::string_view text, std::string_view list) {
  DTensorSpecs specs;
  const std::vector<std::string_view> elements = ElementsOf(Inside(text, std::string(list) + "=["));
  for (size_t i = 0; i < elements.size(); ++i) {
    if (!elements[i].starts_with("SubclassCreationMeta(")) continue;
    DTensorSpec& spec = specs[i];
    spec.axes =
        AxesOf(elements[i].substr(std::min(elements[i].find("DeviceMesh("), elements[i].size())));
    for (const std::string_view placement : ElementsOf(Inside(elements[i], "placements=(")))
      spec.texts.emplace_back(placement);
    for (const std::string& placement : spec.texts) {
      const std::optional<Term> term = TermOf(placement);
      if (term) spec.terms.push_back(*term);
    }
    if (spec.terms.size() != spec.texts.size() || spec.terms.size() != spec.axes.size())
      spec.terms.clear();
  }
  return specs;
}

}  // namespace strata::prove
