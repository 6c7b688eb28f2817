#include "viewer/model/link.h"

#include <doctest/doctest.h>

namespace strata::viewer {
namespace {

TEST_CASE("a link has the selector first, then what differs from the defaults") {
  Link link;
  link.ref = "run=1,graph=step,pass=3";
  link.node = "mm_12";
  CHECK(PrintLink(link) == "run=1,graph=step,pass=3&node=mm_12");
  link.tab = "table";
  link.hops = "all";
  link.open = {"layers.0", "layers.{1..3}"};
  CHECK(PrintLink(link) ==
        "run=1,graph=step,pass=3&tab=table&node=mm_12&hops=all&open=layers.0%3Blayers.{1..3}");
  CHECK(ParseLink("#" + PrintLink(link)) == link);
}

TEST_CASE("names with any characters survive a link") {
  for (const char* name : {"a&b=c", "x y+z%41", "ünï\u202e", "#?;:/@", "\x01\x7f"}) {
    Link link;
    link.ref = "pass=1";
    link.node = link.filter = name;
    CHECK(ParseLink(PrintLink(link)) == link);
  }
}

TEST_CASE("unknown choices and values are ignored") {
  const Link link = ParseLink("#pass=1&mode=spiral&hops=99&nonsense=1&tab&node=%zz");
  CHECK(link.mode == "unified");
  CHECK(link.hops == "1");
  CHECK(link.tab == "graph");
  CHECK(link.node == "%zz");
  CHECK(ParseLink("") == Link{});
  CHECK(ParseLink("overview&node=x").ref == "");
}

}  // namespace
}  // namespace strata::viewer
