#include "passes/placement/plan.h"

#include <algorithm>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "base/toml.h"
#include "embedded/strata_plans.h"

namespace strata {
namespace {

/// `*` stands for any characters.
bool Matches(std::string_view pattern, std::string_view text) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == text;
  if (!text.starts_with(pattern.substr(0, star))) return false;
  const std::string_view rest = pattern.substr(star + 1);
  for (size_t at = star; at <= text.size(); ++at)
    if (Matches(rest, text.substr(at))) return true;
  return false;
}

/// One placement, as its text in a type.
std::optional<Placement> OnePlacement(Module& module, std::string_view text) {
  const TypeId id = module.types().Parse(fmt::format("DTensor(f32[], {})", text));
  const Type& type = module.types()[id];
  if (type.kind != TypeKind::kTensor || type.placements.size() != 1) return std::nullopt;
  return type.placements[0];
}

/// "S(0)R": any number of placements.
std::optional<std::vector<Placement>> PlacementList(Module& module, std::string_view text) {
  text = TrimBlanks(text);
  if (text.empty()) return std::vector<Placement>{};
  const TypeId id = module.types().Parse(fmt::format("DTensor(f32[], {})", text));
  const Type& type = module.types()[id];
  if (type.kind != TypeKind::kTensor || type.placements.empty()) return std::nullopt;
  return type.placements;
}

/// "S(0)R -> S(0) => R": how a call runs on one axis.
struct CallText {
  AxisStrategy strategy;
  std::vector<Placement> shared;
};
std::optional<CallText> ParseCall(Module& module, std::string_view text) {
  const size_t arrow = text.find("->");
  if (arrow == std::string_view::npos) return std::nullopt;
  const std::string_view after = text.substr(arrow + 2);
  const size_t copies = std::min(after.find("=>"), after.size());
  auto operands = PlacementList(module, text.substr(0, arrow));
  auto results = PlacementList(module, after.substr(0, copies));
  auto shared = PlacementList(module, copies == after.size() ? "" : after.substr(copies + 2));
  if (!operands || !results || !shared) return std::nullopt;
  if (!shared->empty() && shared->size() != results->size()) return std::nullopt;
  return CallText{{.operands = *std::move(operands), .results = *std::move(results)},
                  *std::move(shared)};
}

bool Divides(const Module& module, const Type& type, size_t dim, int64_t ranks) {
  return dim < type.sizes.size() && KnownDivisor(module.dims(), type.sizes[dim]) % ranks == 0;
}

/// Whether each rank has an element of the dimension.
bool HasRowsFor(const Module& module, const Type& type, size_t dim, int64_t ranks) {
  return dim < type.sizes.size() && module.dims().AsConst(type.sizes[dim]).value_or(ranks) >= ranks;
}

/// Ranks that do not divide a dimension evenly have zeros after it.
bool MayBePadded(const Module& module, const Type& type, size_t dim) {
  return dim < type.sizes.size() && module.dims().AsConst(type.sizes[dim]).value_or(1) > 1;
}

}  // namespace

Result<PlacementPlan> PlacementPlan::Load(const std::string& name, Mesh mesh,
                                          PlanSwitches switches) {
  if (name.empty()) return PlacementPlan(std::move(mesh));
  const std::pair<std::string_view, std::string_view> families[] = {
      {"deepseek_v3", assets::kDeepseekV3Toml},
      {"llama3", assets::kLlama3Toml},
      {"qwen3", assets::kLlama3Toml},  // names its modules alike
  };
  for (const auto& [family, text] : families)
    if (name == family) return Parse(text, name, std::move(mesh), switches);
  STRATA_TRY(const std::string text, ReadFile(name));
  return Parse(text, name, std::move(mesh), switches);
}

/// Reads the entries of one kind, which `name_key` names.
class PlacementPlan::Reader {
 public:
  Reader(const TomlFile& toml, const Mesh& mesh, std::string_view kind, PlanSwitches switches)
      : toml_(toml),
        mesh_(mesh),
        is_node_(kind == "node"),
        name_key_(kind == "parameter" ? "name" : "module"),
        switches_(switches) {}

  /// None: the entry does not hold.
  Result<std::optional<Entry>> Read(const TomlValue& value) {
    const auto* table = std::get_if<TomlValue::Table>(&value.value);
    if (table == nullptr) return toml_.At(value.at, "expected a table");
    Entry entry;
    if (is_node_) entry.where = toml_.Where(value.at);
    bool is_meant = true, has_name = false;
    for (const TomlValue::Member& field : *table) {
      const bool is_of_loss = field.key == "loss_parallel";
      if (field.key == "sequence_parallel" || is_of_loss) {
        const bool* wanted = std::get_if<bool>(&field.value.value);
        if (wanted == nullptr) return toml_.At(field.value.at, "expected true or false");
        const bool is_on = is_of_loss ? switches_.loss_parallel : switches_.sequence_parallel;
        is_meant = is_meant && *wanted == is_on;
        continue;
      }
      if (field.key == "uneven" && !is_node_) {
        const bool* wanted = std::get_if<bool>(&field.value.value);
        if (wanted == nullptr) return toml_.At(field.value.at, "expected true or false");
        entry.is_uneven = *wanted;
        continue;
      }
      if (is_node_ && field.key == "index") {
        const int64_t* index = std::get_if<int64_t>(&field.value.value);
        if (index == nullptr) return toml_.At(field.value.at, "expected a number");
        entry.index = *index;
        continue;
      }
      const auto* string = std::get_if<std::string>(&field.value.value);
      if (string == nullptr) return toml_.At(field.value.at, "expected a string");
      if (std::string* text = TextOf(entry, field.key)) {
        *text = *string;
        has_name = has_name || field.key == name_key_;
        continue;
      }
      STRATA_RETURN_IF_ERROR(AddPlacement(entry, field, *string));
    }
    const bool is_named = is_node_ ? has_name && !entry.op.empty() : !entry.pattern.empty();
    if (!is_named) {
      return toml_.At(value.at, is_node_ ? "an entry needs a module, an op and a phase"
                                         : fmt::format("an entry needs a {}", name_key_));
    }
    return is_meant ? std::optional(std::move(entry)) : std::nullopt;
  }

 private:
  std::string* TextOf(Entry& entry, std::string_view key) const {
    if (key == name_key_) return &entry.pattern;
    if (is_node_ && key == "op") return &entry.op;
    if (is_node_ && key == "phase") return &entry.phase;
    return nullptr;
  }

  /// Axes that this mesh does not have, have one rank.
  Status AddPlacement(Entry& entry, const TomlValue::Member& field, const std::string& text) {
    if (is_node_ ? !ParseCall(scratch_, text) : !OnePlacement(scratch_, text)) {
      return toml_.At(field.value.at, is_node_ ? "expected placements of operands and results: "
                                                 "\"S(0)R -> S(0)\""
                                               : "expected a placement: S(dim), R or P(sum)");
    }
    const std::vector<size_t> expert_axes = mesh_.PartsOf("ep");
    const auto is_of_experts = [&](size_t axis) {
      return std::ranges::count(expert_axes, axis) != 0;
    };
    const std::vector<size_t> axes = mesh_.PartsOf(field.key);
    // Ranks that have whole experts have no parts of them.
    if (!is_node_ && field.key == "ep" && !axes.empty()) {
      std::erase_if(entry.placements, [&](const auto& of) { return is_of_experts(of.first); });
      entry.is_of_experts = true;
    }
    for (const size_t axis : axes)
      if (field.key == "ep" || !entry.is_of_experts || !is_of_experts(axis))
        entry.placements.emplace_back(axis, text);
    return Ok();
  }

  const TomlFile& toml_;
  const Mesh& mesh_;
  const bool is_node_;
  const std::string_view name_key_;
  const PlanSwitches switches_;
  Module scratch_;
};

Result<PlacementPlan> PlacementPlan::Parse(std::string_view text, std::string_view file, Mesh mesh,
                                           PlanSwitches switches) {
  PlacementPlan plan(std::move(mesh));
  STRATA_TRY(const TomlFile toml, ParseToml(text, file));
  for (const TomlValue::Member& member : std::get<TomlValue::Table>(toml.root.value)) {
    std::vector<Entry>* kinds = member.key == "parameter" ? &plan.parameters_
                                : member.key == "output"  ? &plan.outputs_
                                : member.key == "node"    ? &plan.nodes_
                                                          : nullptr;
    const auto* entries = std::get_if<TomlValue::Array>(&member.value.value);
    if (kinds == nullptr || entries == nullptr) {
      return toml.At(member.at, "a plan has entries [[parameter]], [[output]] and [[node]] only");
    }
    Reader reader(toml, plan.mesh_, member.key, switches);
    for (const TomlValue& value : *entries) {
      STRATA_TRY(std::optional<Entry> entry, reader.Read(value));
      if (entry) kinds->push_back(*std::move(entry));
    }
  }
  return plan;
}

const PlacementPlan::Entry* PlacementPlan::Find(const std::vector<Entry>& entries,
                                                std::string_view name) const {
  const auto found = std::ranges::find_if(
      entries, [&](const Entry& entry) { return Matches(entry.pattern, name); });
  return found == entries.end() ? nullptr : &*found;
}

ParameterPlacement PlacementPlan::Parameter(Module& module, std::string_view name,
                                            const Type& type) const {
  ParameterPlacement placement{Replicated(), Replicated()};
  std::vector<bool> decided(mesh_.axes().size());
  const Entry* entry = Find(parameters_, name);
  if (entry != nullptr) {
    for (const auto& [axis, text] : entry->placements) {
      const Placement given = *OnePlacement(module, text);
      const auto dim = static_cast<size_t>(given.dim);
      const bool is_even = !IsShard(given) || Divides(module, type, dim, mesh_.axes()[axis].size);
      if (!is_even && !(entry->is_uneven && MayBePadded(module, type, dim))) continue;
      placement.stored[axis] = placement.read[axis] = given;
      decided[axis] = true;
    }
  }
  StoreInParts(module, type, entry != nullptr && entry->is_of_experts, decided, placement);
  return placement;
}

void PlacementPlan::StoreInParts(const Module& module, const Type& type, bool is_of_experts,
                                 const std::vector<bool>& decided,
                                 ParameterPlacement& placement) const {
  const bool has_experts = is_of_experts && mesh_.Find("ep") != nullptr;
  std::vector<size_t> axes = mesh_.PartsOf(has_experts ? "efsdp" : "fsdp");
  if (!has_experts)
    for (const size_t axis : mesh_.PartsOf("cp"))
      axes.push_back(axis);
  for (const size_t axis : axes)
    placement.read[axis] = Replicate();
  std::erase_if(axes, [&](size_t axis) { return decided[axis]; });
  int64_t ranks = 1;
  for (const size_t axis : axes)
    ranks *= mesh_.axes()[axis].size;
  // More ranks than experts: each has a part of some.
  for (size_t dim = 0; dim < (has_experts ? type.sizes.size() : 1); ++dim) {
    int64_t inner = 1;  // parts of the dimension that inner axes cut
    for (size_t other = 0; other < placement.read.size(); ++other)
      if (IsShard(placement.read[other]) && static_cast<size_t>(placement.read[other].dim) == dim)
        inner *= mesh_.axes()[other].size;
    if (!Divides(module, type, dim, inner * ranks) &&
        (has_experts || !MayBePadded(module, type, dim) ||
         (inner > 1 && !HasRowsFor(module, type, dim, inner * ranks))))
      continue;
    for (const size_t axis : axes)
      placement.stored[axis] = Shard(dim, inner == 1 ? 0 : static_cast<int32_t>(inner));
    return;
  }
}

Placements PlacementPlan::Batch(const Module& module, const Type& type) const {
  Placements placements = Replicated();
  const auto cut = [&](size_t dim, std::initializer_list<std::string_view> names) {
    int64_t parts = 1;
    for (const std::string_view name : names) {
      for (const size_t axis : mesh_.PartsOf(name)) {
        const int64_t ranks = mesh_.axes()[axis].size;
        if (!Divides(module, type, dim, parts * ranks)) continue;
        parts *= ranks;
        placements[axis] = Shard(dim);
      }
    }
  };
  cut(0, {"dp_replicate", "fsdp"});
  cut(1, {"cp"});
  return placements;
}

std::optional<Placement> PlacementPlan::Output(Module& module, std::string_view module_path,
                                               size_t axis) const {
  return OnAxis(module, Find(outputs_, module_path), axis);
}

std::string PlacementPlan::OutputEntries() const {
  std::string text;
  for (const Entry& entry : outputs_) {
    text += fmt::format("  {{ module = \"{}\"", entry.pattern);
    for (const auto& [axis, placement] : entry.placements)
      text += fmt::format(", {} = \"{}\"", mesh_.axes()[axis].name, placement);
    text += " },\n";
  }
  return text;
}

std::optional<Placement> PlacementPlan::Stored(Module& module, std::string_view name,
                                               size_t axis) const {
  return OnAxis(module, Find(parameters_, name), axis);
}

std::optional<Placement> PlacementPlan::OnAxis(Module& module, const Entry* entry, size_t axis) {
  if (entry == nullptr) return std::nullopt;
  for (const auto& [entry_axis, text] : entry->placements)
    if (entry_axis == axis) return OnePlacement(module, text);
  return std::nullopt;
}

const PlacementPlan::Entry* PlacementPlan::FindNode(const NodeKey& key) const {
  const auto found = std::ranges::find_if(nodes_, [&](const Entry& entry) {
    return entry.index == key.index && entry.op == key.op && entry.phase == ToString(key.phase) &&
           Matches(entry.pattern, key.module);
  });
  return found == nodes_.end() ? nullptr : &*found;
}

std::optional<AxisStrategy> PlacementPlan::Strategy(Module& module, const NodeKey& key,
                                                    size_t axis) const {
  const std::string* text = CallOn(key, axis);
  if (text == nullptr) return std::nullopt;
  return ParseCall(module, *text)->strategy;
}

std::vector<Placement> PlacementPlan::Shared(Module& module, const NodeKey& key,
                                             size_t axis) const {
  const std::string* text = CallOn(key, axis);
  return text == nullptr ? std::vector<Placement>() : ParseCall(module, *text)->shared;
}

const std::string* PlacementPlan::CallOn(const NodeKey& key, size_t axis) const {
  const Entry* entry = FindNode(key);
  if (entry == nullptr) return nullptr;
  const auto found =
      std::ranges::find(entry->placements, axis, &std::pair<size_t, std::string>::first);
  return found == entry->placements.end() ? nullptr : &found->second;
}

std::string PlacementPlan::WhereNode(const NodeKey& key) const {
  const Entry* entry = FindNode(key);
  return entry == nullptr ? "" : entry->where;
}

}  // namespace strata
