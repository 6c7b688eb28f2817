// Writes traces that Strata's passes never write, to test readers. The text specifies all content,
// including ids and provenance records.
//
//   trace_tool OUT < TEXT
//
//   === graph NAME             an imported graph: native text without its first line, nodes with
//   #id
//   === pass NAME GRAPH        the graph after a pass
//   provenance ID ORIGIN ID…   first lines of a pass: the new node, its origin (replaced, cloned,
//                              created), its ancestors

#include <charconv>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>

#include <fmt/format.h>

#include "store/trace_writer.h"
#include "tests/support/graphs.h"

namespace strata {
namespace {

using testing::OrDie;

Origin OriginOf(const std::string& word) {
  if (word == "cloned") return Origin::kCloned;
  if (word == "replaced") return Origin::kReplaced;
  STRATA_CHECK(word == "created", "no such origin: {}", word);
  return Origin::kCreated;
}

Provenance ReadProvenance(std::istringstream line) {
  std::string word, origin;
  uint64_t id = 0;
  line >> word >> id >> origin;
  Provenance record{StableId{id}, OriginOf(origin), {}};
  while (line >> id)
    record.from.push_back(StableId{id});
  return record;
}

class Writer {
 public:
  explicit Writer(const std::string& path)
      : trace_(OrDie(TraceWriter::Create(path, TraceWriter::Mode::kAside))) {
    RunInfo info;
    info.source = "text";
    run_ = OrDie(trace_->BeginRun(info));
  }

  void AddSection(const std::string& text) {
    std::istringstream lines(text);
    std::string line, kind, name, graph;
    std::getline(lines, line);
    std::istringstream(line) >> kind >> name >> graph;
    PassRecord pass;
    std::string body;
    while (std::getline(lines, line)) {
      if (line.starts_with("provenance ")) {
        pass.births.push_back(ReadProvenance(std::istringstream(line)));
      } else {
        body += line + "\n";
      }
    }
    const std::unique_ptr<Module> module = testing::ParseBody(body);
    if (kind == "graph") {
      last_[name] = OrDie(trace_->AddSnapshot(run_, name, module->graph(GraphId{0})));
      return;
    }
    pass.index = passes_++;
    pass.name = name;
    pass.graph = graph;
    pass.before = last_.at(graph);
    last_[graph] = OrDie(trace_->RecordPass(run_, pass, &module->graph(GraphId{0}))).record.after;
  }

  void Finish() {
    OrDie(trace_->EndRun(run_, RunStatus::kFinished));
    OrDie(trace_->Finish());
  }

 private:
  const std::unique_ptr<TraceWriter> trace_;
  RunId run_ = RunId::kNone;
  std::map<std::string, SnapshotId> last_;  // by graph
  int32_t passes_ = 0;
};

}  // namespace
}  // namespace strata

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: trace_tool OUT < TEXT\n");
    return 2;
  }
  const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
  strata::Writer writer(argv[1]);
  constexpr std::string_view kMark = "=== ";
  for (size_t begin = text.find(kMark); begin != std::string::npos;) {
    const size_t end = text.find(kMark, begin + kMark.size());
    begin += kMark.size();
    writer.AddSection(text.substr(begin, end == std::string::npos ? end : end - begin));
    begin = end;
  }
  writer.Finish();
  return 0;
}
