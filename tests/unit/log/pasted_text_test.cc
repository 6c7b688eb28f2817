#include "tlparse-export/torch_trace/read/pasted_text.h"

#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "ir/fingerprint.h"
#include "ir/fx/fx.h"
#include "ir/text/native_text.h"
#include "tests/support/graphs.h"
#include "tlparse-export/torch_trace/read/log.h"

namespace strata {
namespace {

using testing::OrDie;

constexpr std::string_view kGraph = R"(class GraphModule(torch.nn.Module):
    def forward(self, x: "f32[2][1]cpu"):
        neg: "f32[2][1]cpu" = torch.ops.aten.neg.default(x);  x = None
        return (neg,)
)";

constexpr std::string_view kOther = R"(class Other(torch.nn.Module):
    def forward(self, x: "f32[2][1]cpu"):
        sin: "f32[2][1]cpu" = torch.ops.aten.sin.default(x);  x = None

        return (sin,)
)";

std::string Joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts)
    text += part;
  return text;
}

/// Each line begun with `mark`.
std::string Marked(std::string_view text, std::string_view mark) {
  std::string out;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    out += std::string(mark) + std::string(text.substr(0, end + 1));
    text.remove_prefix(end + 1);
  }
  return out;
}

Fingerprint FingerprintOfFx(std::string_view text) {
  return FingerprintOf(OrDie(ParseFx(text, {.strict = true})).graph());
}

std::string NativeOf(std::string_view text) {
  const FxDocument document = OrDie(ParseFx(text, {.strict = true}));
  return PrintText(*document.module, {.types = false, .metadata = false});
}

/// As `fold -w` breaks the lines of a text.
std::string Folded(std::string_view text, size_t width) {
  std::string out;
  size_t column = 0;
  for (const char c : text) {
    if (c != '\n' && column++ == width) {
      out += '\n';
      column = 1;
    }
    if (c == '\n') column = 0;
    out += c;
  }
  return out;
}

TEST_CASE("a text that a terminal broke at its width reads as the whole one") {
  const std::string prefix =
      "V1128 05:19:44.944000 14565 torch/_dynamo/output_graph.py:2417] [0/0] [__graph_code] ";
  const std::string graph =
      " ===== __compiled_fn_1_ab215a37_be60_4cb1_be92_c19163fa249f =====\n"
      " /usr/lib/python3.11/site-packages/torch/fx/_lazy_graph_module.py class "
      "GraphModule(torch.nn.Module):\n"
      "    def forward(self, L_x_: \"f32[2][1]cpu\", L_self_modules_layer_parameters_weight_: "
      "\"f32[2][1]cpu\"):\n"
      "        l_x_ = L_x_\n"
      "        mul: \"f32[2][1]cpu\" = torch.ops.aten.mul.Tensor(l_x_, "
      "L_self_modules_layer_parameters_weight_);  l_x_ = "
      "L_self_modules_layer_parameters_weight_ = None\n"
      "        return (mul,)\n\n";
  for (const std::string& begin : {std::string(), prefix, "[rank0]:" + prefix}) {
    // The program's own output: a line with a prefix, and one without.
    const std::string whole = prefix + "recompiling\n" + "epoch 1\n" +
                              Marked("TRACED GRAPH\n" + graph + "TRACED GRAPH\n" + graph, begin);
    const std::string log = ReadPasted(whole).text;
    CHECK(LooksLikeLog(log));
    for (size_t width = 60; width < 140; ++width) {
      CHECK_MESSAGE(ReadPasted(Folded(whole, width)).text == log, width, " columns of ", begin);
      CHECK_EQ(ReadPasted(Marked(Folded(whole, width), "> ")).text, log);
    }
  }
  const std::string printed = graph.substr(graph.find("class "));
  for (size_t width = 60; width < 140; ++width)
    CHECK_EQ(NativeOf(ReadPasted(Folded(printed, width)).text), NativeOf(printed));
}

TEST_CASE("lines that a launcher or a collector of logs marked are not joined") {
  const std::string prefix =
      "I1128 05:19:44.944000 14565 torch/_functorch/x.py:1655] [0/0] [__aot_graphs] ";
  const std::string longest = prefix + "aot_config id: 0, fw_metadata=" + std::string(300, 'x');
  const std::string whole =
      longest + "\n" +
      Marked(
          "TRACED GRAPH\n ===== Forward graph 0 =====\n a.py class GraphModule(torch.nn.Module):\n"
          "    def forward(self, x: \"f32[2][1]cpu\"):\n        return (x,)\n\n",
          prefix);
  for (const std::string& mark :
       {std::string(), std::string("[rank0]:"), std::string("0: "), std::string("trainer-1  | "),
        std::string("2026-11-29T16:15:32.051Z ")}) {
    const std::string log = ReadPasted(Marked(whole, mark)).text;
    CHECK(LooksLikeLog(log));
    CHECK_MESSAGE(log.find("\"aot_forward_graph\"") != std::string::npos, mark);
  }
}

TEST_CASE("a byte order mark and UTF-16 are read") {
  const std::string plain(kGraph);
  CHECK_EQ(ReadPasted("\xef\xbb\xbf" + plain).text, plain);
  std::string little = "\xff\xfe", big = "\xfe\xff";
  for (const char c : plain) {
    little += {c, '\0'};
    big += {'\0', c};
  }
  CHECK_EQ(ReadPasted(little).text, plain);
  CHECK_EQ(ReadPasted(big).text, plain);
  CHECK_EQ(ReadPasted(std::string("\xff\xfe\x3d\xd8\x00\xde\x41", 7)).text, "\xf0\x9f\x98\x80");
}

TEST_CASE(
    "a graph in a comment of an issue is read, and what is around it skipped with a warning") {
  const std::string text = Joined(
      {"I get this graph:\n\n```python\n", std::string(kGraph), "```\n", "and it is wrong.\n"});
  const PastedText pasted = ReadPasted(text);
  CHECK_EQ(pasted.warnings, std::vector<std::string>{"2 lines around the graph are skipped"});
  CHECK_EQ(pasted.text, "\n\n\n" + std::string(kGraph));  // lines keep their numbers
  const PastedText quoted = ReadPasted(Marked(text, "> "));
  CHECK_EQ(quoted.text, pasted.text);
  CHECK_EQ(ReadPasted("The graph\n" + std::string(kGraph) + "and more\n").warnings,
           std::vector<std::string>{"2 lines around the graph are skipped"});
}

TEST_CASE("an indented graph is read") {
  CHECK_EQ(FingerprintOfFx(ReadPasted("graph:\n" + Marked(kGraph, "    ")).text),
           FingerprintOfFx(kGraph));
}

TEST_CASE("what the readers know themselves stays as it is") {
  for (const std::string& text :
       {std::string(kGraph), "# graph id: 3\n" + std::string(kGraph),
        "import torch\n\n" + std::string(kGraph), std::string("graph g\n  output(None)\n"),
        std::string("import torch\nx = '''\n") + std::string(kGraph) + "'''\nimport os\n",
        std::string("no graph at all\n```\ncode\n```\n")}) {
    const PastedText pasted = ReadPasted(text);
    CHECK_EQ(pasted.text, text);
    CHECK(pasted.warnings.empty());
  }
}

TEST_CASE("several graphs in a text are a log, under the names of their classes") {
  const PastedText pasted = ReadPasted(Joined(
      {"before\n", std::string(kGraph), "\nafter\n", std::string(kOther), std::string(kGraph)}));
  REQUIRE(LooksLikeLog(pasted.text));
  const LogContent log = OrDie(ReadLog(pasted.text, "p.txt"));
  REQUIRE_EQ(log.runs.size(), 1);
  std::vector<std::string> names;
  for (const auto& graph : log.runs[0].graphs)
    names.push_back(graph.name);
  CHECK_EQ(names, std::vector<std::string>{"GraphModule", "Other", "GraphModule_1"});
}

TEST_CASE("str(graph) is read, without types") {
  const PastedText pasted = ReadPasted(R"(graph():
    %x : [num_users=2] = placeholder[target=x]
    %w : torch.Tensor [num_users=1] = get_attr[target=layers.0.norm.1.weight]
    %mul : [num_users=1] = call_function[target=operator.mul](args = (%x, 2.5), kwargs = {})
    %div : [num_users=1] = call_function[target=torch.ops.aten.div.Tensor_mode](args = (%mul, %w), kwargs = {rounding_mode: floor})
    %split : [num_users=1] = call_method[target=split](args = (%div, 4), kwargs = {dim: -1})
    %getitem : [num_users=1] = call_function[target=operator.getitem](args = (%split, 0), kwargs = {})
    %linear : [num_users=1] = call_module[target=layers.1](args = (%getitem,), kwargs = {})
    %cat : [num_users=1] = call_function[target=torch.cat](args = ([%linear, %x],), kwargs = {dim: 0})
    return (cat,)
)");
  CHECK_EQ(pasted.warnings, std::vector<std::string>{"the text has no types: sizes are not known"});
  CHECK_EQ(NativeOf(pasted.text), R"(graph GraphModule foreign
  x = placeholder
  w = attr layers.0.norm.1.weight
  mul = _operator.mul(x, 2.5)
  div = aten.div.Tensor_mode(mul, w, rounding_mode='floor')
  (getitem,) = method split(div, 4, dim=-1) as split
  linear = submodule layers.1(getitem)
  cat = torch.cat([linear, x], dim=0)
  output((cat,))
)");
}

TEST_CASE("a table of print_tabular is read, without types") {
  const PastedText pasted =
      ReadPasted(R"(opcode         name     target                   args         kwargs
-------------  -------  -----------------------  -----------  -------------------
placeholder    x        x                        ()           {}
call_function  add      <built-in function add>  (x, 1)       {}
call_function  sum_1    aten.sum.dim_IntList     (add, [0])   {'keepdim': True}
call_method    view     view                     (sum_1, -1)  {}
output         output   output                   ((view,),)   {}
)");
  CHECK_EQ(NativeOf(pasted.text), R"(graph GraphModule foreign
  x = placeholder
  add = _operator.add(x, 1)
  sum_1 = aten.sum.dim_IntList(add, [0], keepdim=True)
  view = method view(sum_1, -1)
  output((view,))
)");
}

TEST_CASE("a listing that was cut does not read as a whole graph") {
  const PastedText pasted = ReadPasted(R"(graph():
    %x : [num_users=1] = placeholder[target=x]
    %neg : [num_users=1] = call_function[target=torch.neg](args = (%x
)");
  CHECK_FALSE(ParseFx(pasted.text, {.strict = true}).has_value());
}

}  // namespace
}  // namespace strata
