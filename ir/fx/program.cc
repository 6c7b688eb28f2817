#include "ir/fx/program.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/source_error.h"
#include "base/text.h"
#include "ir/infer/infer_types.h"
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

  struct Input {
    TypeId type;  ///< none: not a tensor
    size_t at;    ///< of its line's first word in the text
  };

  Result<std::vector<Input>> Run() {
    std::vector<Input> inputs;
    size_t line_begin = text_.find('\n', FindLine(text_, kLoadArgs));
    while (line_begin != std::string_view::npos && line_begin + 1 < text_.size()) {
      at_ = line_begin + 1;
      line_begin = text_.find('\n', at_);
      limit_ = std::min(line_begin, text_.size());
      if (at_ < limit_ && text_[at_] != ' ' && text_[at_] != '\r') break;
      SkipBlanks();
      const size_t begin = at_;
      if (Eat("reader.tensor(")) {
        STRATA_TRY(const TypeId type, ReadTensor());
        inputs.push_back({.type = type, .at = begin});
      } else if (Eat("reader.storage(") || Rest().find(" = reader.storage(") != npos) {
        ReadStorage();
      } else if (Eat("reader.symint(")) {
        STRATA_TRY(const TypeId type, ReadNumber());
        inputs.push_back({.type = type, .at = begin});
      } else if (Eat("reader.")) {
        inputs.push_back({.type = {}, .at = begin});  // const, unsupported
      }
    }
    return inputs;
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

  /// A number or an expression of symbols, up to a comma or the bracket around it.
  Result<DimId> ReadSize() {
    SkipBlanks();
    const size_t begin = at_;
    int depth = 0;
    for (; at_ < limit_; ++at_) {
      if (depth == 0 && (text_[at_] == ',' || text_[at_] == ')')) break;
      depth += text_[at_] == '(' ? 1 : text_[at_] == ')' ? -1 : 0;
    }
    Result<DimId> size = module_.dims().Parse(TrimBlanks(text_.substr(begin, at_ - begin)));
    const auto number = size ? module_.dims().AsConst(*size) : std::nullopt;
    const bool is_size = size && !(number && *number < 0);
    if (is_size) return size;
    at_ = begin;
    return Expected("a size");
  }

  /// `(6, 8*((u0 + 7)//8))`
  Result<std::vector<DimId>> ReadSizes() {
    std::vector<DimId> sizes;
    if (!Eat("(")) return Expected("'(' and sizes");
    while (!Eat(")")) {
      STRATA_TRY(const DimId size, ReadSize());
      sizes.push_back(size);
      if (!Eat(",") && !Rest().starts_with(")")) return Expected("',' or ')'");
    }
    return sizes;
  }

  /// `512)  # _local_scalar_dense_3`, after the bracket. The third number that a program reads is
  /// the symbol u3 in the sizes of its tensors.
  Result<TypeId> ReadNumber() {
    STRATA_TRY(const DimId size, ReadSize());
    const auto value = module_.dims().AsConst(size);
    constexpr std::string_view kRead = "_local_scalar_dense";
    const size_t name = Rest().find(kRead);
    if (value && name != npos) {
      std::string_view number = TrimBlanks(Rest().substr(name + kRead.size()));
      if (number.ends_with('\r')) number.remove_suffix(1);
      if (number.starts_with('_')) number.remove_prefix(1);
      const std::string symbol = fmt::format("u{}", number.empty() ? "0" : number);
      module_.dims().Sym(symbol);
      module_.dims().SetSymbol({.name = module_.Intern(symbol), .hint = value});
    }
    Type type;
    type.kind = TypeKind::kSymInt;
    type.dim = size;
    return module_.types().Intern(type);
  }

  /// `buf0, (6, 8), (1, 6), dtype=torch.int64, is_leaf=True)`, after the bracket.
  Result<TypeId> ReadTensor() {
    const std::string_view storage = TakeName();
    if (!Eat(",")) return Expected("','");
    STRATA_TRY(std::vector<DimId> sizes, ReadSizes());
    const size_t rank = sizes.size();
    Type type;
    type.dtype = DType::kF32;
    if (const auto device = devices_.find(storage); device != devices_.end())
      type.device = module_.Intern(device->second);
    type = module_.types().Contiguous(std::move(type), std::move(sizes));
    while (Eat(",")) {
      if (Eat("dtype=")) {
        Eat("torch.");
        const size_t name_at = at_;
        const auto named = DTypeFromTorchName(fmt::format("torch.{}", TakeName()));
        if (!named) {
          at_ = name_at;
          return Expected("a dtype of PyTorch");
        }
        type.dtype = *named;
        continue;
      }
      SkipBlanks();
      if (Rest().starts_with("(")) {
        STRATA_TRY(type.strides, ReadSizes());
        if (type.strides.size() != rank) return Expected("as many strides as sizes before");
      } else {
        while (at_ < limit_ && text_[at_] != ',' && text_[at_] != ')')
          ++at_;
      }
    }
    if (!Eat(")")) return Expected("',' or ')'");
    return module_.types().Intern(type);
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
  STRATA_TRY(const std::vector<InputReader::Input> given,
             InputReader(text, options, graph.module()).Run());
  const std::vector<NodeId> inputs = graph.placeholders();
  if (given.size() < inputs.size()) {
    return ErrorAt(
        options.file, text, given.empty() ? FindLine(text, kLoadArgs) : given.back().at,
        fmt::format("load_args ends after {} of the {} inputs of forward: nothing for {}",
                    given.size(), inputs.size(), graph.name(inputs[given.size()])),
        options.place);
  }
  if (given.size() > inputs.size()) {
    return ErrorAt(
        options.file, text, given[inputs.size()].at,
        fmt::format("load_args gives {} inputs, and forward takes {}", given.size(), inputs.size()),
        options.place);
  }
  {
    Rewriter rewriter(graph);
    for (size_t i = 0; i < inputs.size(); ++i)
      if (given[i].type.valid()) rewriter.SetType(graph.result(inputs[i]), given[i].type);
  }
  program.unknown = InferTypes(graph);
  return program;
}

}  // namespace strata
