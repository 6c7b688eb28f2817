#include "ir/fx/comment.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "ir/fx/operators.h"
#include "ir/fx/parser.h"

namespace strata::fx {
namespace {

constexpr std::string_view kAnnotation = "Annotation: ";
constexpr std::string_view kAcGraphId = "ac_graph_id: ";
constexpr std::string_view kRecompute = "recompute: ";
constexpr std::string_view kBackwardOf = "Backward of forward node: ";
constexpr std::string_view kFile = "File: ";
constexpr std::string_view kNoStack = "No stacktrace found";
constexpr std::array<std::string_view, 6> kParts = {kAnnotation, kAcGraphId, kRecompute,
                                                    kBackwardOf, kFile,      kNoStack};

bool StartsPart(std::string_view text) {
  return std::ranges::any_of(kParts, [&](std::string_view part) { return text.starts_with(part); });
}

/// Position of the first part at or after `from`, with a blank before it; or the end.
size_t FindPart(std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ' ' && StartsPart(text.substr(i + 1))) return i;
  }
  return text.size();
}

/// The length of the bracketed text at the start of `text`, strings in it skipped; 0 when open.
size_t BracketedLength(std::string_view text) {
  int depth = 0;
  char quote = '\0';
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != '\0') {
      if (c == '\\') ++i;
      if (c == quote) quote = '\0';
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (c == '{' || c == '[' || c == '(') {
      ++depth;
    } else if ((c == '}' || c == ']' || c == ')') && --depth == 0) {
      return i + 1;
    }
  }
  return 0;
}

/// Calls `fn(key, value)` for the items `key: value, key: value` at the top level of `text`.
template <class Fn>
void ForEachPair(std::string_view text, Fn&& fn) {
  while (!text.empty()) {
    const size_t colon = text.find(": ");
    if (colon == std::string_view::npos) return;
    const std::string_view key = text.substr(0, colon);
    text.remove_prefix(colon + 2);
    // The value ends at a comma outside brackets and strings.
    int depth = 0;
    char quote = '\0';
    size_t end = 0;
    for (; end < text.size(); ++end) {
      const char c = text[end];
      if (quote != '\0') {
        if (c == '\\') ++end;
        if (c == quote) quote = '\0';
      } else if (c == '\'' || c == '"') {
        quote = c;
      } else if (c == '{' || c == '[' || c == '(') {
        ++depth;
      } else if (c == '}' || c == ']' || c == ')') {
        --depth;
      } else if (c == ',' && depth <= 0) {
        break;
      }
    }
    end = std::min(end, text.size());
    fn(key, text.substr(0, end));
    text.remove_prefix(end);
    text = TrimBlanks(text.starts_with(',') ? text.substr(1) : text);
  }
}

/// `# seq_nr: 12 # Annotation: …`, or `# autograd_backward: True, seq_nr: 12 # Annotation: …`: most
/// comments, of which only the number differs from node to node.
struct NumberedComment {
  bool is_backward = false;
  int32_t seq_nr = 0;
  std::string_view rest;  ///< from the second `#`
};

std::optional<NumberedComment> TakeNumber(std::string_view text) {
  constexpr std::string_view kBegin = "# ", kBackward = "autograd_backward: True, ",
                             kNumber = "seq_nr: ";
  if (!text.starts_with(kBegin)) return std::nullopt;
  text.remove_prefix(kBegin.size());
  NumberedComment comment;
  comment.is_backward = text.starts_with(kBackward);
  if (comment.is_backward) text.remove_prefix(kBackward.size());
  if (!text.starts_with(kNumber)) return std::nullopt;
  text.remove_prefix(kNumber.size());
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), comment.seq_nr);
  comment.rest = text.substr(static_cast<size_t>(end - text.data()));
  if (error != std::errc() || comment.seq_nr < 0 || !comment.rest.starts_with(" # ")) {
    return std::nullopt;
  }
  comment.rest.remove_prefix(1);
  return StartsPart(comment.rest.substr(2)) ? std::optional(comment) : std::nullopt;
}

/// The content of a string literal without escapes; none for other text.
std::optional<std::string_view> PlainString(std::string_view literal) {
  if (literal.size() < 2 || (literal[0] != '\'' && literal[0] != '"') ||
      literal.back() != literal[0] || literal.find('\\') != std::string_view::npos) {
    return std::nullopt;
  }
  return literal.substr(1, literal.size() - 2);
}

}  // namespace

void CommentReader::Begin(Module& module) {
  constexpr size_t kMost = size_t{1} << 16;
  if (kept_ == nullptr || kept_->texts.size() > kMost) kept_ = std::make_unique<Kept>();
  module_ = &module;
  comments_.clear();
  by_known_.clear();
  last_ = {};
}

CommentLine CommentReader::Read(std::string_view text) {
  const std::optional<NumberedComment> numbered = TakeNumber(text);
  const std::string_view parts = numbered ? numbered->rest : text;
  if (!last_.valid() || kept_->texts[last_] != parts) {
    last_ = kept_->texts.Intern(parts);
    const auto index = static_cast<size_t>(last_.index);
    if (index == kept_->comments.size()) kept_->comments.push_back(ReadParts(kept_->texts[last_]));
    if (index >= by_known_.size()) by_known_.resize(kept_->comments.size());
    if (by_known_[index] == nullptr)
      by_known_[index] = &comments_.emplace_back(InModule(kept_->comments[index]));
  }
  CommentLine line{by_known_[static_cast<size_t>(last_.index)]};
  if (numbered) {
    line.own_seq_nr = numbered->seq_nr;
    line.is_backward = numbered->is_backward;
  }
  return line;
}

Comment CommentReader::InModule(const Comment& known) {
  const auto string = [&](StrId id) {
    return id.valid() ? module_->strings().Intern(kept_->module.strings(), id) : id;
  };
  Comment comment = known;
  comment.module = string(known.module);
  if (known.loc.valid()) {
    const SourceLoc& loc = kept_->module.loc(known.loc);
    comment.loc =
        module_->InternLoc({string(loc.file), loc.line, string(loc.function), string(loc.code)});
  }
  for (auto& [key, value] : comment.attributes) {
    key = string(key);
    value = string(value);
  }
  return comment;
}

Comment CommentReader::ReadParts(std::string_view text) {
  Comment comment;
  comment.phase = Phase::kForward;
  text = TrimBlanks(text);
  while (true) {
    text = TrimBlanks(text);
    if (text.starts_with('#')) {
      text.remove_prefix(1);
    } else if (text.empty() || text.starts_with(kNoStack)) {
      return comment;
    } else if (text.starts_with(kFile)) {
      comment.loc = ReadLocation(text.substr(kFile.size()));
      return comment;
    } else if (text.starts_with(kBackwardOf)) {
      comment.phase = Phase::kBackward;
      comment.marks_backward_by_prefix = true;
      text.remove_prefix(kBackwardOf.size());
    } else if (text.starts_with(kAcGraphId) || text.starts_with(kRecompute)) {
      const bool is_recompute = text.starts_with(kRecompute);
      text.remove_prefix(is_recompute ? kRecompute.size() : kAcGraphId.size());
      const size_t end = FindPart(text);
      std::string_view value = text.substr(0, end);
      // `ac_graph_id: 3 - PREFER_RECOMPUTE` contains both.
      if (const size_t dash = value.find(" - "); !is_recompute && dash != std::string_view::npos) {
        comment.attributes.emplace_back(kept_->module.Intern("recompute"),
                                        kept_->module.Intern(value.substr(dash + 3)));
        value = value.substr(0, dash);
      }
      comment.attributes.emplace_back(
          kept_->module.Intern(is_recompute ? "recompute" : "ac_graph_id"),
          kept_->module.Intern(value));
      text.remove_prefix(end);
    } else if (text.starts_with(kAnnotation) || text.starts_with('{')) {
      if (text.starts_with(kAnnotation)) text.remove_prefix(kAnnotation.size());
      const size_t length = text.starts_with('{') ? BracketedLength(text) : 0;
      if (length == 0) return comment;
      const Annotation& annotation = ReadAnnotation(text.substr(0, length));
      comment.module = annotation.module;
      comment.attributes.insert(comment.attributes.end(), annotation.attributes.begin(),
                                annotation.attributes.end());
      text.remove_prefix(length);
    } else {
      // Metadata that graph_trainer asked for, up to the `#` before a known part.
      size_t end = text.find('#');
      while (end != std::string_view::npos && !StartsPart(TrimBlanks(text.substr(end + 1)))) {
        end = text.find('#', end + 1);
      }
      if (end == std::string_view::npos) return comment;
      ReadMetadata(TrimBlanks(text.substr(0, end)), comment);
      text.remove_prefix(end);
    }
  }
}

void CommentReader::ReadMetadata(std::string_view text, Comment& comment) {
  ForEachPair(text, [&](std::string_view key, std::string_view value) {
    if (key == "autograd_backward") {
      comment.marks_backward_by_key = value == "True";
      if (value == "True") comment.phase = Phase::kBackward;
      return;
    }
    int32_t seq_nr = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), seq_nr);
    if (key == "seq_nr" && error == std::errc() && end == value.data() + value.size() &&
        seq_nr >= 0) {
      comment.seq_nr = seq_nr;
    } else if (!value.empty()) {
      comment.attributes.emplace_back(kept_->module.Intern(key), kept_->module.Intern(value));
    }
  });
}

const CommentReader::Annotation& CommentReader::ReadAnnotation(std::string_view dict) {
  const auto [it, inserted] = kept_->annotations.try_emplace(dict);
  Annotation& annotation = it->second;
  if (!inserted) return annotation;
  ForEachPair(dict.substr(1, dict.size() - 2), [&](std::string_view key, std::string_view value) {
    const std::string_view name = PlainString(key).value_or(key);
    const std::optional<std::string_view> text = PlainString(value);
    if (name == "module_fqn" && text && !text->empty()) {
      annotation.module = kept_->module.Intern(*text);
    } else if (!value.empty()) {
      std::string custom(kCustomPrefix);
      custom += name;
      annotation.attributes.emplace_back(kept_->module.Intern(custom), kept_->module.Intern(value));
    }
  });
  return annotation;
}

LocId CommentReader::ReadLocation(std::string_view text) {
  const auto [it, inserted] = kept_->locations.try_emplace(text);
  if (!inserted) return it->second;
  // PATH:LINE in FUNCTION, code: SOURCE. A path may hold blanks, colons and `#`.
  constexpr std::string_view kIn = " in ", kCode = ", code: ";
  for (size_t colon = text.find(':'); colon != std::string_view::npos;
       colon = text.find(':', colon + 1)) {
    const std::string_view after = text.substr(colon + 1);
    SourceLoc loc;
    const auto [end, error] = std::from_chars(after.data(), after.data() + after.size(), loc.line);
    if (error != std::errc()) continue;
    std::string_view rest = after.substr(static_cast<size_t>(end - after.data()));
    if (!rest.starts_with(kIn)) continue;
    rest.remove_prefix(kIn.size());
    loc.file = kept_->module.Intern(text.substr(0, colon));
    const size_t code = rest.find(kCode);
    loc.function = kept_->module.Intern(rest.substr(0, code));
    if (code != std::string_view::npos)
      loc.code = kept_->module.Intern(rest.substr(code + kCode.size()));
    return it->second = kept_->module.InternLoc(loc);
  }
  return {};
}

}  // namespace strata::fx
