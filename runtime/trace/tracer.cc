#include "runtime/trace/tracer.h"

#include <exception>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/SequenceNumber.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/record_function.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include "base/random.h"
#include "runtime/aten/literals.h"
#include "runtime/trace/cpu_shapes.h"
#include "runtime/trace/meta_kernels.h"
#include "runtime/trace/recorder.h"
#include "runtime/trace/scope.h"
#include "runtime/trace/source_text.h"

namespace strata {
namespace {

/// A key between autograd and the backends that nothing else in C++ uses: with it in a thread's
/// included keys, its boxed fallback sees every operator after autograd has seen it.
constexpr c10::DispatchKey kTracerKey = c10::DispatchKey::Fake;

/// The trace that runs on this thread.
class Session {
 public:
  Session(Graph& graph, const TraceRequest& request, Constants& constants)
      : graph_(graph),
        recorder_(graph, request.device, constants),
        module_(graph.module()),
        first_seq_nr_(at::sequence_number::peek()),
        size_seed_(request.size_seed) {
    outer_ = std::exchange(Active(), this);
    autograd_hook_ = at::addThreadLocalCallback(
        at::RecordFunctionCallback(&Session::EnterBackward, &Session::LeaveBackward)
            .needsInputs(true)
            .scopes({at::RecordScope::BACKWARD_FUNCTION}));
  }
  ~Session() {
    at::removeCallback(autograd_hook_);
    Active() = outer_;
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Per thread, because the dispatcher calls a plain function.
  static Session*& Active() {
    thread_local Session* active = nullptr;
    return active;
  }

  Recorder& recorder() { return recorder_; }

  void Call(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
    called_ = op;
    op_ = OperatorName(op.schema());
    where_ = Where();
    backward_called_ = backward_.empty() ? -1 : backward_.back();
    if (op_ == "aten._local_scalar_dense.default") {
      const std::optional<SizeRequest>& request = CurrentScope().size_request;
      if (size_seed_ && request) return MakeUpSize(op, stack, *request);
      throw TraceError(Error(ErrorCode::kUnsupported, "{}", kReadsData));
    }
    const size_t num_args = op.schema().arguments().size();
    const NodeId node = recorder_.Begin(op, torch::jit::last(*stack, num_args), Site());
    RunOnMeta(op, keys, num_args, stack);
    recorder_.End(node, torch::jit::last(*stack, op.schema().returns().size()));
  }

  /// `cannot trace <op>: <where>: <why>`.
  Error Describe(const std::exception& failure) const {
    if (const auto* call = dynamic_cast<const CallError*>(&failure)) {
      try {
        std::rethrow_if_nested(failure);
      } catch (const std::exception& cause) {
        return Error(ErrorCode::kUnsupported, "cannot trace {}: {}: {}", call->op(), call->where(),
                     WhyOf(cause));
      }
    }
    const std::string why = WhyOf(failure);
    if (op_.empty()) return Error(ErrorCode::kUnsupported, "cannot trace: {}", why);
    return Error(ErrorCode::kUnsupported, "cannot trace {}: {}: {}", op_,
                 ForwardPlace().value_or(where_), why);
  }

 private:
  /// In one line.
  std::string WhyOf(const std::exception& failure) const {
    const auto* refused = dynamic_cast<const TraceError*>(&failure);
    const auto* torch_error = dynamic_cast<const c10::Error*>(&failure);
    std::string why = torch_error != nullptr ? torch_error->what_without_backtrace()
                                             : std::string(failure.what());
    if (refused == nullptr && why.find("Meta tensors") != std::string::npos) {
      why = WhyNoMetaKernel();
    }
    why.resize(std::min(why.size(), why.find('\n')));
    return why;
  }

  static constexpr std::string_view kReadsData =
      "reads a tensor's value, which does not exist while tracing: compute with operators, "
      "at::where instead of a branch";

  /// The shapes of what an operator gives; those of the CPU's kernel where there is none for Meta
  /// tensors, or where that one fails.
  static void RunOnMeta(const c10::OperatorHandle& op, c10::DispatchKeySet keys, size_t num_args,
                        torch::jit::Stack* stack) {
    const size_t first = stack->size() - num_args;
    const auto args = torch::jit::last(*stack, num_args);
    const std::vector<c10::IValue> given(args.begin(), args.end());
    try {
      op.redispatchBoxed(keys, stack);
    } catch (const c10::Error&) {
      const auto results = ResultsByCpu(op, given);
      if (!results) throw;
      stack->resize(first);
      stack->insert(stack->end(), results->begin(), results->end());
    }
  }

  /// Of operators that read data there cannot be one.
  std::string_view WhyNoMetaKernel() const {
    if (called_->hasTag(at::Tag::data_dependent_output)) return kReadsData;
    if (called_->hasTag(at::Tag::dynamic_output_shape)) {
      return "how large its result is depends on data, which does not exist while tracing: take "
             "operators of fixed sizes, or read sizes with ReadSizes";
    }
    return "it has no kernel for Meta tensors: add one to runtime/trace/meta_kernels.cc";
  }

  /// Of a call in a backward function, whose own place is the line that asks for gradients.
  std::optional<std::string> ForwardPlace() const {
    for (const NodeId node : graph_.nodes()) {
      const Node& n = graph_.node(node);
      if (backward_called_ < 0 || n.seq_nr != backward_called_ || n.phase == Phase::kBackward) {
        continue;
      }
      const SourceLoc& loc = module_.loc(n.loc);
      return fmt::format("gradient of {} ({}:{})", module_.str(n.module), module_.str(loc.file),
                         loc.line);
    }
    return std::nullopt;
  }

  static std::unique_ptr<at::ObserverContext> EnterBackward(const at::RecordFunction& function) {
    Session& session = *Active();
    const int32_t seq_nr = session.Relative(function.seqNr());
    session.backward_.push_back(seq_nr);
    for (const c10::IValue& input : function.inputs()) {
      if (input.isTensor()) session.recorder_.ReadByBackward(input.toTensor(), seq_nr);
    }
    return nullptr;
  }
  static void LeaveBackward(const at::RecordFunction&, at::ObserverContext*) {
    Session& session = *Active();
    session.last_backward_ = session.backward_.back();
    session.backward_.pop_back();
  }

  /// The size is a symbol in the graph, and a number from the seed while tracing.
  void MakeUpSize(const c10::OperatorHandle& op, torch::jit::Stack* stack,
                  const SizeRequest& request) {
    if (request.index == 0) {
      made_up_ = MakeUpSizes(Mix(*size_seed_) ^ static_cast<uint64_t>(num_sizes_), request);
    }
    const NodeId node = recorder_.Begin(op, torch::jit::last(*stack, 1), Site());
    const int64_t size = made_up_[static_cast<size_t>(request.index)];
    recorder_.EndSize(node, fmt::format("u{}", num_sizes_++), request.index, size);
    torch::jit::drop(*stack, 1);
    stack->emplace_back(at::Scalar(size));
  }

  /// Parts of the total, none of which is 0 or 1: sizes that operators treat specially.
  static std::vector<int64_t> MakeUpSizes(uint64_t key, const SizeRequest& request) {
    std::vector<int64_t> weights;
    for (int64_t i = 0; i < request.count; ++i) {
      weights.push_back(64 + static_cast<int64_t>(RandomBits(key, static_cast<uint64_t>(i)) % 64));
    }
    const int64_t sum = std::accumulate(weights.begin(), weights.end(), int64_t{0});
    std::vector<int64_t> sizes;
    int64_t rest = request.total;
    for (const int64_t weight : weights) {
      sizes.push_back(request.total * weight / sum);
      rest -= sizes.back();
    }
    if (!sizes.empty()) sizes.back() += rest;
    return sizes;
  }

  CallSite Site() {
    const Scope& scope = CurrentScope();
    CallSite site{.phase = scope.phase, .module = scope.module, .loc = {}, .attributes = {}};
    if (!backward_.empty() || scope.phase == Phase::kBackward) {
      // The place is that of the forward node, not of the line that calls autograd.
      site.phase = Phase::kBackward;
      site.module.clear();
      site.by_engine = backward_.empty();
      site.seq_nr = backward_.empty() ? last_backward_ : backward_.back();
      return site;
    }
    site.loc = InternLocation(scope.location);
    site.attributes = scope.attributes;
    // Autograd has just numbered the function that it made for this call.
    if (at::GradMode::is_enabled()) {
      site.seq_nr = Relative(static_cast<int64_t>(at::sequence_number::peek()) - 1);
    }
    return site;
  }

  /// Numbers count from the start of the trace, so that equal programs give equal graphs.
  int32_t Relative(int64_t seq_nr) const {
    const int64_t relative = seq_nr - static_cast<int64_t>(first_seq_nr_);
    return relative >= 0 ? static_cast<int32_t>(relative) : -1;
  }

  LocId InternLocation(const std::source_location& location) {
    if (location.line() == 0) return {};
    const std::string_view file = PathInCheckout(location.file_name());
    return module_.InternLoc({.file = module_.Intern(file),
                              .line = static_cast<int32_t>(location.line()),
                              .function = module_.Intern(ShortFunction(location.function_name())),
                              .code = module_.Intern(SourceLine(file, location.line()))});
  }

  /// `Llama3Block::Attend` of `at::Tensor strata::Llama3Block::Attend(const Tensor&) const`, and
  /// `Llama3Block` of its call operator.
  static std::string_view ShortFunction(std::string_view pretty) {
    pretty = pretty.substr(0, pretty.find('('));
    if (const size_t space = pretty.rfind(' '); space != std::string_view::npos) {
      pretty.remove_prefix(space + 1);
    }
    constexpr std::string_view kNamespace = "strata::";
    if (pretty.starts_with(kNamespace)) pretty.remove_prefix(kNamespace.size());
    constexpr std::string_view kCall = "::operator";
    if (pretty.ends_with(kCall)) pretty.remove_suffix(kCall.size());
    return pretty;
  }

  std::string Where() const {
    const Scope& scope = CurrentScope();
    const std::string_view module =
        scope.module.empty() ? ToString(scope.phase) : std::string_view(scope.module);
    if (scope.location.line() == 0) return std::string(module);
    return fmt::format("{} ({}:{})", module, PathInCheckout(scope.location.file_name()),
                       scope.location.line());
  }

  Graph& graph_;
  Recorder recorder_;
  Module& module_;
  Session* outer_ = nullptr;
  at::CallbackHandle autograd_hook_ = 0;
  uint64_t first_seq_nr_;
  std::optional<uint64_t> size_seed_;
  int64_t num_sizes_ = 0;          // read so far
  std::vector<int64_t> made_up_;   // those that are being read
  std::vector<int32_t> backward_;  // numbers of the backward functions that run
  int32_t last_backward_ = -1;     // of the one that ran last
  // Of the last call, for errors.
  std::optional<c10::OperatorHandle> called_;
  std::string op_, where_;
  int32_t backward_called_ = -1;  // by this backward function
};

/// Operators on lists of tensors, which call one operator on each. Passes know norms of lists.
bool IsOnEach(const c10::OperatorHandle& op) {
  const std::string& name = op.schema().name();
  return name.starts_with("aten::_foreach_") && name != "aten::_foreach_norm";
}

void TracerFallback(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                    torch::jit::Stack* stack) {
  const auto remaining = keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, kTracerKey);
  if (IsOnEach(op)) return op.redispatchBoxed(remaining, stack);  // those are recorded
  const c10::impl::ExcludeDispatchKeyGuard below(kTracerKey);
  if (Session* session = Session::Active()) {
    session->Call(op, remaining, stack);
  } else {
    op.redispatchBoxed(remaining, stack);
  }
}

void RegisterTracer() {
  static const torch::Library library = [] {
    torch::Library fallback(torch::Library::IMPL, "_", kTracerKey, __FILE__, __LINE__);
    fallback.fallback(torch::CppFunction::makeFromBoxedFunction<&TracerFallback>());
    return fallback;
  }();
}

}  // namespace

namespace {

/// Tensors that are made of others have no type of a value.
Status CheckInput(const TraceInput& input) {
  const at::Tensor& example = input.example;
  if (example.layout() == at::kStrided && !example.is_nested()) return Ok();
  return Error(ErrorCode::kUnsupported,
               "cannot trace: input {} is no plain tensor: {}: pass the tensors that it is made of",
               input.name, example.is_nested() ? "nested" : c10::str(example.layout()));
}

}  // namespace

Status Trace(Module& module, const TraceRequest& request, Constants& constants) {
  for (const TraceInput& input : request.inputs)
    STRATA_RETURN_IF_ERROR(CheckInput(input));
  RegisterTracer();
  RegisterMetaKernels();
  Graph& graph = module.AddGraph(request.graph);
  Session session(graph, request, constants);
  try {
    std::vector<at::Tensor> inputs;
    for (const TraceInput& input : request.inputs) {
      session.recorder().AddInput(input);
      inputs.push_back(input.example);
    }
    std::vector<at::Tensor> outputs;
    {
      const c10::impl::IncludeDispatchKeyGuard trace(kTracerKey);
      outputs = request.program(inputs);
    }
    session.recorder().AddOutputs(outputs);
    session.recorder().Finish();
  } catch (const std::exception& failure) {
    return session.Describe(failure);
  }
  return Ok();
}

}  // namespace strata
