#include <string>

#include <doctest/doctest.h>

#include "tlparse-export/torch_trace/export/log_writer.h"
#include "tlparse-export/torch_trace/export/tlparse_rules.h"

namespace strata {
namespace {

constexpr std::string_view kPrefix = "V1120 18:32:38.396000 14073 torch/x.py:10] ";

bool Takes(std::string_view envelope, std::string_view payload = "") {
  return TlparseTakes(kPrefix, envelope, payload);
}

TEST_CASE("rules: PyTorch's records are accepted") {
  CHECK(Takes(R"({"artifact": {"name": "before_dce", "encoding": "string"}, "rank": 0})"));
  CHECK(Takes(R"({"dynamo_start": {"stack": [{"line": 1, "name": "f", "filename": 0}]}})"));
  CHECK(Takes(R"({"compilation_metrics": {"co_name": null, "graph_op_count": 3, "start_time": 1.5,
                  "new_field": {"a": 1}}, "frame_id": 0, "frame_compile_id": 0, "attempt": 0})"));
  CHECK(Takes(
      R"j({"guard_added": {"expr": "Eq(s0, 3)", "prefix": "eval", "symbol_to_sources": {"s0": "x"},
          "frame_locals": {"loc": "assert x", "locals": {"a": null}, "symbols": {"s0": "x"}}}})j"));
  CHECK(Takes(R"({"dynamo_guards": {}})", R"([{"code": "x", "stack": null}])"));
  CHECK(Takes(
      R"j({"describe_tensor": {"id": 0, "describer_id": 1, "ndim": 2, "dtype": "torch.float32",
           "device": "device(type='cpu')", "size": [2, "s0"], "is_leaf": true}})j"));
}

TEST_CASE("rules: records that tlparse cannot read, or writes outside its folder, are rejected") {
  for (const char* envelope : {
           R"({"rank": 0})",
           R"({"odd_event": {}})",
           R"({"artifact": {"name": "a"}})",
           R"({"artifact": {"name": "a", "encoding": "bytes"}})",
           R"({"artifact": {"name": "../a", "encoding": "string"}})",
           R"({"artifact": {"name": "/etc/a", "encoding": "string"}})",
           R"({"artifact": {"name": "", "encoding": "string"}})",
           R"({"artifact": {"name": "a", "name": "b", "encoding": "string"}})",
           R"({"graph_dump": {"name": "a/b"}})",
           R"({"dump_file": {"name": "../x"}})",
           R"({"compilation_metrics": {"start_time": NaN}})",
           R"({"compilation_metrics": {"fail_type": "E"}})",
           R"({"compilation_metrics": {"co_firstlineno": 1.5}})",
           R"({"dynamo_start": {"stack": [{"line": 1, "name": "f", "filename": -1}]}})",
           R"({"describe_storage": {"id": 0, "size": 4}})",
           R"({"link": {"name": "\ud800", "url": "u"}})",
       }) {
    CHECK_MESSAGE(!Takes(envelope), std::string(envelope));
  }
  CHECK_FALSE(Takes(R"({"dynamo_guards": {}})", "[1]"));
  CHECK_FALSE(Takes(R"({"dynamo_guards": {}})", "no JSON"));
  constexpr std::string_view kGood = R"({"link": {"name": "n", "url": "u"}})";
  CHECK(Takes(kGood, "a\nb"));
  CHECK_FALSE(Takes(kGood, "a\r\nb"));
  CHECK_FALSE(Takes(kGood, "a\xFF"));
  CHECK_FALSE(Takes(std::string(R"({"link": {"name": "n", "url": )") + std::string(200, '[') +
                    std::string(200, ']') + "}}"));
}

TEST_CASE("rules: log headers that tlparse recognizes") {
  CHECK(IsPlainPrefix(kPrefix));
  CHECK(IsPlainPrefix("C0101 00:00:00.000000 139877824898048 /a b/x.py:1] "));
  CHECK_FALSE(IsPlainPrefix("D1120 18:32:38.396000 14073 torch/x.py:10] "));
  CHECK_FALSE(IsPlainPrefix("V1120 18:32:38.396 14073 torch/x.py:10] "));
  CHECK_FALSE(IsPlainPrefix("V1120 18:32:38.396000 14073 C:\\x.py:10] "));
  CHECK_FALSE(IsPlainPrefix("V1120 18:32:38.396000 99999999999999999999 x.py:10] "));
  CHECK_FALSE(IsPlainPrefix("V1120 18:32:38.396000 14073 torch/x.py:10] [0/0] "));
  CHECK_FALSE(IsPlainPrefix(""));
}

TEST_CASE("rules: names that leave the folder become file names") {
  CHECK_EQ(PlainName("after_dce"), "after_dce");
  CHECK_EQ(PlainName("../../etc/passwd"), ".__.__etc_passwd");
  CHECK_EQ(PlainName(""), "record");
  CHECK_EQ(PlainName("a\nb\xFF"), "a_b_");
  CHECK_EQ(PlainName("größe"), "größe");
  CHECK_LE(PlainName(std::string(5000, 'x')).size(), 200);
}

}  // namespace
}  // namespace strata
