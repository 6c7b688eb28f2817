#pragma once
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "tlparse-export/torch_trace/read/md5.h"

namespace strata::testing {

/// A graph that adds `addend` to its input.
inline std::string GraphText(int addend) {
  return fmt::format(
      "class <lambda>(torch.nn.Module):\n"
      "    def forward(\n"
      "        self,\n"
      "        x: \"f32[2][1]cpu\",\n"
      "    ):\n"
      "        # seq_nr: 0 # Annotation: {{'module_fqn': 'a'}} File: m.py:1 in f, code: x + 1\n"
      "        add: \"f32[2][1]cpu\" = torch.ops.aten.add.Tensor(x, {});  x = None\n"
      "        return [add]\n",
      addend);
}

/// A record: `event` is the first part of the envelope, `context` the remainder after a comma.
inline std::string Record(std::string_view event, std::string_view payload,
                          std::string_view context = "") {
  std::string text = fmt::format(
      "V1120 18:32:38.396000 14073 torch/x.py:10] {{{}{}, \"has_payload\": \"{}\"}}\n\t", event,
      context, Md5Hex(payload));
  for (char c : payload) {
    text += c;
    if (c == '\n') text += '\t';
  }
  return text + "\n";
}

inline std::string Artifact(std::string_view name, std::string_view payload,
                            std::string_view context = "") {
  return Record(fmt::format(R"("artifact": {{"name": "{}", "encoding": "string"}})", name), payload,
                context);
}

}  // namespace strata::testing
