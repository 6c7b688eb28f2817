#pragma once
#include <string>

#include "diff/diff.h"
#include "scene/scene.h"

namespace strata {

/// A scene with what the page tells of each node, as JSON in columns; texts are indices into
/// `text`.
///
///     text      all strings, in order of first use
///     name, was, op, type, phase, seq, place, code, status, backward, cluster     one entry per
///     node edges     from, to, status, …                   clusters, order    see Scene fields
///     [node, [path, before, after, derived], …], …     via     [node, how, confidence], … lines
///     [node, before, after], …              printed lines of nodes that differ patterns, relations
std::string SceneJson(const GraphDiff& diff, const Scene& scene);

}  // namespace strata
