#include "passes/simulate/exported_placements.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/toml.h"
#include "ir/module.h"
#include "ir/rewriter.h"
#include "passes/placement/costs/placement_cost.h"
#include "passes/placement/placement.h"
#include "passes/simulate/node_cost.h"

namespace strata {
namespace {

/// A member of a table; null: absent, or JSON's null.
const TomlValue* Find(const TomlValue& table, std::string_view key) {
  const auto* members = std::get_if<TomlValue::Table>(&table.value);
  if (members == nullptr) return nullptr;
  const auto found = std::ranges::find(*members, key, &TomlValue::Member::key);
  if (found == members->end()) return nullptr;
  return std::holds_alternative<std::monostate>(found->value.value) ? nullptr : &found->value;
}

/// Reads the file, and makes a graph of calls on the parts of one rank, which NodeCost prices.
class Exported {
 public:
  Exported(std::string_view text, std::string_view file)
      : file_{.text = std::string(text), .file = std::string(file), .root = {}},
        graph_(module_.AddGraph("exported")),
        rewriter_(graph_) {}

  Result<ExportedPlacement> Run(const Topology& topology) {
    auto parsed = ReadJson(file_.text);
    if (const auto* error = std::get_if<SyntaxError>(&parsed))
      return file_.At(error->at, "not valid JSON: " + error->what);
    file_.root = std::get<TomlValue>(std::move(parsed));
    STRATA_TRY(const Mesh mesh, ReadMesh());
    STRATA_TRY(const CostModel model, CostModel::Make(topology, mesh));
    const TomlValue* nodes = Find(file_.root, "nodes");
    const auto* array = nodes ? std::get_if<TomlValue::Array>(&nodes->value) : nullptr;
    if (array == nullptr) return file_.At(file_.root.at, "expected an array \"nodes\"");
    for (const TomlValue& node : *array)
      STRATA_RETURN_IF_ERROR(ReadNode(node, model));
    PriceCalls(NodeCost::OnMesh(topology, graph_, mesh));
    return std::move(result_);
  }

 private:
  struct Call {
    NodeId node;
    std::string what;
    double theirs_us = 0;
  };

  Result<std::string> Text(const TomlValue& table, std::string_view key) const {
    const TomlValue* value = Find(table, key);
    const auto* text = value ? std::get_if<std::string>(&value->value) : nullptr;
    if (text == nullptr)
      return file_.At((value ? *value : table).at, fmt::format("expected a text \"{}\"", key));
    return *text;
  }
  /// 0: absent.
  Result<double> Cost(const TomlValue& table, std::string_view key) const {
    const TomlValue* value = Find(table, key);
    if (value == nullptr) return 0.0;
    if (const auto* whole = std::get_if<int64_t>(&value->value)) return static_cast<double>(*whole);
    if (const auto* number = std::get_if<double>(&value->value)) return *number;
    return file_.At(value->at, fmt::format("expected a number \"{}\"", key));
  }
  /// None: absent, or not all of them are numbers.
  static std::optional<std::vector<int64_t>> Numbers(const TomlValue& table, std::string_view key) {
    const TomlValue* value = Find(table, key);
    const auto* array = value ? std::get_if<TomlValue::Array>(&value->value) : nullptr;
    if (array == nullptr) return std::nullopt;
    std::vector<int64_t> numbers;
    for (const TomlValue& element : *array) {
      const auto* number = std::get_if<int64_t>(&element.value);
      if (number == nullptr || *number < 0) return std::nullopt;
      numbers.push_back(*number);
    }
    return numbers;
  }

  /// Its axes have names of their own here: those of the file mean nothing to Strata.
  Result<Mesh> ReadMesh() {
    const TomlValue* table = Find(file_.root, "mesh");
    const auto shape = table ? Numbers(*table, "shape") : std::nullopt;
    if (!shape || shape->empty())
      return file_.At(file_.root.at, "expected a table \"mesh\" with a \"shape\"");
    const TomlValue* names = Find(*table, "dim_names");
    const auto* array = names ? std::get_if<TomlValue::Array>(&names->value) : nullptr;
    std::string axes;
    for (size_t i = 0; i < shape->size(); ++i) {
      const auto* name =
          array && i < array->size() ? std::get_if<std::string>(&(*array)[i].value) : nullptr;
      const std::string comma = i == 0 ? "" : ",";
      result_.mesh +=
          fmt::format("{}{}={}", comma, name ? *name : fmt::format("{}", i), (*shape)[i]);
      axes += fmt::format("{}axis{}={}", comma, i, (*shape)[i]);
      is_axis_.push_back((*shape)[i] > 1);
    }
    Result<Mesh> mesh = Mesh::Parse(axes);
    if (!mesh) return file_.At(table->at, mesh.error().message());
    return mesh;
  }

  /// "S(0)R", of several results those of the first; none: not known.
  std::optional<Placements> PlacementsOf(std::string_view text) {
    if (text.starts_with('(')) text = text.substr(1, text.find_first_of(", ") - 1);
    std::string spelled;
    for (size_t i = 0; i < text.size(); ++i) {
      spelled += text[i];
      if (text[i] == 'P' && (i + 1 == text.size() || text[i + 1] != '(')) spelled += "(sum)";
    }
    const TypeId id = module_.types().Parse(fmt::format("DTensor(f32[], {})", spelled));
    const Type& type = module_.types()[id];
    if (type.kind != TypeKind::kTensor || type.placements.size() != is_axis_.size())
      return std::nullopt;
    Placements placements;
    for (size_t i = 0; i < is_axis_.size(); ++i)
      if (is_axis_[i]) placements.push_back(type.placements[i]);
    return placements;
  }
  std::optional<Placements> PlacementsIn(const TomlValue& table, std::string_view key) {
    const TomlValue* value = Find(table, key);
    const auto* text = value ? std::get_if<std::string>(&value->value) : nullptr;
    return text ? PlacementsOf(*text) : std::nullopt;
  }

  std::optional<TypeId> TypeOf(const TomlValue& node) {
    const auto sizes = Numbers(node, "shape");
    const TomlValue* name = Find(node, "dtype");
    const auto* text = name ? std::get_if<std::string>(&name->value) : nullptr;
    const auto dtype = text ? DTypeFromTorchName("torch." + *text) : std::nullopt;
    if (!sizes || !dtype) return std::nullopt;
    return module_.types().Tensor(*dtype, *sizes, "cuda");
  }

  std::optional<TypeId> PartOf(std::optional<TypeId> type,
                               const std::optional<Placements>& placements, const Mesh& mesh) {
    if (!type || !placements) return std::nullopt;
    Result<TypeId> part = LocalType(module_, WithPlacements(module_, *type, *placements), mesh);
    return part ? std::optional(*part) : std::nullopt;
  }

  Status ReadNode(const TomlValue& node, const CostModel& model) {
    STRATA_TRY(const std::string name, Text(node, "name"));
    STRATA_TRY(const std::string op, Text(node, "op"));
    if (op == "output") return Ok();
    STRATA_TRY(const double compute, Cost(node, "compute_cost"));
    result_.theirs.compute_us += compute;
    types_[name] = TypeOf(node);
    bool is_known = true;
    std::vector<Arg> operands;
    const TomlValue* inputs = Find(node, "inputs");
    const auto* array = inputs ? std::get_if<TomlValue::Array>(&inputs->value) : nullptr;
    for (size_t i = 0; array != nullptr && i < array->size(); ++i) {
      STRATA_TRY(const std::optional<TypeId> part, ReadInput((*array)[i], name, model));
      is_known = is_known && part;
      if (part) operands.emplace_back(AddInput(*part));
    }
    if (op == "placeholder" || op == "get_attr") return Ok();
    const auto part = PartOf(types_[name], PlacementsIn(node, "placement"), model.mesh());
    if (!is_known || !part) {
      ++result_.num_unknown;
      if (compute > 0) result_.items.push_back({.what = name + ": " + op, .theirs_us = compute});
      return Ok();
    }
    const TypeId results[] = {*part};
    const bool is_element = op == "<built-in function getitem>";
    const NodeId call = rewriter_.Create(
        {.op = is_element ? "_operator.getitem" : op, .args = operands, .results = results},
        From::Source());
    if (!is_element)
      calls_.push_back({.node = call, .what = name + ": " + op, .theirs_us = compute});
    return Ok();
  }

  ValueId AddInput(TypeId type) {
    const TypeId results[] = {type};
    return graph_.result(rewriter_.Create(
        {.kind = NodeKind::kPlaceholder, .op = "placeholder", .results = results}, From::Source()));
  }

  /// The part of the operand that a rank reads; none: not known.
  Result<std::optional<TypeId>> ReadInput(const TomlValue& input, const std::string& reader,
                                          const CostModel& model) {
    STRATA_TRY(const std::string name, Text(input, "name"));
    STRATA_TRY(const double communication, Cost(input, "comm_cost"));
    STRATA_TRY(const double transition, Cost(input, "transition_cost"));
    result_.theirs.communication_us += communication + transition;
    const auto from = PlacementsIn(input, "src_placement"),
               to = PlacementsIn(input, "dst_placement");
    const auto producer = types_.find(name);
    if (producer == types_.end())
      return file_.At(input.at, fmt::format("no node '{}' before this one", name));
    const std::optional<TypeId> type = producer->second;
    if (!from || !to || !type) return std::optional<TypeId>();
    const Type whole = module_.types()[*type];  // parsing adds types
    const double ours = model.RedistributionUs(module_, whole, *from, *to);
    result_.ours.communication_us += ours;
    if (ours > 0 || communication > 0) {
      result_.items.push_back(
          {.what = fmt::format("{}, {}: {} -> {}", reader, name, PlacementsText(module_, *from),
                               PlacementsText(module_, *to)),
           .theirs_us = communication + transition,
           .ours_us = ours});
    }
    return PartOf(type, to, model.mesh());
  }

  void PriceCalls(const NodeCost& cost) {
    for (const Call& call : calls_) {
      const double ours = cost.ComputeUs(graph_, call.node);
      result_.ours.compute_us += ours;
      if (ours > 0 || call.theirs_us > 0)
        result_.items.push_back({.what = call.what, .theirs_us = call.theirs_us, .ours_us = ours});
    }
  }

  TomlFile file_;
  Module module_;
  Graph& graph_;
  Rewriter rewriter_;
  std::vector<bool> is_axis_;  ///< axes of the file that have more than one rank
  std::map<std::string, std::optional<TypeId>> types_;  ///< whole, of the nodes so far
  std::vector<Call> calls_;
  ExportedPlacement result_;
};

}  // namespace

bool LooksLikeExportedPlacement(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  return begin != std::string_view::npos && text[begin] == '{' &&
         text.find("\"dim_names\"") != std::string_view::npos &&
         text.find("\"nodes\"") != std::string_view::npos;
}

Result<ExportedPlacement> EvaluateExported(std::string_view text, std::string_view file,
                                           const Topology& topology) {
  return Exported(text, file).Run(topology);
}

}  // namespace strata
