#pragma once
#include <span>
#include <string>
#include <string_view>

/// Listings of graphs that torch.fx prints beside code, as FX text. Both have no types.
namespace strata {

/// Of `str(graph)`, from `graph():` on:
///
///     %add : [num_users=1] = call_function[target=torch.add](args = (%x, 1), kwargs = {alpha: 2})
///
/// Lines that are not so are kept as they are, for the reader of FX text to report.
std::string FxOfGraphText(std::span<const std::string_view> lines);

/// Of `graph.print_tabular()`: a head, a line of dashes, and a line per node, whose columns begin
/// where the dashes do.
std::string FxOfTable(std::span<const std::string_view> lines);

/// `opcode  name  target  args  kwargs`.
bool IsTableHead(std::string_view line);
/// A line of dashes, or one that begins with the kind of a node.
bool IsTableRow(std::string_view line);
bool HasTableHead(std::string_view text);

}  // namespace strata
