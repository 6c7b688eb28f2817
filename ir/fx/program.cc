#include "ir/fx/program.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/source_error.h"
#include "base/text.h"
#include "ir/infer_types.h"
#include "ir/rewriter.h"

namespace strata {
namespace {

constexpr std::string_view kClass = "class Repro(torch.nn.Module):";
constexpr std::string_view kLoadArgs = "def load_args(";

/// The offset of the first line that begins so; npos: none.
size_t FindLine(std::string_view text, std::string_view begin) {
  if (text.starts_with(begin)) return 0;
  const size_t before = text.find("\n" + std::string(begin));
  return before == std::string_view::npos ? before : before + 1;
}

/// The lines of the class without its constructor, others empty: places stay what they are.
std::string OnlyGraph(std::string_view text) {
  std::string only;
  bool is_in_class = false, is_in_constructor = false;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    const bool is_outer = !line.empty() && line[0] != ' ' && line[0] != '\r' && line[0] != '#';
    if (is_outer) is_in_class = line.starts_with(kClass);
    if (line.starts_with("    def ")) is_in_constructor = line.starts_with("    def __init__(");
    if (is_in_class && (is_outer || !is_in_constructor)) only += line;
    if (end < text.size()) only += '\n';
    at = end + 1;
  }
  return only;
}

/// Reads the lines of `load_args`.
class InputReader {
 public:
  InputReader(std::string_view text, const FxOptions& options, Module& module)
      : text_(text), options_(options), module_(module) {}

  /// A type for each input; none: not a tensor.
  Result<std::vector<TypeId>> Run() {
    std::vector<TypeId> types;
    size_t line_begin = text_.find('\n', FindLine(text_, kLoadArgs));
    while (line_begin != std::string_view::npos && line_begin + 1 < text_.size()) {
      at_ = line_begin + 1;
      line_begin = text_.find('\n', at_);
      limit_ = std::min(line_begin, text_.size());
      if (at_ < limit_ && text_[at_] != ' ' && text_[at_] != '\r') break;
      SkipBlanks();
      if (Eat("reader.tensor(")) {
        STRATA_TRY(const TypeId type, ReadTensor());
        types.push_back(type);
      } else if (Eat("reader.storage(") || Rest().find(" = reader.storage(") != npos) {
        ReadStorage();
      } else if (Eat("reader.")) {
        types.emplace_back();  // symint, const, unsupported
      }
    }
    return types;
  }

 private:
  static constexpr size_t npos = std::string_view::npos;

  std::string_view Rest() const { return text_.substr(at_, limit_ - at_); }
  void SkipBlanks() {
    while (at_ < limit_ && text_[at_] == ' ')
      ++at_;
  }
  bool Eat(std::string_view token) {
    SkipBlanks();
    if (!Rest().starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  Error Expected(std::string_view what) const {
    return ErrorAt(options_.file, text_, at_, fmt::format("expected {}", what), options_.place);
  }
  std::string_view TakeName() {
    SkipBlanks();
    const size_t begin = at_;
    while (at_ < limit_ && IsWordChar(text_[at_]))
      ++at_;
    return text_.substr(begin, at_ - begin);
  }

  /// `buf0 = reader.storage(None, 192, device=device(type='cuda', index=0))`: its device.
  void ReadStorage() {
    const std::string_view name = TakeName();
    const auto after = [&](std::string_view key) {
      const size_t found = Rest().find(key);
      if (found == npos) return std::string_view();
      const std::string_view value = Rest().substr(found + key.size());
      size_t end = 0;
      while (end < value.size() && IsWordChar(value[end]))
        ++end;
      return value.substr(0, end);
    };
    const std::string_view type = after("device(type='"), index = after("index=");
    if (type.empty()) return;
    devices_[name] = index.empty() ? std::string(type) : fmt::format("{}:{}", type, index);
  }

  /// `(6, 8)`
  Result<std::vector<int64_t>> ReadSizes() {
    std::vector<int64_t> sizes;
    if (!Eat("(")) return Expected("'(' and sizes");
    while (!Eat(")")) {
      SkipBlanks();
      int64_t size = 0;
      const char* begin = text_.data() + at_;
      const auto [end, error] = std::from_chars(begin, text_.data() + limit_, size);
      if (error != std::errc() || size < 0) return Expected("a size");
      at_ += static_cast<size_t>(end - begin);
      sizes.push_back(size);
      if (!Eat(",") && !Rest().starts_with(")")) return Expected("',' or ')'");
    }
    return sizes;
  }

  /// `buf0, (6, 8), (1, 6), dtype=torch.int64, is_leaf=True)`, after the bracket.
  Result<TypeId> ReadTensor() {
    const std::string_view storage = TakeName();
    if (!Eat(",")) return Expected("','");
    STRATA_TRY(const std::vector<int64_t> sizes, ReadSizes());
    std::vector<int64_t> strides(sizes.size(), 1);
    for (size_t dim = sizes.size(); dim-- > 1;)
      strides[dim - 1] = strides[dim] * std::max<int64_t>(sizes[dim], 1);
    DType dtype = DType::kF32;
    while (Eat(",")) {
      if (Eat("dtype=")) {
        Eat("torch.");
        const size_t name_at = at_;
        const auto named = DTypeFromTorchName(fmt::format("torch.{}", TakeName()));
        if (!named) {
          at_ = name_at;
          return Expected("a dtype of PyTorch");
        }
        dtype = *named;
        continue;
      }
      SkipBlanks();
      if (Rest().starts_with("(")) {
        STRATA_TRY(strides, ReadSizes());
        if (strides.size() != sizes.size()) return Expected("as many strides as sizes before");
      } else {
        while (at_ < limit_ && text_[at_] != ',' && text_[at_] != ')')
          ++at_;
      }
    }
    if (!Eat(")")) return Expected("',' or ')'");
    const auto device = devices_.find(storage);
    return module_.types().Parse(fmt::format("{}[{}][{}]{}", ShortName(dtype),
                                             fmt::join(sizes, ", "), fmt::join(strides, ", "),
                                             device == devices_.end() ? "" : device->second));
  }

  const std::string_view text_;
  const FxOptions& options_;
  Module& module_;
  size_t at_ = 0, limit_ = 0;
  std::map<std::string_view, std::string> devices_;  // of storages
};

}  // namespace

bool LooksLikeFxProgram(std::string_view text) {
  const size_t graph = FindLine(text, kClass);
  return graph != std::string_view::npos && FindLine(text, kLoadArgs) != std::string_view::npos &&
         text.find("    def forward(", graph) != std::string_view::npos;
}

Result<FxProgram> ParseFxProgram(std::string_view text, const FxOptions& options) {
  STRATA_TRY(FxDocument document, ParseFx(OnlyGraph(text), options));
  FxProgram program{.document = std::move(document), .unknown = {}};
  Graph& graph = program.document.graph();
  STRATA_TRY(const std::vector<TypeId> types, InputReader(text, options, graph.module()).Run());
  const std::vector<NodeId> inputs = graph.placeholders();
  if (types.size() != inputs.size()) {
    return ErrorAt(
        options.file, text, FindLine(text, kLoadArgs),
        fmt::format("load_args gives {} inputs, and forward takes {}", types.size(), inputs.size()),
        options.place);
  }
  {
    Rewriter rewriter(graph);
    for (size_t i = 0; i < inputs.size(); ++i)
      if (types[i].valid()) rewriter.SetType(graph.result(inputs[i]), types[i]);
  }
  program.unknown = InferTypes(graph);
  return program;
}

}  // namespace strata
