#include "runtime/codegen/flex_shape.h"

#include <cmath>
#include <iterator>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "passes/flex/flex_node.h"
#include "runtime/codegen/formulas.h"

namespace strata {

const std::string_view kFlexArithmetic =
    R"code(STRATA_INLINE float strata_magnitude(float x) { return strata_abs(x); }
STRATA_INLINE int64_t strata_magnitude(int64_t x) { return x < 0 ? -x : x; }
STRATA_INLINE int32_t strata_magnitude(int32_t x) { return x < 0 ? -x : x; }
// As ATen: towards minus infinity, also of whole numbers.
template <class A, class B> STRATA_INLINE auto strata_floor_divide(A a, B b) {
  if constexpr ((A)1 / (A)2 == 0 && (B)1 / (B)2 == 0) {  // of whole numbers
    if (b == 0) return (int64_t)0;
    const int64_t quotient = (int64_t)a / b;
    return quotient * b != a && (a < 0) != (b < 0) ? quotient - 1 : quotient;
  } else {
    return strata_floor((float)a / (float)b);
  }
}
template <class A, class B> STRATA_INLINE auto strata_remainder(A a, B b) {
  return a - strata_floor_divide(a, b) * b;
}
)code";

namespace {

using Kind = FlexProgram::Kind;

std::string_view TypeOf(Kind kind) {
  switch (kind) {
    case Kind::kBool:
      return "bool";
    case Kind::kInt:
      return "int64_t";
    case Kind::kFloat:
      return "float";
  }
  return "";
}

std::string_view ElementType(DType dtype) {
  switch (dtype) {
    case DType::kBool:
    case DType::kU8:
      return "uint8_t";
    case DType::kI8:
      return "int8_t";
    case DType::kI16:
      return "int16_t";
    case DType::kI32:
      return "int32_t";
    case DType::kI64:
      return "int64_t";
    default:
      return MemoryType(dtype);
  }
}

// {0}, {1}, {2} are the operands, {T} the type of the result. C++ promotes as ATen does: condition,
// whole number, float.
constexpr std::pair<std::string_view, std::string_view> kFlexFormulas[] = {
    {"abs", "strata_magnitude({0})"},
    {"add", "{0} + {1}"},
    {"and", "(bool)({0} & {1})"},
    {"cast", "({T}){0}"},
    {"constant", "({T}){0}"},
    {"div", "(float){0} / (float){1}"},
    {"eq", "{0} == {1}"},
    {"exp", "strata_exp((float){0})"},
    {"floor_divide", "strata_floor_divide({0}, {1})"},
    {"ge", "{0} >= {1}"},
    {"gt", "{0} > {1}"},
    {"le", "{0} <= {1}"},
    {"log", "strata_log((float){0})"},
    {"lt", "{0} < {1}"},
    {"maximum", "strata_max(({T}){0}, ({T}){1})"},
    {"minimum", "-strata_max(-({T}){0}, -({T}){1})"},
    {"mul", "{0} * {1}"},
    {"ne", "{0} != {1}"},
    {"neg", "-{0}"},
    {"not", "!{0}"},
    {"or", "(bool)({0} | {1})"},
    {"relu", "({0} < ({T})0 ? ({T})0 : ({T}){0})"},
    {"remainder", "strata_remainder({0}, {1})"},
    {"rsub", "{1} - {0}"},
    {"sigmoid", "1.0f / (1.0f + strata_exp(-(float){0}))"},
    {"sqrt", "strata_sqrt((float){0})"},
    {"sub", "{0} - {1}"},
    {"tanh", "strata_tanh((float){0})"},
    {"where", "({0} ? ({T}){1} : ({T}){2})"},
};

std::string_view FormulaOf(std::string_view code) {
  for (const auto& [known, formula] : kFlexFormulas)
    if (known == code) return formula;
  STRATA_CHECK(false, "no formula for {}", code);
  return "";
}

/// Writes one body as a member function.
class BodyWriter {
 public:
  BodyWriter(const FlexProgram& program, const std::vector<FlexKernel::Buffer>& buffers,
             std::string_view prefix)
      : program_(program), buffers_(buffers), prefix_(prefix) {}

  std::string Run() {
    std::string text;
    for (size_t i = 0; i < program_.ops.size(); ++i) {
      if (program_.ops[i].code == "input") continue;
      fmt::format_to(std::back_inserter(text), "    const auto v{} = {};\n", i,
                     ValueOf(program_.ops[i]));
    }
    fmt::format_to(std::back_inserter(text), "    return {};\n", NameOf(program_.result));
    return text;
  }

 private:
  std::string NameOf(const FlexProgram::Operand& operand) const {
    if (operand.op < 0) {
      if (operand.kind == Kind::kFloat) return NumberText(operand.number, DType::kF32);
      if (operand.kind == Kind::kBool) return operand.number != 0.0 ? "true" : "false";
      const auto number = static_cast<int64_t>(operand.number);
      const bool is_wide = number != static_cast<int32_t>(number);
      return fmt::format("({}){}", is_wide ? "int64_t" : "int32_t", number);
    }
    const FlexProgram::Op& op = program_.ops[static_cast<size_t>(operand.op)];
    if (op.code != "input") return fmt::format("v{}", operand.op);
    constexpr std::string_view kScalars[] = {"score", "b", "h", "q", "k", "gradient"};
    const size_t first = program_.role == FlexRole::kMask ? 1 : 0;
    return std::string(kScalars[first + static_cast<size_t>(op.index)]);
  }

  std::string ValueOf(const FlexProgram::Op& op) const {
    if (op.code == "load") return LoadOf(op);
    const std::string_view formula = FormulaOf(op.code);
    std::string text;
    for (size_t i = 0; i < formula.size(); ++i) {
      if (formula[i] != '{') {
        text += formula[i];
        continue;
      }
      const char what = formula[i + 1];
      text += what == 'T' ? std::string(TypeOf(op.kind))
                          : NameOf(op.operands[static_cast<size_t>(what - '0')]);
      i += 2;
    }
    return text;
  }

  std::string AddressOf(const FlexProgram::Operand& operand) const {
    const std::string name = NameOf(operand);
    return name == "k" ? "key" : fmt::format("(int64_t){}", name);
  }

  std::string LoadOf(const FlexProgram::Op& op) const {
    const FlexKernel::Buffer& buffer = buffers_[static_cast<size_t>(op.index)];
    std::string index = "0";
    for (size_t i = 0; i < op.operands.size(); ++i)
      index += fmt::format(" + {} * {}", AddressOf(op.operands[i]), buffer.strides[i]);
    const std::string element = fmt::format("buffers.{}{}[{}]", prefix_, op.index, index);
    if (op.kind == Kind::kFloat) return fmt::format("(float)strata_load({})", element);
    return op.kind == Kind::kBool ? fmt::format("(bool){}", element) : element;
  }

  const FlexProgram& program_;
  const std::vector<FlexKernel::Buffer>& buffers_;
  std::string_view prefix_;
};

/// Writes the struct.
class ShapeWriter {
 public:
  ShapeWriter(const FlexKernel& kernel, std::string_view name) : kernel_(kernel), name_(name) {}

  std::string Run() {
    Line("struct {} {{", name_);
    WriteSizes();
    WriteBuffers();
    const bool has_scores = kernel_.kind != FlexKernel::Kind::kBlockMask;
    if (has_scores) {
      WriteBody("float score_mod(const Buffers& buffers, float score, ", kernel_.score_mod,
                kernel_.score_buffers, "s");
    }
    WriteBody("bool mask_mod(const Buffers& buffers, ", kernel_.mask_mod, kernel_.mask_buffers,
              "m");
    if (kernel_.kind == FlexKernel::Kind::kBackward) {
      WriteBody("float joint(const Buffers& buffers, float score, float gradient, ",
                kernel_.joint_graph, kernel_.score_buffers, "s");
    }
    Line("}};");
    return std::move(text_);
  }

 private:
  template <class... Args>
  void Line(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += '\n';
  }

  void WriteSizes() {
    const FlexKernel& k = kernel_;
    const std::pair<std::string_view, int64_t> sizes[] = {{"batch", k.batch},
                                                          {"heads", k.heads},
                                                          {"kv_heads", k.kv_heads},
                                                          {"queries", k.queries},
                                                          {"keys", k.keys},
                                                          {"width", k.width},
                                                          {"value_width", k.value_width},
                                                          {"query_block", k.query_block},
                                                          {"key_block", k.key_block},
                                                          {"mask_batch", k.mask_batch},
                                                          {"mask_heads", k.mask_heads}};
    Line("  using Element = {};", MemoryType(k.dtype));
    for (const auto& [name, size] : sizes)
      Line("  static constexpr int64_t {} = {};", name, size);
    const int64_t dense[] = {k.heads * k.queries, k.queries, 1};
    Line("  static constexpr bool is_causal = {};", k.is_causal);
    Line("  static constexpr int64_t logsumexp_strides[] = {{{}}};",
         k.is_causal ? fmt::join(k.logsumexp_strides, ", ") : fmt::join(dense, ", "));
    Line("  static constexpr float scale = {};", NumberText(k.scale, DType::kF32));
    constexpr std::string_view kTensors[] = {"query",    "key",       "value",   "out",
                                             "gradient", "query_out", "key_out", "value_out"};
    for (size_t i = 0; i < std::size(kTensors); ++i) {
      Line("  static constexpr int64_t {}_strides[] = {{{}}};", kTensors[i],
           fmt::join(k.strides[i], ", "));
    }
    Line("  static constexpr int results = {};", FirstBuffer() + NumBuffers());
  }

  size_t FirstBuffer() const {
    const size_t num_blocks = kernel_.is_causal ? 0 : kNumBlockTensors;
    switch (kernel_.kind) {
      case FlexKernel::Kind::kForward:
        return 3 + num_blocks;
      case FlexKernel::Kind::kBackward:
        return 6 + num_blocks;
      case FlexKernel::Kind::kBlockMask:
        return 0;
    }
    return 0;
  }
  size_t NumBuffers() const { return kernel_.score_buffers.size() + kernel_.mask_buffers.size(); }

  void WriteBuffers() {
    Line("  struct Buffers {{");
    std::string initializers;
    size_t argument = FirstBuffer();
    for (const auto& [prefix, buffers] :
         {std::pair("s", &kernel_.score_buffers), std::pair("m", &kernel_.mask_buffers)}) {
      for (size_t i = 0; i < buffers->size(); ++i) {
        const std::string_view type = ElementType((*buffers)[i].dtype);
        Line("    const {}* {}{};", type, prefix, i);
        initializers += fmt::format("{}(const {}*)arguments[{}]", initializers.empty() ? "" : ", ",
                                    type, argument++);
      }
    }
    Line("  }};");
    Line("  static STRATA_INLINE Buffers buffers_of(void* const* arguments) {{ return {{{}}}; }}",
         initializers);
  }

  void WriteBody(std::string_view head, const FlexProgram& program,
                 const std::vector<FlexKernel::Buffer>& buffers, std::string_view prefix) {
    // The key as an address has 64 bits: loads of neighbours are seen to be such.
    Line("  static STRATA_INLINE {}int32_t b, int32_t h, int32_t q, int64_t key) {{", head);
    Line("    const int32_t k = (int32_t)key;");
    text_ += BodyWriter(program, buffers, prefix).Run();
    Line("  }}");
  }

  const FlexKernel& kernel_;
  std::string_view name_;
  std::string text_;
};

}  // namespace

std::string FlexShape(const FlexKernel& kernel, std::string_view name) {
  return ShapeWriter(kernel, name).Run();
}

}  // namespace strata
