#include <algorithm>
#include <utility>

#include <c10/core/InferenceMode.h>

#include <fmt/format.h>

#include "base/json.h"
#include "base/suggest.h"
#include "base/text.h"
#include "runtime/control/debugger.h"
#include "runtime/control/words.h"
#include "runtime/files/tensor_io.h"
#include "runtime/train/programs/programs.h"

namespace strata {
namespace {

using at::Tensor;

constexpr std::string_view kHelp =
    R"(status | where         where the training is
pause                  stop at the next node that is observed, else before the next step or pass
continue               run to the next breakpoint, or to the end
step [node|step|pass] [N]  run N nodes, training steps or passes (default: step 1)
break pass NAME | step N | node NAME | op NAME | module PATTERN | nan | inf
                       stop there; nodes also with 'if abs_max > 100' (min, max, mean, abs_max, nan, inf)
breaks                 list the breakpoints
delete N | all         remove a breakpoint
print NAME [histogram | image | [0:4, :]]
                       a value of this step by its node, a parameter, or NAME.grad
back node NAME | N | step N
                       to an earlier node of this step, N nodes back, or to the end of step N
set optimizer.lr X     from this step on
save                   write a checkpoint, after the step that is running
stop                   end the training after the step that is running, with a checkpoint
help                   these lines)";

ControlAnswer Refused(const Error& error) {
  return {.ok = false, .text = error.message(), .json = "{}"};
}

/// What comes after the first word.
std::string_view After(std::string_view text, std::string_view word) {
  return TrimBlanks(text.substr(static_cast<size_t>(word.data() + word.size() - text.data())));
}

std::string NumberedNode(int64_t number, const NodeSite& site) {
  return fmt::format("graph {}, node {}: {} = {}", site.graph, number, site.name, site.op);
}

}  // namespace

void Debugger::Execute(std::string_view command, Reply reply) {
  const c10::InferenceMode no_autograd;  // values of a run are inference tensors
  Lock lock(mutex_);
  first_stop_.wait(lock, [&] { return !awaits_first_stop_; });
  Result<ControlAnswer> answer = Run(command, reply);
  if (reply) reply(answer ? *std::move(answer) : Refused(answer.error()));
}

Result<ControlAnswer> Debugger::Run(std::string_view command, Reply& reply) {
  const std::vector<std::string_view> all = SplitWords(command);
  if (all.empty()) return Error("no command: write help for a list");
  const std::string_view verb = all[0];
  const Words words = Words(all).subspan(1);
  if (verb == "help") return ControlAnswer{.text = std::string(kHelp), .json = "{}"};
  if (verb == "status" || verb == "where") return Where();
  if (verb == "breaks") return ListBreakpoints();
  if (verb == "break") return RunBreak(After(command, verb));
  if (verb == "delete") return RunDelete(words);
  if (verb == "pause") {
    if (stopped_ || phase_ == Phase::kFinished) return Where();
    pause_ = true;
    waiting_.push_back(std::exchange(reply, nullptr));
    return ControlAnswer();
  }
  if (verb == "continue") return Resume({}, reply);
  if (verb == "step") return RunStep(words, reply);
  if (verb == "back") return RunBack(words, reply);
  if (verb == "print") return RunPrint(After(command, verb), reply);
  if (verb == "set") return RunSet(words);
  if (verb == "save") return RunSave(reply);
  if (verb == "stop") return RunStop(reply);
  return Error("no such command: {}: write help for a list", OneLine(verb));
}

Status Debugger::RequireStopped() const {
  if (stopped_) return Ok();
  if (phase_ == Phase::kFinished) return Error("the training has ended");
  return Error("the training is running: pause it first");
}

Status Debugger::RequireTrainer() const {
  STRATA_RETURN_IF_ERROR(RequireStopped());
  if (trainer_ == nullptr) return Error("no step has begun: passes run before the first step");
  return Ok();
}

/// Takes the reply: it is called when the training stops.
ControlAnswer Debugger::Resume(Goal goal, Reply& reply) {
  if (phase_ == Phase::kFinished) return Where();
  if (goal.kind != Goal::Kind::kBreakpoint) goal_ = goal;
  waiting_.push_back(std::exchange(reply, nullptr));
  stopped_ = false;
  resumed_.notify_all();
  return {};
}

Status Debugger::GoTo(const Position& to) {
  if (to.steps_done < steps_done_ && origin_ == nullptr) return Error("no earlier step is kept");
  target_ = to;
  goal_.reset();
  rewinds_ = true;
  return Ok();
}

Result<ControlAnswer> Debugger::RunBreak(std::string_view place) {
  STRATA_TRY(Breakpoint breakpoint, ParseBreakpoint(place));
  if (breakpoint.IsOfNodes() && trainer_ != nullptr &&
      trainer_->config().parallelism.mesh.num_ranks() > 1) {
    return Error(
        "a training on several ranks stops between steps and passes only: {}: write break step N",
        breakpoint.text);
  }
  breakpoint.id = ++last_breakpoint_;
  ControlAnswer answer{.text = fmt::format("breakpoint {}: {}", breakpoint.id, breakpoint.text),
                       .json = fmt::format(R"({{"breakpoint":{}}})", breakpoint.id)};
  breakpoints_.push_back(std::move(breakpoint));
  return answer;
}

Result<ControlAnswer> Debugger::RunDelete(Words words) {
  if (words.size() == 1 && words[0] == "all") {
    breakpoints_.clear();
    return ControlAnswer{.text = "no breakpoint is left"};
  }
  if (words.size() != 1) return Error("delete what: write delete N, or delete all");
  STRATA_TRY(const int64_t id, ParseCount(words[0]));
  if (std::erase_if(breakpoints_, [&](const Breakpoint& at) { return at.id == id; }) == 0)
    return Error("no such breakpoint: {}: breaks lists them", id);
  return ControlAnswer{.text = fmt::format("breakpoint {} is removed", id)};
}

Result<ControlAnswer> Debugger::ListBreakpoints() const {
  ControlAnswer answer{.text = breakpoints_.empty() ? "no breakpoint" : "", .json = {}};
  JsonWriter json(answer.json);
  json.BeginObject().Key("breakpoints").BeginArray();
  for (const Breakpoint& breakpoint : breakpoints_) {
    answer.text +=
        fmt::format("{}{}  {}", answer.text.empty() ? "" : "\n", breakpoint.id, breakpoint.text);
    json.BeginObject().Field("id", breakpoint.id).Field("at", breakpoint.text).EndObject();
  }
  json.EndArray().EndObject();
  return answer;
}

Result<ControlAnswer> Debugger::RunStep(Words words, Reply& reply) {
  STRATA_RETURN_IF_ERROR(RequireStopped());
  Goal goal{.kind = Goal::Kind::kSteps, .count = 1};
  if (!words.empty() && (words[0] == "node" || words[0] == "step" || words[0] == "pass")) {
    if (words[0] == "node") goal.kind = Goal::Kind::kNodes;
    if (words[0] == "pass") goal.kind = Goal::Kind::kPasses;
    words = words.subspan(1);
  }
  if (words.size() > 1) return Error("too many words: write step node 10");
  if (words.size() == 1) {
    STRATA_TRY(goal.count, ParseCount(words[0]));
  }
  if (goal.kind == Goal::Kind::kNodes) {
    STRATA_RETURN_IF_ERROR(RequireTrainer());
    if (trainer_->config().parallelism.mesh.num_ranks() > 1)
      return Error("a training on several ranks stops between steps only: write step");
  }
  if (goal.kind == Goal::Kind::kPasses && phase_ != Phase::kPasses)
    return Error("all passes have run: write step node, or step");
  return Resume(goal, reply);
}

Result<ControlAnswer> Debugger::RunBack(Words words, Reply& reply) {
  STRATA_RETURN_IF_ERROR(RequireTrainer());
  Position to{.steps_done = steps_done_, .nodes = 0};
  if (words.size() == 2 && words[0] == "step") {
    // The end of a step; of step 0 the state before the first one.
    if (words[1] == "0") {
      to.steps_done = 0;
    } else {
      STRATA_TRY(to.steps_done, ParseCount(words[1]));
    }
    if (to.steps_done > steps_done_)
      return Error("step {} is not done yet: {} are done", to.steps_done, steps_done_);
  } else if (words.size() == 2 && words[0] == "node") {
    const auto last = executed_.empty() ? executed_.rend() : executed_.rbegin() + 1;
    const auto found = std::find_if(last, executed_.rend(), [&](const Executed& executed) {
      return SiteOf(executed).name == words[1];
    });
    if (found == executed_.rend()) {
      return Error(
          "this step has not executed such a node before this one: {}: {} of its nodes "
          "are done",
          OneLine(words[1]), NumExecuted());
    }
    to.nodes = executed_.rend() - found;
  } else if (words.size() == 1) {
    STRATA_TRY(const int64_t count, ParseCount(words[0]));
    if (count > NumExecuted())
      return Error("this step has executed {} nodes: {}: back step N goes to earlier ones",
                   NumExecuted(), count);
    to.nodes = NumExecuted() - count;
  } else {
    return Error("back to where: write back node NAME, back N, or back step N");
  }
  if (to == position()) return Where();
  if (to.steps_done < steps_done_ && to.steps_done < trainer_->StepsOf(*origin_)) {
    return Error("step {} is before the last checkpoint: go back to step {} at most", to.steps_done,
                 trainer_->StepsOf(*origin_));
  }
  STRATA_RETURN_IF_ERROR(GoTo(to));
  return Resume({}, reply);
}

Result<Tensor> Debugger::NamedTensor(std::string_view name) const {
  constexpr std::string_view kGradient = ".grad";
  const bool is_gradient = name.ends_with(kGradient);
  const std::string_view parameter =
      is_gradient ? name.substr(0, name.size() - kGradient.size()) : name;
  std::vector<std::string> names;
  const bool is_there = !is_gradient || trainer_->has_gradients();
  for (const TensorView& view : !is_there     ? std::vector<TensorView>()
                                : is_gradient ? trainer_->Gradients()
                                              : trainer_->Parameters()) {
    if (view.name == parameter) return CopyOf(view);
    names.push_back(view.name);
  }
  return Error(
      "no such value: {}{}: name a node that this step has executed, a parameter, or NAME.grad "
      "after a step",
      OneLine(name), DidYouMean(parameter, names));
}

Result<ControlAnswer> Debugger::RunPrint(std::string_view rest, Reply& reply) {
  STRATA_RETURN_IF_ERROR(RequireTrainer());
  const std::vector<std::string_view> words = SplitWords(rest);
  if (words.empty()) return Error("print what: name a node, a parameter, or NAME.grad");
  const std::string_view name = words[0];
  STRATA_TRY(const TensorQuestion question, ParseTensorQuestion(After(rest, name)));
  for (int64_t i = NumExecuted(); i > 0; --i) {
    const Executed& executed = executed_[static_cast<size_t>(i - 1)];
    const Graph& graph = *executed.graph;
    std::optional<size_t> result;
    for (size_t r = graph.node(executed.node).num_results; r-- > 0;) {
      if (graph.value_name(graph.result(executed.node, r)) == name) result = r;
    }
    if (!result && graph.name(executed.node) == name) result = 0;
    if (result) result = executed.PlaceOf(*result);
    if (!result) continue;
    wanted_ = Wanted{.at = {.steps_done = steps_done_, .nodes = i},
                     .result = *result,
                     .question = question,
                     .reply = std::exchange(reply, nullptr),
                     .answer = {}};
    if (i == NumExecuted()) {
      CheckWanted(results_);
      reply = std::exchange(wanted_->reply, nullptr);
      return std::exchange(wanted_, std::nullopt)->answer;
    }
    STRATA_RETURN_IF_ERROR(GoTo(position()));
    stopped_ = false;
    resumed_.notify_all();
    return ControlAnswer();
  }
  STRATA_TRY(const Tensor tensor, NamedTensor(name));
  STRATA_TRY(TensorDescription described, DescribeTensor(tensor, question));
  return ControlAnswer{.text = std::move(described.text), .json = std::move(described.json)};
}

Result<ControlAnswer> Debugger::RunSet(Words words) {
  STRATA_RETURN_IF_ERROR(RequireTrainer());
  if (words.size() != 2 || words[0] != "optimizer.lr") {
    return Error(
        "only the learning rate can change during a run: write set optimizer.lr 1e-4; other fields "
        "are part of the graphs");
  }
  STRATA_TRY(const double rate, ParseNumber(words[1]));
  if (rate < 0.0) return Error("a learning rate is not negative: {}", rate);
  if (steps_done_ < newest_) {
    return Error("step {} was recorded with the rate that it had: continue to step {} first",
                 steps_done_ + 1, newest_ + 1);
  }
  const bool updates =
      graph_ != nullptr && !executed_.empty() && graph_->name_text() == kOptimizerGraph;
  const RateChange change{.step = steps_done_ + (updates ? 2 : 1),
                          .before = trainer_->config().optimizer.lr,
                          .after = rate};
  rate_changes_.push_back(change);
  if (!updates) trainer_->SetLearningRate(rate);
  return ControlAnswer{.text = fmt::format("optimizer.lr {} -> {} from step {} on", change.before,
                                           change.after, change.step),
                       .json = fmt::format(R"({{"step":{}}})", change.step)};
}

ControlAnswer Debugger::Where() const {
  ControlAnswer answer{.text = {}, .json = {}};
  JsonWriter json(answer.json);
  const std::string_view state =
      phase_ == Phase::kFinished ? "finished" : (stopped_ ? "stopped" : "running");
  json.BeginObject().Field("state", state);
  answer.text = state;
  if (stopped_) {
    json.Field("reason", reason_);
    answer.text += fmt::format(": {}", reason_);
  }
  if (phase_ == Phase::kPasses) {
    json.Field("pass", pass_);
    answer.text += fmt::format("\npass {}", pass_.empty() ? "-" : pass_);
  } else {
    json.Field("steps_done", steps_done_);
    answer.text += fmt::format("\n{} steps done", steps_done_);
  }
  if (trainer_ != nullptr) {
    json.Field("steps", trainer_->config().steps).Field("lr", trainer_->config().optimizer.lr);
    answer.text += fmt::format(" of {}", trainer_->config().steps);
  }
  if (loss_) {
    json.Field("loss", *loss_);
    answer.text += fmt::format(", loss {:.6f}", *loss_);
  }
  if (stopped_ && !executed_.empty()) {
    const NodeSite site = SiteOf(executed_.back());
    json.Field("graph", site.graph).Field("node", site.name).Field("op", site.op);
    json.Field("module", site.module).Field("where", where_).Field("nodes_done", NumExecuted());
    answer.text += fmt::format("\n{}\n{}", NumberedNode(NumExecuted(), site), where_);
  }
  json.EndObject();
  return answer;
}

}  // namespace strata
