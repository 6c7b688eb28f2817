#include "scene/dot.h"

#include <map>
#include <string>

#ifdef STRATA_HAVE_GRAPHVIZ
#include <graphviz/gvc.h>

extern "C" gvplugin_library_t gvplugin_dot_layout_LTX_library;  // NOLINT: Graphviz names it
#endif

namespace strata {

#ifdef STRATA_HAVE_GRAPHVIZ

namespace {

// Graphviz writes to none of its texts, but does not say so.
char* Text(const char* text) {
  return const_cast<char*>(text);
}

}  // namespace

bool HasGraphviz() {
  return true;
}

DotPlaces PlaceWithDot(const LaneShape& shape) {
  // The one plug-in that is needed, linked: looking for others would take longer than a layout.
  static const lt_symlist_t kPlugins[] = {
      {"gvplugin_dot_layout_LTX_library", &gvplugin_dot_layout_LTX_library}, {nullptr, nullptr}};
  static GVC_t* const context = gvContextPlugins(kPlugins, 0);
  constexpr double kPoints = 72;  // an inch
  Agraph_t* graph = agopen(Text("lane"), Agdirected, nullptr);
  // A column is an inch wide, and nothing stands between columns; the effort is bounded by counts.
  for (const auto& [name, value] : {std::pair{"nodesep", "0.02"},
                                    {"ranksep", "0.5"},
                                    {"nslimit", "2"},
                                    {"nslimit1", "2"},
                                    {"mclimit", "1"}})
    agattr(graph, AGRAPH, Text(name), Text(value));
  for (const auto& [name, value] : {std::pair{"shape", "box"},
                                    {"label", ""},
                                    {"width", "0.98"},
                                    {"height", "0.3"},
                                    {"fixedsize", "true"}})
    agattr(graph, AGNODE, Text(name), Text(value));
  IdVector<LaneNodeId, Agnode_t*> nodes;
  for (int32_t i = 0; i < shape.nodes; ++i)
    nodes.Add(agnode(graph, Text(std::to_string(i).c_str()), 1));
  for (const auto& [from, to] : shape.edges)
    agedge(graph, nodes[from], nodes[to], nullptr, 1);
  gvLayout(context, graph, "dot");
  DotPlaces places;
  std::map<double, int32_t> ranks;
  for (Agnode_t* node : nodes)
    ranks.try_emplace(-ND_coord(node).y, 0);
  int32_t next = 0;
  for (auto& [y, rank] : ranks)
    rank = next++;
  for (Agnode_t* node : nodes) {
    places.rank.Add(ranks[-ND_coord(node).y]);
    places.x.Add(ND_coord(node).x / kPoints);
  }
  gvFreeLayout(context, graph);
  agclose(graph);
  return places;
}

#else

bool HasGraphviz() {
  return false;
}

DotPlaces PlaceWithDot(const LaneShape&) {
  return {};
}

#endif

}  // namespace strata
