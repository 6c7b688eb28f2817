#include "prove/ops/definitions.h"

#include <algorithm>
#include <vector>

#include "prove/ops/tables.h"

namespace strata::prove {
namespace {

std::vector<OpDefinition> MakeTable() {
  std::vector<OpDefinition> table;
  for (const std::span<const OpDefinition> part :
       {ArithmeticOps(), FunctionOps(),   ViewOps(),        IndexOps(),       MemoryOps(),
        ReductionOps(),  ProductOps(),    SoftmaxOps(),     LossOps(),        AttentionOps(),
        BodyOps(),       FlexOps(),       ExpertOps(),      NormOps(),        OptimizerOps(),
        RegionOps(),     StatisticsOps(), ConvolutionOps(), ChannelNormOps(), PoolingOps(),
        OrderOps(),      IntegerOps(),    RearrangeOps(),   DataSizeOps(),    PiecewiseOps()}) {
    table.insert(table.end(), part.begin(), part.end());
  }
  std::ranges::sort(table, {}, &OpDefinition::name);
  return table;
}

/// "aten.add" of "aten.add.Tensor".
std::string_view WithoutOverload(std::string_view op) {
  const size_t first = op.find('.');
  if (first == std::string_view::npos) return op;
  const size_t last = op.find('.', first + 1);
  return op.substr(0, last);
}

const OpDefinition* FindName(std::string_view name) {
  const std::span<const OpDefinition> table = Definitions();
  const auto found = std::ranges::lower_bound(table, name, {}, &OpDefinition::name);
  return found != table.end() && found->name == name ? &*found : nullptr;
}

}  // namespace

std::span<const OpDefinition> Definitions() {
  static const std::vector<OpDefinition> table = MakeTable();
  return table;
}

const OpDefinition* FindDefinition(std::string_view op) {
  std::string_view name = WithoutOverload(op);
  if (const OpDefinition* definition = FindName(name)) return definition;
  if (name.size() > 1 && name.back() == '_' && name[name.size() - 2] != '_') {
    name.remove_suffix(1);
    return FindName(name);
  }
  return nullptr;
}

}  // namespace strata::prove
