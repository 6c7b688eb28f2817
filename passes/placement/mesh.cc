#include "passes/placement/mesh.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"

namespace strata {
namespace {

constexpr int64_t kMaxRanks = int64_t{1} << 20U;
constexpr std::string_view kExpertAxis = "ep";
constexpr std::string_view kExpertShardAxis = "efsdp";

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == text.npos) return parts;
    text.remove_prefix(end + 1);
  }
}

Error Malformed(std::string_view text, std::string_view why) {
  return Error("not a mesh: '{}': {}; write axes and their sizes, as in fsdp=2,tp=4", OneLine(text),
               why);
}

/// `fsdp=2`.
Result<MeshAxis> ParseAxis(std::string_view text, std::string_view axis) {
  const size_t equals = axis.find('=');
  if (equals == axis.npos) return Malformed(text, fmt::format("'{}' has no size", OneLine(axis)));
  const std::string_view name = axis.substr(0, equals);
  const std::string_view number = axis.substr(equals + 1);
  if (name.empty() || !std::ranges::all_of(name, IsWordChar)) {
    return Malformed(text, fmt::format("'{}' is not a name", OneLine(name)));
  }
  int64_t size = 0;
  const auto [end, problem] = std::from_chars(number.data(), number.data() + number.size(), size);
  if (problem != std::errc{} || end != number.data() + number.size() || size < 1) {
    return Malformed(text, fmt::format("the size of {} is '{}'", OneLine(name), OneLine(number)));
  }
  return MeshAxis{.name = std::string(name), .size = size};
}

/// Axes that experts do not borrow ranks from.
bool IsOutsideExperts(const MeshAxis& axis) {
  return axis.name == "pp" || axis.name == "dp_replicate";
}

std::vector<std::string> NamesOf(const std::vector<MeshAxis>& axes) {
  std::vector<std::string> names;
  for (const MeshAxis& axis : axes)
    names.push_back(axis.name);
  return names;
}

/// Axes of `fine` cover the ranks of a coarser one when their strides are inside it.
bool IsPartOf(const MeshAxis& fine, const MeshAxis& whole) {
  return fine.stride >= whole.stride && fine.stride < whole.stride * whole.size;
}

/// The axes that the text gives, `ep` apart as the number of ranks that share experts.
Result<int64_t> ParseAxes(std::string_view text, int64_t& num_ranks, std::vector<MeshAxis>& axes) {
  std::vector<std::string> names;
  int64_t experts = 1;
  for (const std::string_view part : Split(text, ',')) {
    STRATA_TRY(MeshAxis axis, ParseAxis(text, part));
    if (std::ranges::find(names, axis.name) != names.end()) {
      return Malformed(text, fmt::format("{} is given twice", axis.name));
    }
    if (axis.name == kExpertShardAxis) {
      return Malformed(text, "the size of efsdp follows from that of ep");
    }
    if (!names.empty() && names.back() == kExpertAxis) {
      return Malformed(text, "ep is not the last axis");
    }
    names.push_back(axis.name);
    if (axis.size > kMaxRanks / num_ranks) {
      return Malformed(text, fmt::format("it has more than {} ranks", kMaxRanks));
    }
    if (axis.name == kExpertAxis) {
      experts = axis.size;
      continue;
    }
    num_ranks *= axis.size;
    if (axis.size > 1) axes.push_back(std::move(axis));
  }
  return experts;
}

int64_t CoordinateOn(const MeshAxis& axis, int64_t rank) {
  return rank / axis.stride % axis.size;
}

}  // namespace

Result<Mesh> Mesh::Parse(std::string_view text) {
  Mesh mesh;
  if (text.empty()) return mesh;
  STRATA_TRY(const int64_t experts, ParseAxes(text, mesh.num_ranks_, mesh.given_));
  int64_t stride = 1, lent = 1;
  for (auto axis = mesh.given_.rbegin(); axis != mesh.given_.rend(); ++axis) {
    axis->stride = stride;
    stride *= axis->size;
    if (!IsOutsideExperts(*axis)) lent *= axis->size;
  }
  if (lent % experts != 0) {
    return Malformed(
        text, fmt::format("ep = {} does not divide the {} ranks of the axes inside dp_replicate",
                          experts, lent));
  }
  if (experts > 1 && lent > experts) {
    mesh.expert_axes_.push_back(
        {.name = std::string(kExpertShardAxis), .size = lent / experts, .stride = experts});
  }
  if (experts > 1) mesh.expert_axes_.push_back({.name = std::string(kExpertAxis), .size = experts});
  for (const MeshAxis& axis : mesh.given_) {
    const bool is_crossed = axis.stride < experts && experts < axis.stride * axis.size;
    if (!is_crossed) {
      mesh.axes_.push_back(axis);
      continue;
    }
    const int64_t inner = experts / axis.stride;
    if (experts % axis.stride != 0 || axis.size % inner != 0) {
      return Malformed(text, fmt::format("ep = {} takes no even part of {}", experts, axis.name));
    }
    const auto part = [&](std::string_view expert_axis, int64_t size, int64_t part_stride) {
      const MeshAxis* whole = mesh.Find(expert_axis);
      const bool is_whole = whole->size == size && whole->stride == part_stride;
      mesh.axes_.push_back(
          {.name = is_whole ? whole->name : fmt::format("{}_{}", axis.name, expert_axis),
           .size = size,
           .stride = part_stride});
    };
    part(kExpertShardAxis, axis.size / inner, experts);
    part(kExpertAxis, inner, axis.stride);
  }
  return mesh;
}

std::vector<std::string_view> Mesh::Names() const {
  std::vector<std::string_view> names;
  for (const MeshAxis& axis : given_)
    names.emplace_back(axis.name);
  if (!expert_axes_.empty()) names.emplace_back(kExpertAxis);
  return names;
}

std::string Mesh::Text() const {
  std::string text;
  for (const std::string_view axis : Names())
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", axis, Find(axis)->size);
  return text;
}

const MeshAxis* Mesh::Find(std::string_view axis) const {
  for (const std::vector<MeshAxis>* axes : {&given_, &expert_axes_, &axes_}) {
    const auto found = std::ranges::find(*axes, axis, &MeshAxis::name);
    if (found != axes->end()) return &*found;
  }
  return nullptr;
}

std::vector<size_t> Mesh::PartsOf(std::string_view axis) const {
  std::vector<size_t> parts;
  const MeshAxis* whole = Find(axis);
  for (size_t i = 0; whole != nullptr && i < axes_.size(); ++i)
    if (IsPartOf(axes_[i], *whole)) parts.push_back(i);
  return parts;
}

const MeshAxis* Mesh::Joined(size_t first, size_t count) const {
  const MeshAxis& inner = axes_[first + count - 1];
  int64_t size = 1;
  for (size_t i = first; i < first + count; ++i)
    size *= axes_[i].size;
  for (const std::vector<MeshAxis>* axes : {&given_, &expert_axes_})
    for (const MeshAxis& axis : *axes)
      if (axis.stride == inner.stride && axis.size == size) return &axis;
  return nullptr;
}

std::vector<int64_t> Mesh::Coordinates(int64_t rank) const {
  STRATA_CHECK(rank >= 0 && rank < num_ranks_, "rank {} of {}", rank, num_ranks_);
  std::vector<int64_t> coordinates;
  for (const MeshAxis& axis : axes_)
    coordinates.push_back(CoordinateOn(axis, rank));
  return coordinates;
}

int64_t Mesh::RankAt(std::span<const int64_t> coordinates) const {
  STRATA_CHECK(coordinates.size() == axes_.size());
  int64_t rank = 0;
  for (size_t i = 0; i < axes_.size(); ++i) {
    STRATA_CHECK(coordinates[i] >= 0 && coordinates[i] < axes_[i].size);
    rank += coordinates[i] * axes_[i].stride;
  }
  return rank;
}

Result<std::vector<MeshAxis>> Mesh::GroupAxes(std::string_view group) const {
  std::vector<MeshAxis> axes;
  group = group.substr(0, group.find('#'));
  for (const std::string_view name : Split(group, '+')) {
    const MeshAxis* axis = Find(name);
    if (axis == nullptr) {
      std::vector<std::string> names = NamesOf(given_);
      for (std::string& expert : NamesOf(expert_axes_))
        names.push_back(std::move(expert));
      return Error("mesh '{}' has no axis '{}': it has {}", Text(), OneLine(name),
                   names.empty() ? "one rank" : Enumerate(names, names.size()));
    }
    if (std::ranges::find(axes, axis->name, &MeshAxis::name) != axes.end()) {
      return Error("group '{}' names axis {} twice: name it once", OneLine(group), axis->name);
    }
    for (const MeshAxis& other : axes) {
      if (!IsPartOf(*axis, other) && !IsPartOf(other, *axis)) continue;
      return Error(
          "group '{}' joins {} and {}, which have ranks in common: join efsdp and ep, or "
          "the other axes",
          OneLine(group), other.name, axis->name);
    }
    axes.push_back(*axis);
  }
  return axes;
}

Result<std::vector<int64_t>> Mesh::GroupOf(std::string_view group, int64_t rank) const {
  STRATA_TRY(const std::vector<MeshAxis> axes, GroupAxes(group));
  int64_t first = rank;
  for (const MeshAxis& axis : axes)
    first -= CoordinateOn(axis, rank) * axis.stride;
  std::vector<int64_t> ranks = {first};
  for (const MeshAxis& axis : axes) {
    std::vector<int64_t> more;
    for (const int64_t start : ranks) {
      for (int64_t i = 0; i < axis.size; ++i)
        more.push_back(start + i * axis.stride);
    }
    ranks = std::move(more);
  }
  return ranks;
}

Result<int64_t> Mesh::IndexIn(std::string_view group, int64_t rank) const {
  STRATA_TRY(const std::vector<MeshAxis> axes, GroupAxes(group));
  int64_t index = 0;
  for (const MeshAxis& axis : axes)
    index = index * axis.size + CoordinateOn(axis, rank);
  return index;
}

}  // namespace strata
