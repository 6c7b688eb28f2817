"""No class is defined in two files, and the check of that finds one that is."""

import os
import unittest

import definitions
import includes

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def names(text):
    return [name for _, name in definitions.definitions(text)]


class Definitions(unittest.TestCase):

    def test_no_class_is_defined_in_two_files(self):
        self.assertEqual(definitions.twice(ROOT), [])

    def test_every_class_of_a_known_header_is_found(self):
        with open(os.path.join(ROOT, "base/flat_map.h"), encoding="utf-8") as file:
            self.assertEqual(names(file.read()), ["strata::FlatHash< uint64_t >", "strata::FlatMap",
                                                  "strata::FlatMap::Slot"])

    def test_most_source_files_define_something(self):
        texts = []
        for path in includes.sources(ROOT):
            with open(os.path.join(ROOT, path), encoding="utf-8") as file:
                texts.append(file.read())
        self.assertGreater(sum(len(names(text)) for text in texts), len(texts) / 2)

    def test_two_tables_of_one_name(self):
        by_hash = "#pragma once\nnamespace strata {\n\ntemplate <class Value>\nclass FlatMap {\n  struct Slot {};\n};\n}\n"
        by_key = "namespace strata {\ntemplate <class Key>\nclass FlatMap {\n  struct Slot {};\n};\n}  // namespace strata\n"
        self.assertEqual(definitions.twice_in({"store/database/hash.h": by_key, "diff/flat_map.h": by_hash}),
                         ["strata::FlatMap: diff/flat_map.h:5, store/database/hash.h:3"])
        self.assertEqual(definitions.twice_in({"store/database/hash.h": by_key}), [])

    def test_another_namespace_or_class_makes_another_name(self):
        texts = {
            "a.h": "namespace a { struct Slot {}; class X { struct Slot {}; enum class Kind : int { k }; }; }",
            "b.h": "namespace b { struct Slot {}; class X { struct Slot {}; enum class Kind : int { k }; }; }",
            "c.h": "namespace a { class Y { struct Slot {}; }; struct X; enum class E : int; class X* f(); }",
        }
        self.assertEqual(definitions.twice_in(texts), [])
        self.assertEqual(names(texts["a.h"]), ["a::Slot", "a::X", "a::X::Slot", "a::X::Kind"])
        self.assertEqual(names(texts["c.h"]), ["a::Y", "a::Y::Slot"])

    def test_namespaces_nested_in_one_line_are_the_same(self):
        texts = {"a.cc": "namespace a::b { union U { int i; }; }", "b.cc": "namespace a { namespace b {\nunion U {}; } }"}
        self.assertEqual(definitions.twice_in(texts), ["a::b::U: a.cc:1, b.cc:2"])
        self.assertEqual(names("inline namespace v1 { struct S {}; }"), ["v1::S"])

    def test_a_class_inside_a_class_of_two_definitions(self):
        texts = {"a.cc": "struct A {}; struct A::Impl { int i; };", "b.cc": "struct A::Impl {};"}
        self.assertEqual(definitions.twice_in(texts), ["A::Impl: a.cc:1, b.cc:1"])

    def test_anonymous_namespaces_and_functions_are_private(self):
        text = """
          namespace strata {
          namespace {
          struct Private { enum Kind { kA }; };
          namespace inner { class AlsoPrivate {}; }
          }  // namespace
          void Run() { struct Local {}; for (;;) { enum E { kB }; } }
          auto lambda = [] { class C {}; };
          class Public final : public Base<int, Pair<int>> { void Run() override { struct Local {}; } };
          }
        """
        self.assertEqual(names(text), ["strata::Public"])

    def test_uses_of_a_type_are_no_definitions(self):
        text = """
          template <class T, typename U = struct Tag> void f(class A* a, enum B b) {}
          struct stat info{};
          struct stat Get() { return {}; }
          friend class C;
          using D = struct E;
          enum class F : uint8_t;
        """
        self.assertEqual(names(text), [])

    def test_specializations_differ_by_their_arguments(self):
        texts = {"a.h": "template <> struct Hash<A> {};", "b.h": "template <> struct Hash<B> {};",
                 "c.h": "template <> struct Hash<A> : Base {};"}
        self.assertEqual(definitions.twice_in(texts), ["Hash< A >: a.h:1, c.h:1"])

    def test_attributes_and_alignment(self):
        self.assertEqual(names("struct [[nodiscard]] A {}; class alignas(64) B final {}; extern \"C\" { struct D {}; }"),
                         ["A", "B", "D"])

    def test_text_and_comments_define_nothing(self):
        text = r'''
          // struct A {};
          /* struct B {
          }; */
          #define C struct C {
          const char* d = "struct D { \" ";
          const char* e = R"x(struct E { )" )x";
          const char f = '{', g = '\'';
          const int h = 1'000'000;
          struct Last {};
        '''
        self.assertEqual(definitions.definitions(text), [(10, "Last")])


if __name__ == "__main__":
    unittest.main()
