#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "viewer/ui/elements.h"

namespace strata::viewer {

/// The field for a slice of the value at a stop, as it is being written.
struct SliceField {
  std::string text;
  std::string value;     ///< the name of the value that it is a slice of
  bool written = false;  ///< it has the keyboard
  bool focus = false;    ///< it takes the keyboard
};

/// Draws what is known of a node, the parts one below the other.
class NodeSheet {
 public:
  NodeSheet(Ui& ui, UiPanel& panel, const Comparison& comparison, SceneNodeId node,
            const Blame* history, const std::vector<std::string>* generated, SliceField& slice)
      : ui_(ui),
        theme_(*ui.theme),
        panel_(panel),
        c_(comparison),
        node_(node),
        history_(history),
        generated_(generated),
        slice_(slice) {}
  void Draw();

 private:
  static constexpr float kFieldColumn = 116;  // width of the names of fields

  Area Inner(float height);
  void Title(std::string_view words);
  void Head();
  /// A row of the table of fields.
  void FieldRow(std::string_view field, const std::string& before, const std::string& after,
                bool both, bool derived);
  void Fields();
  std::vector<std::pair<std::string, std::string>> Values() const;
  /// What the training under control has computed here.
  void ValueAtStop();
  void Histogram(const ControlState::Value& value);
  void Matrix(const ControlState::Value::Matrix& matrix);
  void Paragraph(std::string_view name, const std::string& words);
  void Why(bool has_cause, bool has_derived);
  void Flows(std::string_view title, const std::vector<Comparison::Neighbour>& list);
  void Source();
  /// The C++ that the node runs.
  void Generated();
  /// The status that an event of a history is drawn with.
  static SceneStatus StatusOf(const BlameEvent& event);
  /// What happened to the node over all passes: a circle where it stayed, a square where a pass
  /// touched it.
  void Provenance();
  void GoTo(const BlameEvent& event);
  void Match();
  /// What a person may say of the match.
  void MatchButtons(bool matched);
  std::string NameOf(const Listing& listing, bool before) const;

  Ui& ui_;
  const Theme& theme_;
  UiPanel& panel_;
  const Comparison& c_;
  const SceneNodeId node_;
  const Blame* history_;
  const std::vector<std::string>* generated_;  // null: not made yet
  SliceField& slice_;
};

}  // namespace strata::viewer
