#include "diff/patch/inherit.h"

#include <string_view>

#include "ir/module.h"

namespace strata {

void InheritMetadata(const Graph& base, NodeId from, const NativeLineStyle& style,
                     Rewriter& rewriter, NodeId to) {
  const Node& node = base.node(from);
  const Module& strings = base.module();
  Module& module = rewriter.graph().module();
  if (!style.places) {
    rewriter.SetPhase(to, node.phase);
    rewriter.SetModule(to, strings.str(node.module));
    rewriter.SetStream(to, node.stream);
  }
  if (!style.sources) {
    rewriter.SetSeqNr(to, node.seq_nr);
    if (node.loc.valid()) {
      SourceLoc loc = strings.loc(node.loc);
      for (StrId* text : {&loc.file, &loc.function, &loc.code}) {
        if (text->valid()) *text = module.Intern(strings.str(*text));
      }
      rewriter.SetLoc(to, module.InternLoc(loc));
    }
  }
  if (style.attribute == nullptr) return;
  for (const auto& [key, value] : base.attributes(from)) {
    const std::string_view name = strings.str(key);
    if (!style.attribute(name)) rewriter.SetAttribute(to, name, strings.str(value));
  }
}

}  // namespace strata
