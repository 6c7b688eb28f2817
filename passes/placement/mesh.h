#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace strata {

/// A dimension of a mesh. A rank's coordinate on it is `rank / stride % size`.
struct MeshAxis {
  std::string name;
  int64_t size = 1;
  int64_t stride = 1;  ///< distance of neighbours, in ranks
  friend bool operator==(const MeshAxis&, const MeshAxis&) = default;
};

/// How the ranks of a run are arranged: a grid with named axes, outermost first, so that ranks that
/// differ in the last axis alone are consecutive. Axes of size 1 are left out; a mesh without axes
/// has one rank.
///
/// An axis `ep` borrows ranks from the axes inside `dp_replicate`: `fsdp=2,tp=4,ep=4` has 8 ranks.
/// Experts see these 8 ranks as a second grid, `efsdp=2,ep=4`, in which `ep` is innermost. `axes()`
/// is fine enough for both: an axis that the border between `efsdp` and `ep` crosses is two axes of
/// the grid, `fsdp=4,ep=2` the grid `efsdp=2,ep=2`, and `fsdp` a name for both.
class Mesh {
 public:
  Mesh() = default;

  /// Of `name=size,…`, outermost axis first, `ep` last. "" is one rank.
  /// Errors: a text of another form, a name that is given twice or reserved, a size below 1, more
  /// than 2^20 ranks, experts' ranks that do not divide those that they borrow, or that are not the
  /// ranks of inner axes and an even part of the next one.
  static Result<Mesh> Parse(std::string_view text);
  /// What `Parse` reads; equal meshes have equal texts.
  std::string Text() const;

  /// Of the axes in the text, in its order.
  std::vector<std::string_view> Names() const;

  /// Of the grid of all ranks: their sizes multiply to `num_ranks`.
  const std::vector<MeshAxis>& axes() const { return axes_; }
  int64_t num_ranks() const { return num_ranks_; }

  /// The axis of this name, which may be several of the grid, or null.
  const MeshAxis* Find(std::string_view axis) const;
  /// Indices into `axes()` of the axes that `axis` is: ascending, empty for an unknown name.
  std::vector<size_t> PartsOf(std::string_view axis) const;
  /// The axis whose parts are those that `axes()` has from `first` on; null: no name says so.
  const MeshAxis* Joined(size_t first, size_t count) const;

  /// On each of `axes()`. REQUIRES: 0 <= rank < num_ranks().
  std::vector<int64_t> Coordinates(int64_t rank) const;
  /// REQUIRES: a coordinate within each of `axes()`.
  int64_t RankAt(std::span<const int64_t> coordinates) const;

  /// The axes of a group: an axis, or several, `dp_replicate+fsdp`; `fsdp#ag` are those of `fsdp`.
  /// Errors: an axis that the mesh does not have, a name given twice, axes that share ranks.
  Result<std::vector<MeshAxis>> GroupAxes(std::string_view group) const;
  /// The ranks that agree with `rank` in everything but the axes of `group`, ordered by their
  /// coordinates, the first axis of `group` slowest. Errors: those of GroupAxes.
  Result<std::vector<int64_t>> GroupOf(std::string_view group, int64_t rank) const;
  /// The place of `rank` in that list. Errors: those of GroupAxes.
  Result<int64_t> IndexIn(std::string_view group, int64_t rank) const;

  friend bool operator==(const Mesh&, const Mesh&) = default;

 private:
  std::vector<MeshAxis> axes_;
  std::vector<MeshAxis> given_;        ///< of the text, without ep
  std::vector<MeshAxis> expert_axes_;  ///< some of efsdp and ep
  int64_t num_ranks_ = 1;
};

}  // namespace strata
