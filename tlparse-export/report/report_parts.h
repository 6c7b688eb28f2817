#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "diff/model/graph_diff.h"
#include "ir/graph.h"
#include "scene/lane_layouts.h"
#include "tlparse-export/report/facts.h"
#include "tlparse-export/report/report_model.h"
#include "tlparse-export/report/scene_json.h"
#include "tlparse-export/report/texts.h"

namespace strata {

/// Bytes of the page of a model, as far as it is made.
size_t PageBytes(const ReportModel& model);

/// Collects the data of a report: scenes, the texts they share, what is counted of graphs.
class ReportParts {
 public:
  /// The number of the scene. `title` names it if it is left out.
  Result<int32_t> AddScene(std::string title, const GraphDiff& diff, const SceneContext& context);

  /// The number under which a snapshot refers to the facts of a graph.
  int32_t AddFacts(const Graph& graph);
  /// Writes facts into a snapshot.
  void Fill(int32_t facts, ReportSnapshot& snapshot) const;

  /// Writes the parts into the model, which has everything else. What does not fit into
  /// `max_bytes` goes: printed lines first, all of them, since they share their texts; then scenes,
  /// the largest first. Their names are in the model. No call may follow.
  Status Finish(size_t max_bytes, ReportModel& model);

 private:
  /// A scene and its lines, packed; "" when left out.
  struct Detail {
    std::string title, scene, lines, barcode;
  };
  static Status AddTexts(std::string_view id, const Texts& texts, std::vector<ReportPart>& parts);
  void LeaveOut(size_t bytes, size_t max_bytes, std::vector<ReportPart>& texts, ReportModel& model);

  Texts names_, texts_;
  LaneLayouts lanes_;
  std::vector<Detail> details_;
  std::vector<GraphFacts> facts_;
};

}  // namespace strata
