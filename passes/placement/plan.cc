#include "passes/placement/plan.h"

#include <algorithm>
#include <utility>

#include "base/file.h"
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

bool Divides(const Module& module, const Type& type, size_t dim, int64_t ranks) {
  if (dim >= type.sizes.size()) return false;
  const auto size = module.dims().AsConst(type.sizes[dim]);
  return size && *size % ranks == 0;
}

}  // namespace

Result<PlacementPlan> PlacementPlan::Load(const std::string& name, Mesh mesh,
                                          bool sequence_parallel) {
  if (name.empty()) return PlacementPlan(std::move(mesh));
  const std::pair<std::string_view, std::string_view> families[] = {
      {"deepseek_v3", assets::kDeepseekV3Toml},
      {"llama3", assets::kLlama3Toml},
      {"qwen3", assets::kLlama3Toml},  // names its modules alike
  };
  for (const auto& [family, text] : families)
    if (name == family) return Parse(text, name, std::move(mesh), sequence_parallel);
  STRATA_TRY(const std::string text, ReadFile(name));
  return Parse(text, name, std::move(mesh), sequence_parallel);
}

Result<PlacementPlan> PlacementPlan::Parse(std::string_view text, std::string_view file, Mesh mesh,
                                           bool sequence_parallel) {
  PlacementPlan plan(std::move(mesh));
  STRATA_TRY(const TomlFile toml, ParseToml(text, file));
  Module scratch;
  for (const TomlValue::Member& member : std::get<TomlValue::Table>(toml.root.value)) {
    const bool is_parameter = member.key == "parameter";
    const auto* entries = std::get_if<TomlValue::Array>(&member.value.value);
    if ((!is_parameter && member.key != "output") || entries == nullptr)
      return toml.At(member.at, "a plan has entries [[parameter]] and [[output]] only");
    for (const TomlValue& value : *entries) {
      const auto* table = std::get_if<TomlValue::Table>(&value.value);
      if (table == nullptr) return toml.At(value.at, "expected a table");
      Entry entry;
      bool is_meant = true;
      for (const TomlValue::Member& field : *table) {
        if (field.key == "sequence_parallel") {
          const bool* wanted = std::get_if<bool>(&field.value.value);
          if (wanted == nullptr) return toml.At(field.value.at, "expected true or false");
          is_meant = *wanted == sequence_parallel;
          continue;
        }
        const auto* string = std::get_if<std::string>(&field.value.value);
        if (string == nullptr) return toml.At(field.value.at, "expected a string");
        if (field.key == (is_parameter ? "name" : "module")) {
          entry.pattern = *string;
          continue;
        }
        if (!OnePlacement(scratch, *string))
          return toml.At(field.value.at, "expected a placement: S(dim), R or P(sum)");
        // Axes that this mesh does not have, have one rank.
        const auto& axes = plan.mesh_.axes();
        const auto axis = std::ranges::find(axes, field.key, &MeshAxis::name);
        if (axis != axes.end())
          entry.placements.emplace_back(static_cast<size_t>(axis - axes.begin()), *string);
      }
      if (entry.pattern.empty())
        return toml.At(value.at,
                       is_parameter ? "an entry needs a name" : "an entry needs a module");
      if (is_meant) (is_parameter ? plan.parameters_ : plan.outputs_).push_back(std::move(entry));
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
  if (const Entry* entry = Find(parameters_, name)) {
    for (const auto& [axis, text] : entry->placements) {
      const Placement given = *OnePlacement(module, text);
      if (IsShard(given) &&
          !Divides(module, type, static_cast<size_t>(given.dim), mesh_.axes()[axis].size))
        continue;
      placement.stored[axis] = placement.read[axis] = given;
    }
  }
  for (size_t axis = 0; axis < mesh_.axes().size(); ++axis) {
    if (mesh_.axes()[axis].name != "fsdp") continue;
    int64_t inner = 1;  // parts of dimension 0 that inner axes cut
    for (size_t other = 0; other < placement.read.size(); ++other)
      if (IsShard(placement.read[other]) && placement.read[other].dim == 0)
        inner *= mesh_.axes()[other].size;
    if (!Divides(module, type, 0, inner * mesh_.axes()[axis].size)) continue;
    placement.stored[axis] = Shard(0, inner == 1 ? 0 : static_cast<int32_t>(inner));
  }
  return placement;
}

Placements PlacementPlan::Batch(const Module& module, const Type& type) const {
  Placements placements = Replicated();
  int64_t parts = 1;
  for (size_t axis = 0; axis < placements.size(); ++axis) {
    const MeshAxis& mesh_axis = mesh_.axes()[axis];
    if (mesh_axis.name != "dp_replicate" && mesh_axis.name != "fsdp") continue;
    if (!Divides(module, type, 0, parts * mesh_axis.size)) continue;
    parts *= mesh_axis.size;
    placements[axis] = Shard(0);
  }
  return placements;
}

std::optional<Placement> PlacementPlan::Output(Module& module, std::string_view module_path,
                                               size_t axis) const {
  const Entry* entry = Find(outputs_, module_path);
  if (entry == nullptr) return std::nullopt;
  for (const auto& [entry_axis, text] : entry->placements)
    if (entry_axis == axis) return OnePlacement(module, text);
  return std::nullopt;
}

}  // namespace strata
