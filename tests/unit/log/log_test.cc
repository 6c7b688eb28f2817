#include "tlparse-export/torch_trace/read/log.h"

#include <algorithm>
#include <string>

#include <doctest/doctest.h>

#include "tests/support/results.h"
#include "tests/unit/log/log_text.h"
#include "tlparse-export/torch_trace/read/header.h"

namespace strata {
namespace {

using testing::Artifact;
using testing::GraphText;
using testing::Record;

LogContent Read(std::string_view text, std::string_view path = "log") {
  Result<LogContent> log = ReadLog(text, path);
  REQUIRE_OK(log);
  return std::move(*log);
}

/// `name: snapshots` of each graph, `index name graph +` of each pass, `=` for an unchanged one.
std::string Outline(const LogRun& run) {
  std::string out;
  for (const LogGraph& graph : run.graphs)
    out += fmt::format("{}: {}\n", graph.name, graph.snapshots.size());
  for (const LogPass& pass : run.passes) {
    out += fmt::format("{} {} on {} {}\n", pass.index, pass.name, run.graphs[pass.graph].name,
                       pass.unchanged ? "=" : "+");
  }
  return out;
}

TEST_CASE("log: header lines are recognized, also after a prefix") {
  for (const char* line : {
           "V1120 18:28:13.658000 9595 torch/x.py:10] {}",
           "[rank0]:V1120 18:28:13.658000 9595 torch/x.py:10] {}",
           "\xef\xbb\xbfV1120 18:28:13.658000 9595 torch/x.py:10] {}",
           "V1120 18:28:13.658 9595 torch/x.py:10] {}",
           "V9999 99:99:99.658000 99999999999999999999999 a b c.py:10] {}",
           "V1120 18:28:13.658000 9595 C:\\t\\x.py:10] {}",
           "V1120 18:28:13.658000 9595 torch/x.py:10] [0/0] {}",
           "V1120 18:28:13.658000 9595 a] b.py:10] {}",
       }) {
    const auto header = ReadHeader(line);
    REQUIRE_MESSAGE(header.has_value(), line);
    CHECK_EQ(header->json, "{}");
  }
  for (const char* line :
       {"", "V", "V1120", "hello", "V1120 18:28:13 9595 torch/x.py:10] {}",
        "V1120 18:28:13.658000 9595 torch/x.py] {}", "V1120 18:28:13.658000 9595 torch/x.py:10]{}",
        "V112x 18:28:13.658000 9595 torch/x.py:10] {}"}) {
    CHECK_FALSE_MESSAGE(ReadHeader(line).has_value(), line);
  }
}

TEST_CASE("log: passes are assigned to their graph") {
  const std::string log_text =
      Artifact("make_fx_graph_traced", GraphText(1)) + Artifact("before_dce", GraphText(1)) +
      Artifact("after_dce", GraphText(1)) + Artifact("before_fold", GraphText(1)) +
      Artifact("after_fold", GraphText(2)) + Artifact("before_dce", GraphText(2)) +
      Artifact("after_dce", GraphText(3));
  const LogContent log = Read(log_text);
  REQUIRE_EQ(log.runs.size(), 1);
  CHECK_EQ(log.payloads.size(), 3);
  CHECK_EQ(Outline(log.runs[0]),
           "make_fx_graph_traced: 7\n"
           "0 dce on make_fx_graph_traced =\n"
           "1 fold on make_fx_graph_traced +\n"
           "2 dce on make_fx_graph_traced +\n");
}

TEST_CASE("log: an unfinished pass is a separate graph") {
  const LogContent log =
      Read(Artifact("make_fx_graph_traced", GraphText(1)) + Artifact("before_a", GraphText(1)) +
           Artifact("after_b", GraphText(1)) + Artifact("before_c", GraphText(1)) +
           Artifact("before_c", GraphText(1)) + Artifact("after_c", GraphText(2)));
  CHECK_EQ(Outline(log.runs[0]), "make_fx_graph_traced: 2\nafter_b: 4\n0 c on after_b +\n");
}

TEST_CASE("log: passes may nest") {
  const LogContent log =
      Read(Artifact("g", GraphText(1)) + Artifact("before_outer", GraphText(1)) +
           Artifact("before_inner", GraphText(1)) + Artifact("after_inner", GraphText(2)) +
           Artifact("after_outer", GraphText(3)));
  CHECK_EQ(Outline(log.runs[0]), "g: 5\n0 inner on g +\n1 outer on g +\n");
}

TEST_CASE("log: inside compilations graphs are distinguished by their names") {
  const std::string first = R"(, "frame_id": 0, "frame_compile_id": 0, "attempt": 0)";
  const std::string second = R"(, "frame_id": 1, "frame_compile_id": 0, "attempt": 1)";
  const LogContent log =
      Read(Record(R"("dynamo_output_graph": {"sizes": {}})", GraphText(1), first) +
           Artifact("before_pre_grad_graph", GraphText(1) + "\n\n # graph id: 12", first) +
           Artifact("after_pre_grad_graph", GraphText(2), first) +
           Artifact("before_post_grad_graph", GraphText(5), first) +
           Artifact("inductor_post_grad_graph", GraphText(6), first) +
           Artifact("before_post_grad_graph", GraphText(7), first) +
           Artifact("inductor_post_grad_graph", GraphText(7), first) +
           Record(R"("dynamo_output_graph": {"sizes": {}})", GraphText(3), second));
  CHECK_EQ(Outline(log.runs[0]),
           "dynamo_output_graph: 3\n"
           "post_grad_graph: 2\n"
           "post_grad_graph.2: 2\n"
           "dynamo_output_graph@1/0_1: 1\n"
           "0 pre_grad_graph on dynamo_output_graph +\n"
           "1 post_grad_graph on post_grad_graph +\n"
           "2 post_grad_graph on post_grad_graph.2 =\n");
}

TEST_CASE("log: ranks by record, by process, by file name") {
  const std::string mixed = Artifact("early", GraphText(1)) +
                            Artifact("late", GraphText(2), R"(, "rank": 3)") +
                            Artifact("other", GraphText(3), R"(, "rank": 1)");
  const LogContent log = Read(mixed);
  REQUIRE_EQ(log.runs.size(), 2);
  CHECK_EQ(log.runs[0].rank, 1);
  CHECK_EQ(log.runs[1].rank, 3);
  CHECK_EQ(log.runs[1].graphs.size(), 2);
  CHECK_EQ(
      Read(Artifact("g", GraphText(1)), "a/dedicated_log_torch_trace_rank_5_x.log").runs[0].rank,
      5);
  CHECK_EQ(Read(Artifact("g", GraphText(1)), "a_rank_9/b.log").runs[0].rank, 0);
}

TEST_CASE("log: compile ids have PyTorch's format") {
  const auto compile = [](std::string_view context) {
    return Read(Artifact("g", "x", context)).runs[0].records[0].compile;
  };
  CHECK_EQ(compile(R"(, "frame_id": 0, "frame_compile_id": 0, "attempt": 0)"), "0/0");
  CHECK_EQ(compile(R"(, "frame_id": 1, "frame_compile_id": 2, "attempt": 2)"), "1/2_2");
  CHECK_EQ(compile(R"(, "frame_id": 1, "frame_compile_id": 2)"), "1/2");
  CHECK_EQ(compile(R"(, "compiled_autograd_id": 3, "frame_id": 1, "frame_compile_id": 2)"),
           "!3/1/2");
  CHECK_EQ(compile(R"(, "compiled_autograd_id": null, "frame_id": null)"), "");
  CHECK_EQ(compile(R"(, "frame_id": "zero", "frame_compile_id": 0)"), "zero/0");
}

TEST_CASE("log: changes of editors and transports to a payload are undone") {
  const std::string payload = GraphText(1) + "\n        x";
  const std::string whole = Artifact("g", payload);
  std::string stripped = whole;  // a lone tab at a line's end
  for (size_t at; (at = stripped.find("\n\t\n")) != std::string::npos;)
    stripped.replace(at, 3, "\n\n");
  std::string returns;
  for (char c : whole)
    returns += c == '\n' ? std::string("\r\n") : std::string(1, c);
  std::string blanks = whole;
  blanks.insert(blanks.find('\t'), "\n\n");
  std::string upper = whole;
  const size_t md5 = upper.find("has_payload") + 15;
  std::transform(upper.begin() + static_cast<std::ptrdiff_t>(md5),
                 upper.begin() + static_cast<std::ptrdiff_t>(md5 + 32),
                 upper.begin() + static_cast<std::ptrdiff_t>(md5),
                 [](char c) { return static_cast<char>(std::toupper(c)); });
  for (const std::string& text : {whole, stripped, returns, blanks, upper}) {
    const LogContent log = Read(text);
    CHECK_EQ(log.num_diagnostics, 0);
    REQUIRE_EQ(log.payloads.size(), 1);
    CHECK_EQ(log.payloads[0].text, payload);
  }
}

TEST_CASE("log: damage is reported, and the intact records are used") {
  struct Case {
    std::string text;
    size_t line;
    std::string_view what;
    size_t payloads;
  };
  const std::string good = Artifact("g", GraphText(1));
  for (const Case& c : {
           Case{good + "print from elsewhere\n", 11,
                "not a record of a trace: the line is passed over", 1},
           Case{"V1120 18:28:13.658000 9595 x.py:10] {\"artifact\": {\"na\n\tlost\n" + good, 1,
                "the JSON of this record cannot be read: the record is passed over", 1},
           Case{"V1120 18:28:13.658000 9595 x.py:10] {\"link\": {}}\n\tstray\n\tstray\n" + good, 2,
                "payload of a record that has none: the lines are passed over", 1},
           Case{good.substr(0, good.size() - 10), 1,
                "the payload is not what its md5 says: it was cut or changed", 1},
           Case{"V1120 18:28:13.658000 9595 x.py:10] {\"rank\": 0}\n" + good, 1,
                "a record without an event", 1},
           Case{"V1120 18:28:13.658000 9595 x.py:10] {\"str\": [1, 2]}\n" + good, 1,
                "a string record that is not [\"text\", id]", 1},
       }) {
    const LogContent log = Read(c.text);
    REQUIRE_EQ(log.num_diagnostics, 1);
    CHECK_EQ(log.diagnostics[0].line, c.line);
    CHECK_EQ(log.diagnostics[0].what, c.what);
    CHECK_EQ(log.payloads.size(), c.payloads);
    const auto strict = ReadLog(c.text, "log", {.strict = true});
    CHECK_EQ(testing::MessageOf(strict), fmt::format("log:{}: {}", c.line, c.what));
  }
}

TEST_CASE("log: damage is reported in the order of the log") {
  std::string text;
  for (int i = 0; i < 3; ++i) {
    std::string changed = Artifact("g", GraphText(i));
    changed.replace(changed.find("torch.ops"), 5, "TORCH");
    text += changed + "V1120 18:28:13.658000 9595 x.py:10] {\"rank\": 0}\nnothing\n";
  }
  std::vector<size_t> lines;
  for (const LogDiagnostic& diagnostic : Read(text).diagnostics)
    lines.push_back(diagnostic.line);
  CHECK_EQ(lines, std::vector<size_t>{1, 12, 11, 13, 24, 23, 25, 36, 35});
}

TEST_CASE("log: strings of stack frames, including negative ids and later definitions") {
  const std::string prefix = "V1120 18:28:13.658000 9595 x.py:10] ";
  const LogContent log =
      Read(prefix + R"({"str": ["/a.py", 7]})" + "\n" + prefix + R"({"str": ["/b.py", -1]})" +
           "\n" + prefix + R"({"str": ["/c.py", 7]})" + "\n");
  CHECK_EQ(log.strings, std::map<int64_t, std::string>{{-1, "/b.py"}, {7, "/c.py"}});
  CHECK_EQ(log.num_records, 3);
}

TEST_CASE("log: an envelope with two events gives two records") {
  const LogContent log =
      Read(Record(R"("artifact": {"name": "g"}, "aot_forward_graph": {})", GraphText(1)));
  REQUIRE_EQ(log.runs[0].records.size(), 2);
  CHECK_EQ(log.runs[0].records[0].name, "g");
  CHECK_EQ(log.runs[0].records[1].name, "aot_forward_graph");
  CHECK_EQ(log.payloads.size(), 1);
}

TEST_CASE("log: the Python source of a graph is not read as a graph") {
  const std::string source = "def forward(self, x):\n    return x\n";
  const LogContent log = Read(Record(R"("dump_file": {"name": "<eval_with_key>.1"})", source) +
                              Artifact("make_fx_fail_partial", source));
  REQUIRE_EQ(log.runs[0].graphs.size(), 1);
  CHECK_EQ(log.runs[0].graphs[0].name, "make_fx_fail_partial");
}

TEST_CASE("log: a post-grad graph from the cache is named as its pass") {
  const LogContent log = Read(Artifact("aot_forward_graph", GraphText(1)) +
                              Artifact("inductor_post_grad_graph", GraphText(2)) +
                              Artifact("inductor_post_grad_graph", GraphText(3)));
  CHECK_EQ(Outline(log.runs[0]),
           "aot_forward_graph: 1\npost_grad_graph: 1\npost_grad_graph.2: 1\n");
}

TEST_CASE("log: what takes gradients of outputs is named backward") {
  const auto graph = [](std::string_view inputs) {
    return fmt::format(
        "class GraphModule(torch.nn.Module):\n    def forward(self, {}):\n"
        "        neg = torch.ops.aten.neg.default(x)\n        return (neg,)",
        inputs);
  };
  const std::string id = R"(, "frame_id": 0, "frame_compile_id": 0, "attempt": 0)";
  const LogContent log = Read(Artifact("inductor_post_grad_graph", graph("x"), id) +
                              Artifact("inductor_post_grad_graph", graph("x, tangents_1"), id) +
                              Artifact("inductor_post_grad_graph", graph("x, no_tangents_1"), id) +
                              Artifact("before_mine", graph("x, y, tangents_1"), id) +
                              Artifact("after_mine", graph("x, tangents_2: \"f32[]\""), id) +
                              Artifact("joint_graph", graph("y, x, tangents_1"), id) +
                              Artifact("aot_backward_graph", graph("tangents_1, x"), id));
  CHECK_EQ(Outline(log.runs[0]),
           "post_grad_graph: 1\npost_grad_graph_backward: 1\npost_grad_graph.2: 1\n"
           "mine_backward: 2\njoint_graph: 1\naot_backward_graph: 1\n"
           "0 mine on mine_backward +\n");
}

TEST_CASE("log: thousands of unfinished passes are read fast") {
  std::string same, other;
  for (int i = 0; i < 20000; ++i) {
    constexpr std::string_view kGraph = "class A(torch.nn.Module):\n    def forward(self):\n";
    same += Artifact("before_x", kGraph);
    other += Artifact("before_x", fmt::format("{}        return {}", kGraph, i));
  }
  CHECK_EQ(Read(same).runs[0].graphs.size(), 1);
  CHECK_EQ(Read(other).runs[0].graphs.size(), 20000);
}

TEST_CASE("log: a graph seen only before unfinished passes is a separate graph, too") {
  const LogContent log =
      Read(Artifact("g", GraphText(1)) + Artifact("before_a", GraphText(1)) +
           Artifact("after_a", GraphText(2)) + Artifact("before_b", GraphText(3)) +
           Artifact("before_c", GraphText(4)) + Artifact("after_c", GraphText(5)));
  CHECK_EQ(Outline(log.runs[0]), "g: 6\nbefore_b: 1\n0 a on g +\n1 before_c on g +\n2 c on g +\n");
}

TEST_CASE("log: a change between passes is a pass, named as the record that shows it") {
  const LogContent log =
      Read(Artifact("g", GraphText(1)) + Artifact("before_a", GraphText(1)) +
           Artifact("after_a", GraphText(2)) + Artifact("before_b", GraphText(3)) +
           Artifact("after_b", GraphText(3)));
  REQUIRE_EQ(Outline(log.runs[0]), "g: 5\n0 a on g +\n1 before_b on g +\n2 b on g =\n");
  const LogPass& change = log.runs[0].passes[1];
  CHECK_EQ(change.before, 2);
  CHECK_EQ(change.after, 3);
}

TEST_CASE("log: a graph that no pass ran on keeps its name when passes begin with another text") {
  // As AOTInductor logs: parameters are inputs of the first, and attributes of the second.
  const LogContent log = Read(Artifact("aot_inference_graph", GraphText(1)) +
                              Artifact("before_post_grad_graph", GraphText(2)) +
                              Artifact("after_post_grad_graph", GraphText(3)));
  const LogRun& run = log.runs[0];
  CHECK_EQ(Outline(run),
           "aot_inference_graph: 1\npost_grad_graph: 3\n"
           "0 before_post_grad_graph on post_grad_graph +\n"
           "1 post_grad_graph on post_grad_graph +\n");
  CHECK_EQ(run.graphs[1].snapshots[0].payload, run.graphs[0].snapshots[0].payload);
}

}  // namespace
}  // namespace strata
