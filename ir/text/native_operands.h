#pragma once
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/id.h"
#include "base/result.h"
#include "ir/module.h"
#include "ir/rewriter.h"
#include "ir/text/native_cursor.h"

namespace strata {

/// Parses what a node's line has besides names: types, values of lines above, arguments.
class NativeOperands : protected NativeCursor {
 protected:
  NativeOperands(std::string_view text, std::string_view file, const TextOrigin* origin)
      : NativeCursor(text, file, origin), module_(std::make_unique<Module>()) {}

  /// `f32[4, 8][8, 1]cpu@(offset)+grad`, `Sym(s0)`, `opaque('…')`, or `?`: not known.
  Result<TypeId> ParseType();
  /// A value, or `_`: none.
  Result<ValueId> ParseAlias();
  /// `(a, [b, 1], key=2)`.
  Status ParseArguments(std::vector<Arg>& args, std::vector<NamedArg>& kwargs);

  /// What a name stands for in one graph: a value or a tuple, or a node without a result.
  struct Named {
    GraphId graph;  ///< none: nothing
    ValueId value;
    NodeId tuple;
  };
  /// In the graph that is read.
  Named& Meaning(StrId name);

  std::unique_ptr<Module> module_;
  std::unique_ptr<Rewriter> rewriter_;  ///< of the graph that is read

 private:
  /// Of the one at `open`, on the same line.
  size_t ClosingParenthesis(size_t open) const;
  Result<DimId> ParseDim(size_t begin, size_t end);
  Result<ValueId> ParseValue();
  /// `name=`, where the name may be quoted, or a word that is not a name elsewhere.
  std::optional<std::string_view> TakeKeyword();
  Result<Arg> ParseArg(int depth);
  Result<Arg> ParseTextArg(Arg (*make)(StrId));
  Result<Arg> ParseSequence(ArgKind kind, char close, int depth);
  Result<Arg> ParseDict(int depth);
  Result<Arg> ParseNumber();

  IdVector<StrId, Named> names_;  // of the last graph that has each of them
};

}  // namespace strata
