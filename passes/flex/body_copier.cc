#include "passes/flex/body_copier.h"

#include <vector>

namespace strata {

NodeId BodyCopier::Copy(NodeId node) {
  const Node& n = from_.node(node);
  std::vector<Arg> args;
  for (const Arg& arg : from_.args(node))
    args.push_back(Convert(arg));
  std::vector<NamedArg> kwargs;
  for (size_t i = 0; i < n.num_kwargs; ++i) {
    const NamedArg kwarg = from_.kwarg(node, i);
    const StrId name = to_.graph().module().Intern(from_.module().str(kwarg.name));
    kwargs.push_back({name, Convert(kwarg.value)});
  }
  const NodeId copy = to_.Create({.kind = n.kind,
                                  .op = from_.op(node),
                                  .args = args,
                                  .kwargs = kwargs,
                                  .name = from_.name(node)},
                                 From::Source());
  values_[from_.result(node)] = to_.graph().result(copy);
  return copy;
}

}  // namespace strata
