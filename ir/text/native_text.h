#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/module.h"

namespace strata {

/// Strata's own spelling of graphs, one line per node; `ParseText(PrintText(m))` is `m`. Grammar in
/// docs/native_text.md. Example:
///
///     graph step
///       x = placeholder : f32[6, 8][8, 1]cpu
///       w = placeholder : f32[8, 4][4, 1]cpu
///       mm = aten.mm.default(x, w) : f32[6, 4][4, 1]cpu {forward layers.0.attention.wq seq=3}
///       (a, b) = aten.split.Tensor(mm, 2, 1) as split : (f32[6, 2], f32[6, 2])
///       output([a, b])
///
/// Types, metadata and stable ids may be missing; missing ids are made anew.
struct PrintOptions {
  bool types = true;
  bool metadata = true;
  bool stable_ids = false;
};

void PrintText(const Graph& graph, const PrintOptions& options, std::string& out);
std::string PrintText(const Graph& graph, const PrintOptions& options = {});
/// All graphs of the module; programs first, each followed by its bodies.
std::string PrintText(const Module& module, const PrintOptions& options = {});

/// Says of a text that was put together from another one where its parts stand there.
struct TextOrigin {
  struct Piece {
    size_t begin;   ///< in the composed text; the piece ends where the next one begins
    size_t at;      ///< in `text`
    bool verbatim;  ///< the same characters; otherwise all of it stands for what is at `at`
  };
  std::string_view text;
  std::vector<Piece> pieces;  ///< ascending in `begin`
};

/// Errors read `file:line:column: what`, then the line and a caret; with an `origin` they show the
/// place there, and `file` is its name.
Result<std::unique_ptr<Module>> ParseText(std::string_view text, std::string_view file = "<text>",
                                          const TextOrigin* origin = nullptr);

}  // namespace strata
