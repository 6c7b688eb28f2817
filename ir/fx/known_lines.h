#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "ir/arg.h"
#include "ir/fx/comment.h"
#include "ir/graph.h"
#include "ir/module.h"
#include "ir/strings.h"

namespace strata::fx {

/// Statements that were read before, by the text of their line. The graphs of a log differ in few
/// lines, so most lines are read once. For one thread at a time.
///
/// What a line says depends on its text and on what its names mean. So a statement is kept with
/// the meanings that its names had, and is true where they have them again.
class KnownLines {
 public:
  enum class Meaning : uint8_t {
    kNothing,  ///< the name is not bound
    kSkipped,  ///< its statement could not be read
    kValue,    ///< the statement of this name
    kOther,    ///< what a line says of it depends on more
  };
  struct Name {
    StrId name;
    Meaning meaning = Meaning::kNothing;
  };
  /// `;  name = None`, where `name` is at `offset` of the line.
  struct Free {
    StrId name;
    size_t offset = 0;
  };
  /// What lines consist of, of one or of all of them. An argument is one of the elements, and so is
  /// each that it holds. An operand is the index of a name.
  struct Parts {
    std::vector<Name> names;
    std::vector<Arg> elements;
    std::vector<NamedArg> kwargs;
    std::vector<Free> frees;
  };
  /// Some neighbours in one of the lists of parts.
  struct Row {
    uint32_t begin = 0, size = 0;
  };

  /// A line that makes one node. Strings are those of this table, its type is the text of an
  /// annotation, and its names, arguments and spans begin where its parts do.
  struct Line {
    NodeKind kind = NodeKind::kCall;
    StrId op, name, type, python_type;
    uint32_t args_begin = 0, num_args = 0;  // among its elements
    Row names, elements, kwargs, frees;
    int32_t next = -1;         // the line that followed it last time
    bool prints_same = false;  ///< its node was printed and gave `StatementOf`
  };

  /// Begins to read a text, of which `module` will hold the graph.
  void Begin(Module& module);
  /// Of the text, and of those before.
  CommentReader& comments() { return comments_; }
  /// The line with this text, or null.
  const Line* Find(std::string_view text);

  std::span<const Name> names(const Line& line) const {
    return RowOf(kept_->parts.names, line.names);
  }
  std::span<const Arg> elements(const Line& line) const {
    return RowOf(kept_->parts.elements, line.elements);
  }
  std::span<const NamedArg> kwargs(const Line& line) const {
    return RowOf(kept_->parts.kwargs, line.kwargs);
  }
  std::span<const Free> frees(const Line& line) const {
    return RowOf(kept_->parts.frees, line.frees);
  }

  /// What is equal to a string, an annotation or an argument that is neither an operand nor a span,
  /// in the module of the text.
  StrId InModule(StrId known);
  TypeId TypeInModule(StrId annotation);
  Arg InModule(Arg known);
  /// The other way round.
  StrId Know(StrId id) { return id.valid() ? kept_->strings.Intern(module_->str(id)) : id; }
  StrId Know(std::string_view text) { return kept_->strings.Intern(text); }
  Arg Know(Arg arg);

  /// The node of line `number` of the text, 0-based, is that of the line that was found or added
  /// last.
  void Place(int32_t number);
  /// The line whose node is that of line `number` of the text, or null.
  Line* At(int32_t number);
  /// Nodes of the text got other names than their lines say: no node is that of a line.
  void ForgetPlaces() { has_places_ = false; }
  /// The text of a line up to what it frees.
  std::string_view StatementOf(const Line& line) const;

  /// Keeps a line. False: it is known, or there are too many.
  bool Add(std::string_view text, Line line, const Parts& parts);

 private:
  template <class T>
  static std::span<const T> RowOf(const std::vector<T>& all, Row row) {
    return std::span(all).subspan(row.begin, row.size);
  }

  /// What is kept from text to text.
  struct Kept {
    StringTable texts, strings;
    std::vector<Line> lines;  // by id of the text
    Parts parts;
    size_t bytes = 0;  // that the lines take
  };
  CommentReader comments_;
  std::unique_ptr<Kept> kept_ = std::make_unique<Kept>();
  int32_t last_ = -1;            // the line that was found last
  std::vector<int32_t> places_;  // by line of the text: a known line, or -1
  bool has_places_ = false;
  Module* module_ = nullptr;
  std::vector<StrId> ids_;     // in the module, by id of the string kept; none: not known yet
  std::vector<TypeId> types_;  // of annotations, the same
};

}  // namespace strata::fx
