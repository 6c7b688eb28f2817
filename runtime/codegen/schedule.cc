#include "runtime/codegen/schedule.h"

#include <algorithm>
#include <span>

namespace strata {
namespace {

/// The stage in which each op is known: what reads a reduction is one later than what is reduced.
std::vector<size_t> StagesOf(const Kernel& kernel) {
  std::vector<size_t> stages;
  for (const Kernel::Op& op : kernel.ops) {
    size_t stage = 0;
    for (const int32_t operand : op.operands)
      stage = std::max(stage, stages[static_cast<size_t>(operand)]);
    stages.push_back(IsReduction(op) ? stage + 1 : stage);
  }
  return stages;
}

/// The column ops that `roots` need, ascending.
std::vector<int32_t> ColumnOpsFor(const Kernel& kernel, std::vector<int32_t> roots) {
  std::vector<bool> needed(kernel.ops.size(), false);
  while (!roots.empty()) {
    const int32_t op = roots.back();
    roots.pop_back();
    const Kernel::Op& o = kernel.ops[static_cast<size_t>(op)];
    if (o.level != Kernel::Level::kColumn || needed[static_cast<size_t>(op)]) continue;
    needed[static_cast<size_t>(op)] = true;
    roots.insert(roots.end(), o.operands.begin(), o.operands.end());
  }
  std::vector<int32_t> ops;
  for (size_t op = 0; op < needed.size(); ++op) {
    if (needed[op]) ops.push_back(static_cast<int32_t>(op));
  }
  return ops;
}

/// Whether a store writes every column.
bool IsColumnStore(const Kernel& kernel, const Kernel::Store& store) {
  if (!kernel.has_rows) return true;
  const std::vector<int64_t>& strides = kernel.accesses[static_cast<size_t>(store.access)].strides;
  return std::ranges::any_of(std::span(strides).subspan(kernel.num_row_dims),
                             [](int64_t stride) { return stride != 0; });
}

}  // namespace

Schedule MakeSchedule(const Kernel& kernel) {
  Schedule schedule;
  const size_t rank = kernel.sizes.size();
  if (kernel.has_rows) {
    schedule.num_outer_dims = kernel.num_row_dims;
  } else {
    schedule.num_outer_dims = rank == 1 ? 1 : rank - std::min<size_t>(rank, 1);
  }
  schedule.num_inner_dims = rank - schedule.num_outer_dims;
  for (size_t dim = 0; dim < rank; ++dim)
    (dim < schedule.num_outer_dims ? schedule.units : schedule.unit_elements) *= kernel.sizes[dim];

  const std::vector<size_t> stage_of = StagesOf(kernel);
  const size_t last = stage_of.empty() ? 0 : *std::ranges::max_element(stage_of);
  schedule.stages.resize(last + 1);
  for (size_t i = 0; i < kernel.ops.size(); ++i) {
    const Kernel::Op& op = kernel.ops[i];
    if (IsReduction(op)) {
      schedule.stages[stage_of[i] - 1].reductions.push_back(static_cast<int32_t>(i));
    } else if (op.level == Kernel::Level::kRow) {
      schedule.stages[stage_of[i]].row_ops.push_back(static_cast<int32_t>(i));
    }
  }
  for (size_t i = 0; i < kernel.stores.size(); ++i) {
    Schedule::Stage& stage = schedule.stages[stage_of[static_cast<size_t>(kernel.stores[i].op)]];
    (IsColumnStore(kernel, kernel.stores[i]) ? stage.column_stores : stage.row_stores)
        .push_back(static_cast<int32_t>(i));
  }
  for (Schedule::Stage& stage : schedule.stages) {
    std::vector<int32_t> roots;
    for (const int32_t store : stage.column_stores)
      roots.push_back(kernel.stores[static_cast<size_t>(store)].op);
    for (const int32_t op : stage.reductions)
      roots.push_back(kernel.ops[static_cast<size_t>(op)].operands[0]);
    stage.column_ops = ColumnOpsFor(kernel, std::move(roots));
  }
  return schedule;
}

bool MayOverwrite(const Kernel& kernel, const Schedule& schedule, int32_t input, int32_t result) {
  if (!kernel.has_rows) return kernel.IsElementwise(input, result);
  const Kernel::Store& store = kernel.stores[static_cast<size_t>(result)];
  const Kernel::Access& written = kernel.accesses[static_cast<size_t>(store.access)];
  for (const Kernel::Access& access : kernel.accesses) {
    if (access.argument == input &&
        (access.strides != written.strides || access.dtype != written.dtype)) {
      return false;
    }
  }
  const auto stage = std::ranges::find_if(schedule.stages, [&](const Schedule::Stage& s) {
    return std::ranges::find(s.column_stores, result) != s.column_stores.end();
  });
  if (stage == schedule.stages.end()) return false;
  // What has the strides of a store of columns is read by loops over columns.
  const auto reads = [&](int32_t op) {
    const Kernel::Op& o = kernel.ops[static_cast<size_t>(op)];
    return o.access >= 0 && kernel.accesses[static_cast<size_t>(o.access)].argument == input;
  };
  return std::none_of(stage + 1, schedule.stages.end(), [&](const Schedule::Stage& later) {
    return std::ranges::any_of(later.column_ops, reads);
  });
}

}  // namespace strata
