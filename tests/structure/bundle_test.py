"""The bundler of the report's page: what it takes away means nothing, and names stay what they were to others."""

import importlib.util
import os
import re
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGE = os.path.join(ROOT, "assets", "report")


def load():
    spec = importlib.util.spec_from_file_location("bundle", os.path.join(ROOT, "cmake", "bundle.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


bundle = load()


def body(source):
    return bundle.script(source).split("\n", 2)[2].rsplit("\n})();", 1)[0]


class Bundle(unittest.TestCase):

    def test_comments_and_blanks_go(self):
        self.assertEqual(body("// why\nf(1,  2); /* so */ f(3);"), "a(1,2);a(3);")

    def test_texts_and_expressions_stay(self):
        source = "f(\"// 'no' \", '/* */', /[/\"]\\/ x/g, `a  ${ b } // c`);"
        self.assertEqual(body(source), "a(\"// 'no' \",'/* */',/[/\"]\\/ x/g,`a  ${b} // c`);")

    def test_an_object_inside_a_template_keeps_its_keys(self):
        self.assertEqual(body("`${{good: 1}[status]} ${status}`;"), "`${{good:1}[a]} ${a}`;")

    def test_texts_that_are_said_often_have_a_name(self):
        source = 'f("often", "often", "once");\nf(x ? "often" : "often", {"often": `${f("often")}`});\nreturn "often";'
        self.assertEqual(body(source), 'let c="often";\na(c,c,"once");a(b?c:c,{"often":`${a(c)}`});return c;')

    def test_a_slash_after_a_value_divides(self):
        self.assertEqual(body("x = y / 2 / z;"), "a=b/2/c;")

    def test_signs_that_would_join_stay_apart(self):
        self.assertEqual(body("x = y + +z - -y;"), "b=a+ +c- -a;")

    def test_properties_keep_their_names(self):
        self.assertEqual(body("long.name = {name: long, ...other}; class Thing { draw(long) { return this.name; } }"),
                         "a.name={name:a,...b};class c{draw(a){return this.name}}")

    def test_getters_and_setters_keep_their_names(self):
        self.assertEqual(body("class Thing { get size() { return long; } set size(size) { long = size; } }"),
                         "class c{get size(){return a}set size(b){a=b}}")

    def test_shorthands_keep_the_name_of_the_property(self):
        self.assertEqual(body("const {width, height: tall, deep = 1} = box; use({width, tall}, deep);"),
                         "let{width:a,height:b,deep:c=1}=d;e({width:a,tall:b},c);")

    def test_declarations_are_no_shorthands(self):
        self.assertEqual(body("function f() { let size = 1, unit = 2; return {size, unit}; }"),
                         "function c(){let a=1,b=2;return{size:a,unit:b}}")

    def test_what_browsers_provide_stays(self):
        self.assertEqual(body("document.title = location.hash;"), "document.title=location.hash;")

    def test_what_browsers_provide_has_a_short_name_when_said_often(self):
        self.assertEqual(body("f(Math.max(x, 1), `${Math.max(y, 2)}`, Math.max(z, 3), a.Math.max);"),
                         "let a=Math.max;b(a(c,1),`${a(f,2)}`,a(d,3),e.Math.max);")

    def test_literals_have_a_short_name_when_said_often(self):
        self.assertEqual(body("f(null, null, {null: 1}, x.null); g(null, null, null, true);"), "let a=null;b(a,a,{null:1},c.null);d(a,a,a,true);")

    def test_declarations_that_follow_each_other_are_one(self):
        self.assertEqual(body("const f = () => { let i = 1; const j = 2; g(i); const k = j; return k; };\nlet m = 3;\nif (m) { f(); }\nconst n = 4;"),
                         "let a=()=>{let b=1,c=2;f(b);let d=c;return d},e=3;if(e){a()}let g=4;")

    def test_templates_nest(self):
        self.assertEqual(body("f(`${g(`${deep}`)}}`);"), "a(`${b(`${c}`)}}`);")

    def test_styles(self):
        self.assertEqual(bundle.style("/* x */ a > b { color: red; margin: 0 auto; }\n"), "a > b{color:red;margin:0 auto}\n")


class Sources(unittest.TestCase):

    def files(self, ending):
        return sorted(os.path.join(PAGE, name) for name in os.listdir(PAGE) if name.endswith(ending))

    def read(self, path):
        with open(path, encoding="utf-8") as file:
            return file.read()

    def test_text_never_becomes_markup_or_code(self):
        unsafe = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|createContextualFragment|\bfetch\(|XMLHttpRequest|WebSocket|sendBeacon|import\(|\.srcdoc")
        for path in self.files(".js"):
            self.assertIsNone(unsafe.search(self.read(path)), path)

    def test_nothing_is_defined_in_vain(self):
        all_tokens, _ = bundle.tokens("\n".join(map(self.read, self.files(".js"))))
        used = bundle.Names(all_tokens).uses
        once = [name for name, count in used.items() if count == 1 and name not in bundle.GLOBALS | bundle.KEYWORDS]
        self.assertEqual(once, [])

    def test_every_file_is_in_the_page(self):
        listed = self.read(os.path.join(ROOT, "tlparse-export", "report", "CMakeLists.txt"))
        for path in self.files(".js") + self.files(".css"):
            self.assertRegex(listed, rf"\b{re.escape(os.path.basename(path))}\b")

    def test_script_and_style_are_small(self):
        script = bundle.script("\n".join(map(self.read, self.files(".js"))))
        style = bundle.style("\n".join(map(self.read, self.files(".css"))))
        self.assertLess(len(script.encode()) + len(style.encode()), 150_000)


if __name__ == "__main__":
    unittest.main()
