#pragma once
#include <string>
#include <vector>

#include "viewer/compare/async_value.h"
#include "viewer/ui/elements.h"

namespace strata::viewer {

/// The graph of every rank after each pass: equal letters are equal graphs. Two clicks compare two
/// cells. Below, where collectives of ranks would not meet.
class RanksPane {
 public:
  void Draw(Ui& ui, const Area& area);

 private:
  /// A pass, or a graph without passes, of all runs.
  struct Column {
    std::string title, head;
    std::vector<SubjectId> subjects;  ///< by run; none: the run lacks it
    std::vector<int32_t> groups;      ///< by run: number of the fingerprint; -1: lacks it
    bool splits = false;
  };
  void Read(const Contents& contents);
  void Matrix(Ui& ui, UiPanel& panel, const Contents& contents);
  void Cell(Ui& ui, const Area& area, const Column& column, size_t run, const std::string& name);
  void Mismatches(Ui& ui, UiPanel& panel);

  const Contents* read_ = nullptr;  // of `columns_`
  uint64_t version_ = 0;
  std::vector<Column> columns_;
  std::string summary_;
  SubjectId chosen_;  // of the first cell
  AsyncValue<std::vector<std::string>> mismatches_{"ranks"};
};

}  // namespace strata::viewer
