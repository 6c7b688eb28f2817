#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/graph.h"
#include "ir/module.h"

namespace strata::fx {

/// What a comment says of the nodes below it.
struct Comment {
  int32_t seq_nr = -1;
  Phase phase = Phase::kUnknown;
  StrId module;
  LocId loc;
  std::vector<std::pair<StrId, StrId>> attributes;
  bool marks_backward_by_key = false;     ///< `autograd_backward: True`
  bool marks_backward_by_prefix = false;  ///< `Backward of forward node:`
};

/// A comment line: often only its number is its own.
struct CommentLine {
  const Comment* comment = nullptr;  ///< of the reader
  int32_t own_seq_nr = -1;
  bool is_backward = false;  ///< `autograd_backward: True` stands before the number

  int32_t seq_nr() const { return comment->seq_nr < 0 ? own_seq_nr : comment->seq_nr; }
  Phase phase() const { return is_backward ? Phase::kBackward : comment->phase; }
  bool marks_backward_by_key() const { return is_backward || comment->marks_backward_by_key; }
};

/// Reads comments. What repeats, in a text or from text to text, is read once.
class CommentReader {
 public:
  /// Begins a text of which `module` will hold the graph.
  void Begin(Module& module);
  /// `text` is the comment without leading blanks, from its first `#` to the end of the line. The
  /// result is valid until the next text begins.
  CommentLine Read(std::string_view text);

 private:
  struct Annotation {
    StrId module;
    std::vector<std::pair<StrId, StrId>> attributes;
  };
  /// What is kept from text to text. Views are of `texts`.
  struct Kept {
    Module module;                  // of the comments
    StringTable texts;              // comments without their number
    std::vector<Comment> comments;  // by id of the text
    std::unordered_map<std::string_view, LocId> locations;
    std::unordered_map<std::string_view, Annotation> annotations;
  };
  Comment ReadParts(std::string_view text);
  void ReadMetadata(std::string_view text, Comment& comment);
  const Annotation& ReadAnnotation(std::string_view dict);
  LocId ReadLocation(std::string_view text);
  /// The comment in the module of the text.
  Comment InModule(const Comment& known);

  std::unique_ptr<Kept> kept_;
  Module* module_ = nullptr;
  std::deque<Comment> comments_;          // of the text
  std::vector<const Comment*> by_known_;  // the same, by id of the text in `kept_`; null: not met
  StrId last_;                            // neighbours agree
};

}  // namespace strata::fx
