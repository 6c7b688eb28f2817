#include "viewer/model/control_session.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "base/toml.h"
#include "refs/control_client.h"
#include "scene/words.h"

namespace strata::viewer {
namespace {

constexpr size_t kMostLines = 200;
constexpr double kPatience = 10;  // seconds until a socket must be there
constexpr int kPollMs = 20;

const TomlValue* Member(const TomlValue& value, std::string_view key) {
  const auto* table = std::get_if<TomlValue::Table>(&value.value);
  if (table == nullptr) return nullptr;
  const auto found = std::ranges::find(*table, key, &TomlValue::Member::key);
  return found == table->end() ? nullptr : &found->value;
}

std::string Text(const TomlValue& value, std::string_view key) {
  const TomlValue* member = Member(value, key);
  const auto* text = member != nullptr ? std::get_if<std::string>(&member->value) : nullptr;
  return text != nullptr ? *text : std::string();
}

std::optional<double> Number(const TomlValue* value) {
  if (value == nullptr) return std::nullopt;
  if (const auto* integer = std::get_if<int64_t>(&value->value))
    return static_cast<double>(*integer);
  if (const auto* real = std::get_if<double>(&value->value)) return *real;
  return std::nullopt;
}

int64_t Count(const TomlValue& value, std::string_view key) {
  const TomlValue* member = Member(value, key);
  const auto* integer = member != nullptr ? std::get_if<int64_t>(&member->value) : nullptr;
  return integer != nullptr ? *integer : 0;
}

const TomlValue::Array& Elements(const TomlValue& value, std::string_view key) {
  static const TomlValue::Array kNone;
  const TomlValue* member = Member(value, key);
  const auto* array = member != nullptr ? std::get_if<TomlValue::Array>(&member->value) : nullptr;
  return array != nullptr ? *array : kNone;
}

bool Moves(std::string_view command) {
  return command.starts_with("continue") || command.starts_with("step") ||
         command.starts_with("back") || command == "stop";
}

void TakePosition(const TomlValue& data, ControlState& state) {
  const std::string phase = Text(data, "state");
  if (phase.empty()) return;
  state.phase = phase == "stopped"    ? ControlState::Phase::kStopped
                : phase == "finished" ? ControlState::Phase::kFinished
                                      : ControlState::Phase::kRunning;
  state.reason = Text(data, "reason");
  state.pass = Text(data, "pass");
  state.steps_done = Count(data, "steps_done");
  state.steps = Count(data, "steps");
  state.loss = Number(Member(data, "loss"));
  state.graph = Text(data, "graph");
  state.node = Text(data, "node");
  state.op = Text(data, "op");
  state.module = Text(data, "module");
  state.where = Text(data, "where");
  state.nodes_done = Count(data, "nodes_done");
  if (state.phase == ControlState::Phase::kStopped) ++state.stops;
}

ControlState::Value ValueOf(const std::string& name, const TomlValue& data) {
  ControlState::Value value;
  value.name = name;
  value.dtype = Text(data, "dtype");
  for (const TomlValue& size : Elements(data, "sizes"))
    value.sizes +=
        fmt::format("{}{:.0f}", value.sizes.empty() ? "" : ", ", Number(&size).value_or(0));
  value.sizes = fmt::format("[{}]", value.sizes);
  if (const TomlValue* statistics = Member(data, "statistics")) {
    static constexpr std::pair<std::string_view, std::string_view> kNames[] = {{"min", "least"},
                                                                               {"max", "greatest"},
                                                                               {"mean", "mean"},
                                                                               {"nan", "NaN"},
                                                                               {"inf", "infinite"}};
    for (const auto& [key, name_shown] : kNames) {
      if (const std::optional<double> number = Number(Member(*statistics, key)))
        value.statistics.emplace_back(name_shown, RealText(*number, 6));
    }
  }
  if (const TomlValue* histogram = Member(data, "histogram")) {
    for (const TomlValue& count : Elements(*histogram, "counts"))
      value.counts.push_back(static_cast<int64_t>(Number(&count).value_or(0)));
  }
  return value;
}

/// The elements of a slice or an image; none: the answer has neither.
std::optional<ControlState::Value::Matrix> MatrixOf(const std::string& slice,
                                                    const TomlValue& data) {
  const TomlValue* image = Member(data, slice.empty() ? "image" : "slice");
  if (image == nullptr) return std::nullopt;
  ControlState::Value::Matrix matrix;
  matrix.slice = slice;
  const TomlValue::Array& sizes = Elements(*image, "sizes");
  matrix.columns = slice.empty()   ? Count(*image, "columns")
                   : sizes.empty() ? 1
                                   : static_cast<int64_t>(Number(&sizes.back()).value_or(1));
  matrix.columns = std::max<int64_t>(1, matrix.columns);
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  for (const TomlValue& element : Elements(*image, "values"))
    matrix.elements.push_back(Number(&element).value_or(kNaN));
  return matrix;
}

/// Takes the answer to `print NAME QUESTION`. What belongs to a value that is known is added to it.
void TakeValue(const std::string& name, const std::string& question, const std::string& error,
               const TomlValue& data, ControlState& state) {
  const std::string slice = question.starts_with('[') ? question : "";
  const bool adds = (question == "image" || !slice.empty()) && state.value &&
                    state.value->name == name && state.value->error.empty();
  if (!error.empty() && !adds) {
    state.value.emplace();
    state.value->name = name;
    state.value->error = error;
    return;
  }
  if (!adds) state.value = ValueOf(name, data);
  if (!error.empty() && slice.empty()) return;  // it has fewer than two dimensions
  if (!error.empty()) {
    state.value->matrix.emplace();
    state.value->matrix->slice = slice;
    state.value->matrix->error = error;
  } else if (auto matrix = MatrixOf(slice, data)) {
    state.value->matrix = std::move(matrix);
  }
}

}  // namespace

std::string_view ToString(ControlState::Phase phase) {
  switch (phase) {
    case ControlState::Phase::kConnecting:
      return "connecting";
    case ControlState::Phase::kRunning:
      return "running";
    case ControlState::Phase::kStopped:
      return "stopped";
    case ControlState::Phase::kFinished:
      return "finished";
    case ControlState::Phase::kFailed:
      break;
  }
  return "failed";
}

void TakeAnswer(const std::string& command, bool ok, const std::string& text,
                const std::string& data, ControlState& state) {
  const std::variant<TomlValue, SyntaxError> read = ReadJson(data);
  const auto* object = std::get_if<TomlValue>(&read);
  constexpr std::string_view kPrint = "print ";
  if (command.starts_with(kPrint)) {
    const size_t end = std::min(command.size(), command.find(' ', kPrint.size()));
    const std::string name = command.substr(kPrint.size(), end - kPrint.size());
    const std::string question(TrimBlanks(std::string_view(command).substr(end)));
    if (!ok || object != nullptr)
      TakeValue(name, question, ok ? "" : text, object != nullptr ? *object : TomlValue(), state);
    return;
  }
  if (!ok) {
    state.error = text;
    if (Moves(command)) state.phase = ControlState::Phase::kStopped;
    return;
  }
  state.error.clear();
  if (command == "save") state.saved = text;
  if (object == nullptr) return;
  TakePosition(*object, state);
  if (Member(*object, "breakpoints") == nullptr) return;
  state.breakpoints.clear();
  for (const TomlValue& breakpoint : Elements(*object, "breakpoints"))
    state.breakpoints.push_back({Count(breakpoint, "id"), Text(breakpoint, "at")});
}

ControlSession::ControlSession(std::string path, std::function<void()> wake)
    : path_(std::move(path)), wake_(std::move(wake)), thread_([this] { Run(); }) {}

ControlSession::~ControlSession() {
  ending_ = true;
  thread_.join();
}

void ControlSession::Send(std::string command, bool typed) {
  const std::scoped_lock lock(mutex_);
  if (state_.phase == ControlState::Phase::kFailed) return;
  waiting_.push_back({std::move(command), typed});
}

ControlState ControlSession::state() const {
  const std::scoped_lock lock(mutex_);
  return state_;
}

void ControlSession::Change(const std::function<void(ControlState&)>& change) {
  {
    const std::scoped_lock lock(mutex_);
    change(state_);
    if (state_.transcript.size() > kMostLines)
      state_.transcript.erase(state_.transcript.begin(), state_.transcript.end() - kMostLines);
  }
  ++version_;
  wake_();
}

void ControlSession::Run() {
  const auto fail = [this](const Error& error) {
    Change([&](ControlState& state) {
      // The end of a training ends the connection.
      if (state.phase == ControlState::Phase::kFinished) return;
      state.phase = ControlState::Phase::kFailed;
      state.error = error.message();
    });
  };
  Result<std::unique_ptr<ControlClient>> client =
      ControlClient::Connect(path_, kPatience, [this] { return ending_.load(); });
  if (!client) return fail(client.error());
  Send("status");
  Send("breaks");
  std::map<int64_t, Command> sent;
  while (!ending_) {
    std::deque<Command> commands;
    {
      const std::scoped_lock lock(mutex_);
      commands.swap(waiting_);
    }
    for (Command& command : commands) {
      const Result<int64_t> id = (*client)->Send(command.text);
      if (!id) return fail(id.error());
      Change([&](ControlState& state) {
        if (Moves(command.text)) state.phase = ControlState::Phase::kRunning;
        if (command.typed) state.transcript.push_back("> " + command.text);
      });
      sent.emplace(*id, std::move(command));
    }
    Result<std::optional<ControlClient::Answer>> answer = (*client)->Receive(kPollMs);
    if (!answer) return fail(answer.error());
    if (!*answer) continue;
    const auto command = sent.find((*answer)->id);
    if (command == sent.end()) continue;
    const std::string text = command->second.text;
    Change([&](ControlState& state) {
      TakeAnswer(text, (*answer)->ok, (*answer)->text, (*answer)->data, state);
      if (command->second.typed) state.transcript.push_back((*answer)->text);
    });
    sent.erase(command);
    if (text.starts_with("break ") || text.starts_with("delete ")) Send("breaks");
  }
}

}  // namespace strata::viewer
