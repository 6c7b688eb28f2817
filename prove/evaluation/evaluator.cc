#include "prove/evaluation/evaluator.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/random.h"
#include "ir/complex_literal.h"
#include "ir/module.h"
#include "ir/ops.h"
#include "ir/taken_elements.h"
#include "prove/evaluation/bounds.h"
#include "prove/evaluation/inputs.h"
#include "prove/evaluation/integer_types.h"
#include "prove/evaluation/kept_laws.h"
#include "prove/evaluation/random_calls.h"
#include "prove/evaluation/rounding.h"
#include "prove/evaluation/unknown_calls.h"
#include "prove/ops/definitions.h"
#include "prove/ops/elementwise.h"
#include "prove/ops/sizes.h"

namespace strata::prove {
namespace {

/// A result is read by an element of a list as itself.
Argument ArgumentFrom(const Value& value) {
  if (const auto* tensor = std::get_if<Tensor>(&value)) return {*tensor};
  if (const auto* number = std::get_if<int64_t>(&value)) return {*number};
  if (const auto* body = std::get_if<GraphId>(&value)) return {*body};
  return {};
}

/// Whether the operator writes its result to its first argument: "aten.add_.Tensor".
bool IsInPlace(std::string_view op) {
  const size_t first = op.find('.');
  if (first == std::string_view::npos) return false;
  const std::string_view name = op.substr(first + 1, op.find('.', first + 1) - first - 1);
  return name.size() > 1 && name.ends_with('_') && !name.ends_with("__");
}

/// Whether `op` is the in-place form of a function by PyTorch's convention: `foo_(x, …)` writes
/// `foo(x, …)` to x.
bool HasFunctionalForm(std::string_view op) {
  return IsInPlace(op) && (op.starts_with("aten.") || op.starts_with("_c10d_functional."));
}

/// A call as text, without tensors: of the functional form of its operator, if it has one.
std::string FunctionalText(const Call& call) {
  std::string text = call.Literals();
  if (HasFunctionalForm(call.op())) text.erase(text.find("_.", text.find('.')), 1);
  return text;
}

/// Writes `result` to `target`, which keeps its sizes.
Status WriteTo(const Tensor& target, const Tensor& result) {
  STRATA_TRY(const Tensor source, ConvertTo(result, target.domain()).Expand(target.sizes()));
  target.Write(source.Read());
  return Ok();
}

bool IsComplex(const Argument& argument) {
  if (const auto* list = std::get_if<std::vector<Argument>>(&argument.value))
    return std::ranges::any_of(*list, IsComplex);
  const auto* tensor = std::get_if<Tensor>(&argument.value);
  return tensor != nullptr && tensor->domain() == Domain::kComplex;
}

/// How a call is computed; null: nothing is known of its operator. Truth values are integers to a
/// definition, and only their complement is another function.
const OpDefinition* DefinitionOf(const Graph& graph, NodeId node, Call& call) {
  const std::string_view base = BaseName(graph.op(node));
  if (base == "bitwise_not" || base == "bitwise_not_") {
    const TypeId type = graph.value(graph.result(node)).type;
    if (type.valid() && graph.module().types()[type].dtype == DType::kBool)
      return FindDefinition("aten.logical_not.default");
  }
  const OpDefinition* definition = FindDefinition(call.op());
  const bool is_of_reals = definition != nullptr && !definition->takes_complex;
  return is_of_reals && std::ranges::any_of(call.args(), IsComplex) ? nullptr : definition;
}

/// The places of the elements that are true: for each dimension their indices.
std::vector<Argument> PlacesOf(const Tensor& mask) {
  const std::vector<uint64_t> words = mask.Read();
  std::vector<std::vector<uint64_t>> places(mask.sizes().size());
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == 0) continue;
    auto rest = static_cast<int64_t>(i);
    for (size_t dim = places.size(); dim-- > 0;) {
      places[dim].push_back(static_cast<uint64_t>(rest % mask.sizes()[dim]));
      rest /= mask.sizes()[dim];
    }
  }
  std::vector<Argument> indices;
  for (std::vector<uint64_t>& of_dim : places) {
    const auto count = static_cast<int64_t>(of_dim.size());
    indices.push_back({OfWords(Domain::kInteger, {count}, std::move(of_dim))});
  }
  return indices;
}

}  // namespace

bool DrawsNumbers(std::string_view op) {
  return TraitsOf(op).random && FindDefinition(op) == nullptr;
}

Value CopyOf(const Value& value) {
  if (const auto* tensor = std::get_if<Tensor>(&value)) return tensor->Copy();
  return value;
}

Result<Argument> Evaluator::ArgumentOf(const Arg& arg) const {
  const Module& module = graph_.module();
  switch (arg.kind()) {
    case ArgKind::kNone:
      return Argument{};
    case ArgKind::kValue:
      return ArgumentFrom(values_[static_cast<size_t>(arg.value().index)]);
    case ArgKind::kInt:
      return Argument{arg.as_int()};
    case ArgKind::kFloat:
      return Argument{arg.as_float()};
    case ArgKind::kBool:
      return Argument{arg.as_bool()};
    case ArgKind::kDim: {
      std::optional<int64_t> size = module.dims().Hint(arg.dim());
      if (const auto read = sizes_.find(arg.dim()); !size && read != sizes_.end())
        size = read->second;
      if (!size) return Error(ErrorCode::kUnsupported, "a size that is not known");
      return Argument{*size};
    }
    case ArgKind::kDType:
      return Argument{arg.dtype()};
    case ArgKind::kGraph:
      return Argument{arg.graph()};
    case ArgKind::kList:
    case ArgKind::kTuple: {
      std::vector<Argument> list;
      for (const Arg& element : graph_.elements(arg)) {
        STRATA_TRY(Argument argument, ArgumentOf(element));
        list.push_back(std::move(argument));
      }
      return Argument{std::move(list)};
    }
    case ArgKind::kRaw:
      if (const auto number = ParseComplex(module.str(arg.str()))) {
        return Argument{OfWords(Domain::kComplex, {},
                                {FromLiteral(number->real()), FromLiteral(number->imag())})};
      }
      [[fallthrough]];
    case ArgKind::kString:
    case ArgKind::kDevice:
      return Argument{std::string(module.str(arg.str()))};
    case ArgKind::kDict:
      if (arg.span_size() == 0) return Argument{};
      break;
    case ArgKind::kCall:
      break;
  }
  return Error(ErrorCode::kUnsupported, "an argument of no tensor operator");
}

Result<Sizes> Evaluator::IntegersOf(const Arg& list) const {
  STRATA_TRY(const Argument argument, ArgumentOf(list));
  Sizes integers;
  if (const auto* elements = std::get_if<std::vector<Argument>>(&argument.value)) {
    for (const Argument& element : *elements)
      if (const auto* number = std::get_if<int64_t>(&element.value)) integers.push_back(*number);
    if (integers.size() == elements->size()) return integers;
  }
  return Error(ErrorCode::kUnsupported, "not a list of integers");
}

void Evaluator::ReplaceMasks(const Arg& list, Argument& argument) const {
  auto* elements = std::get_if<std::vector<Argument>>(&argument.value);
  if (elements == nullptr) return;
  std::vector<Argument> indices;
  size_t at = 0;
  for (const Arg& arg : graph_.elements(list)) {
    Argument& element = (*elements)[at++];
    const TypeId type = arg.is_value() ? graph_.value(arg.value()).type : TypeId{};
    const bool is_mask =
        element.is_tensor() && type.valid() && graph_.module().types()[type].dtype == DType::kBool;
    if (is_mask) {
      std::ranges::move(PlacesOf(std::get<Tensor>(element.value)), std::back_inserter(indices));
    } else {
      indices.push_back(std::move(element));
    }
  }
  *elements = std::move(indices);
}

Result<Call> Evaluator::CallOf(NodeId node) {
  const std::string_view name = BaseName(graph_.op(node));
  const bool takes_masks = name == "index" || name == "index_put" || name == "index_put_";
  std::vector<Argument> args;
  for (const Arg& arg : graph_.args(node)) {
    STRATA_TRY(Argument argument, ArgumentOf(arg));
    if (takes_masks && args.size() == 1) ReplaceMasks(arg, argument);
    args.push_back(std::move(argument));
  }
  std::vector<std::pair<std::string, Argument>> kwargs;
  for (size_t i = 0; i < graph_.node(node).num_kwargs; ++i) {
    const NamedArg kwarg = graph_.kwarg(node, i);
    STRATA_TRY(Argument argument, ArgumentOf(kwarg.value));
    kwargs.emplace_back(graph_.module().str(kwarg.name), std::move(argument));
  }
  const size_t num_results =
      std::max<size_t>(graph_.node(node).num_results, TypesOfTakenElements(graph_, node).size());
  Call call(graph_.op(node), std::move(args), std::move(kwargs), num_results);
  call.run_body = [this](GraphId body, std::span<const Value> inputs) -> Result<Values> {
    Evaluator evaluator(graph_.module().graph(body), seed_, rounds_);
    evaluator.generator_ = generator_;
    evaluator.constants_ = constants_;
    STRATA_TRY(Values results, evaluator.Run(inputs));
    generator_ = evaluator.generator_;
    opaque_.insert(evaluator.opaque().begin(), evaluator.opaque().end());
    opaque_calls_.Add(evaluator.opaque_calls());
    evaluations_ += evaluator.evaluations();
    at_bound_ += evaluator.at_bound();
    return results;
  };
  return call;
}

Result<uint64_t> Evaluator::Draw(std::string_view what) {
  if (!generator_)
    return Error(ErrorCode::kUnsupported, "draws random numbers, in one of several graphs");
  generator_ = Mix(*generator_ ^ FunctionKey(what));
  return Mix(seed_ ^ *generator_);
}

void Evaluator::CountDrawn(const Value& drawn) {
  if (const auto* tensor = std::get_if<Tensor>(&drawn))
    generator_ = Mix(*generator_ ^ static_cast<uint64_t>(tensor->numel()));
}

Result<uint64_t> Evaluator::KeyOfOpaque(NodeId node, Call& call) {
  const OpTraits traits = TraitsOf(graph_, node);
  // What is written to the operand is the result, which its caller writes.
  const bool mutates = traits.mutates && !HasFunctionalForm(call.op());
  uint64_t hash = FunctionKey(FunctionalText(call));
  if (traits.random) {
    const std::string drawn = DrawnBy(call);
    STRATA_TRY(hash, Draw(drawn.empty() ? call.Literals() : drawn));
    if (!drawn.empty()) return hash;
  } else if (TraitsOf(call.op()).mutates && !HasFunctionalForm(call.op())) {
    return Error(ErrorCode::kUnsupported, "an unknown operator that writes to an operand");
  }
  hash = HashOfOperands(graph_.module(), hash, call);
  if (!traits.random || ReadsTensors(call)) {
    const std::string unknown = UnknownOpOf(call);
    opaque_.insert(unknown);
    opaque_calls_.names.emplace(hash, unknown);
    if (mutates) opaque_calls_.writers.insert(unknown);
  }
  if (mutates) OverwriteOperands(hash, call);
  return hash;
}

/// native_dropout(input, p, train) -> (output, mask)
Result<Values> Evaluator::EvaluateDropout(const Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  if (!call.FlagAt(2, "train", true))
    return Values{a.Copy(), Tensor(Domain::kInteger, a.sizes(), 1)};
  const std::optional<double> p = call.LiteralAt(1, "p");
  if (!p) return Error(ErrorCode::kUnsupported, "a probability that is not stated");
  STRATA_TRY(const uint64_t key, Draw(TruthsOf(1.0 - *p)));
  Tensor mask = RandomTruths(a.sizes(), Mix(key));
  CountDrawn(mask);
  STRATA_TRY(const Tensor kept, Mul(a, mask));
  const double scale = *p == 1.0 ? 0.0 : 1.0 / (1.0 - *p);
  return Values{Scale(kept, FromLiteral(scale)), std::move(mask)};
}

Result<Values> Evaluator::EvaluateOpaque(NodeId node, Call& call) {
  if (call.op() == "aten.native_dropout.default") return EvaluateDropout(call);
  STRATA_TRY(const uint64_t hash, KeyOfOpaque(node, call));
  Values results;
  const std::vector<TypeId> taken = TypesOfTakenElements(graph_, node);
  for (size_t i = 0; i < call.num_results(); ++i) {
    if (!taken.empty() && !taken[i].valid()) {
      results.emplace_back();
      continue;
    }
    const ValueId result = graph_.result(node, taken.empty() ? i : 0);
    const TypeId type = taken.empty() ? graph_.value(result).type : taken[i];
    if (!type.valid() && graph_.uses(result).empty()) {
      results.emplace_back();
      continue;
    }
    STRATA_TRY(Value value, RandomValue(graph_.module(), type, Mix(hash ^ i)));
    results.push_back(AsDrawnBy(call, std::move(value)));
  }
  if (TraitsOf(graph_, node).random && !results.empty()) CountDrawn(results[0]);
  return results;
}

Result<Values> Evaluator::EvaluateCall(NodeId node) {
  if (const std::optional<TakenElement> element = ElementTakenBy(graph_, node)) {
    const auto tuple = tuples_.find(graph_.result(element->call).index);
    const auto index = static_cast<size_t>(element->index);
    if (tuple == tuples_.end() || index >= tuple->second.size())
      return Error(ErrorCode::kInvalid, "there is no element {}", index);
    return Values{tuple->second[index]};
  }
  STRATA_TRY(Call call, CallOf(node));
  if (const std::optional<int64_t> number = EvaluateIntegers(call)) return Values{*number};
  const OpDefinition* definition = DefinitionOf(graph_, node, call);
  STRATA_TRY(Values results,
             definition == nullptr ? EvaluateOpaque(node, call) : definition->evaluate(call));
  if (definition != nullptr && definition->moves_data) KeepLaws(*definition, call, results);
  if (TruncatesUnknown(call, results))
    opaque_calls_.names.emplace(HashOfOperands(graph_.module(), FunctionKey(call.Literals()), call),
                                call.op());
  if (IsAtBound(call, results)) ++at_bound_;
  const Argument* target = call.Find(SIZE_MAX, "out");
  if (target == nullptr && IsInPlace(call.op())) target = call.Find(0, {});
  if (target != nullptr && target->is_tensor() && results.size() == 1) {
    const auto& tensor = std::get<Tensor>(target->value);
    STRATA_RETURN_IF_ERROR(WriteTo(tensor, std::get<Tensor>(results[0])));
    results[0] = tensor;
  }
  return results;
}

/// What is stated, else the same random content for the same attribute: its real content is not in
/// the graph.
Result<Value> Evaluator::Attribute(NodeId node) {
  for (const Arg& arg : graph_.args(node)) {
    if (arg.kind() == ArgKind::kGraph) return Value(arg.graph());
  }
  const TypeId type = graph_.value(graph_.result(node)).type;
  STRATA_TRY(Value value,
             RandomValue(graph_.module(), type, Mix(seed_ ^ FunctionKey(graph_.op(node)))));
  const auto* tensor = std::get_if<Tensor>(&value);
  if (constants_ == nullptr || tensor == nullptr) return value;
  if (const auto stated = constants_->find(graph_.op(node)); stated != constants_->end()) {
    STRATA_TRY(const Tensor same,
               ConvertTo(stated->second, tensor->domain()).Expand(tensor->sizes()));
    tensor->Write(same.Read());
  }
  return value;
}

Result<Values> Evaluator::EvaluateNode(NodeId node) {
  if (given_ != nullptr) {
    if (const auto given = given_->find(node); given != given_->end()) return given->second;
  }
  switch (graph_.node(node).kind) {
    case NodeKind::kPlaceholder:
      if (next_input_ >= inputs_.size())
        return Error(ErrorCode::kInvalid, "more inputs than there are values");
      return Values{inputs_[next_input_++]};
    case NodeKind::kGetAttr: {
      STRATA_TRY(Value value, Attribute(node));
      return Values{std::move(value)};
    }
    case NodeKind::kCall:
      return EvaluateCall(node);
    default:
      return Error(ErrorCode::kUnsupported, "a call of Python code");
  }
}

void Evaluator::Begin(std::span<const Value> inputs) {
  inputs_ = inputs;
  next_input_ = 0;
  values_.assign(static_cast<size_t>(graph_.value_bound()), Value());
  tuples_.clear();
  sizes_.clear();
  last_use_.assign(values_.size(), -1);
  order_ = OrderOf(graph_);
  for (const NodeId node : graph_.nodes()) {
    graph_.ForEachOperand(node, [&](ValueId value) {
      last_use_[static_cast<size_t>(value.index)] = order_[static_cast<size_t>(node.index)];
    });
  }
}

Result<Values> Evaluator::Evaluate(NodeId node) {
  ++evaluations_;
  Result<Values> results = EvaluateNode(node);
  if (results) {
    StoreIntegers(graph_, node, *results);
    if (rounds_) RoundResults(graph_, node, *results);
    return results;
  }
  failed_ = node;
  return std::move(results).error().In(fmt::format("{} ({})", graph_.name(node), graph_.op(node)));
}

void Evaluator::Set(NodeId node, Values results) {
  if (!TypesOfTakenElements(graph_, node).empty())
    tuples_.insert_or_assign(graph_.result(node).index, results);
  const size_t count = std::min<size_t>(results.size(), graph_.node(node).num_results);
  for (size_t i = 0; i < count; ++i) {
    const ValueId value = graph_.result(node, i);
    const TypeId type = graph_.value(value).type;
    const auto* number = std::get_if<int64_t>(&results[i]);
    if (number != nullptr && type.valid() &&
        graph_.module().types()[type].kind == TypeKind::kSymInt)
      sizes_[graph_.module().types()[type].dim] = *number;
    values_[static_cast<size_t>(value.index)] = std::move(results[i]);
  }
  graph_.ForEachOperand(node, [&](ValueId value) {
    const auto at = static_cast<size_t>(value.index);
    if (last_use_[at] != order_[static_cast<size_t>(node.index)]) return;
    values_[at] = Value();
    tuples_.erase(value.index);
  });
}

std::vector<Value> Evaluator::Outputs() const {
  std::vector<Value> outputs;
  if (graph_.output() == NodeId{}) return outputs;
  graph_.ForEachOperand(graph_.output(), [&](ValueId id) { outputs.push_back(value(id)); });
  return outputs;
}

Result<std::vector<Value>> Evaluator::Run(std::span<const Value> inputs, const Observer& observe) {
  Begin(inputs);
  for (const NodeId node : graph_.nodes()) {
    if (graph_.node(node).kind == NodeKind::kOutput) break;
    STRATA_TRY(Values results, Evaluate(node));
    if (observe) observe(node, results);
    Set(node, std::move(results));
  }
  return Outputs();
}

}  // namespace strata::prove
