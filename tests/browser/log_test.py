"""The log's page of the report: what a person looks for there, and contents that mean harm.

usage: log_test.py STRATA SCREENSHOTS
"""

import hashlib
import json
import os

from browser import PHONE, WIDE, run
from checks import CONTRAST, CUT, RULES

MARKUP = "</script><img src=x onerror=\"document.title='owned'\"><b>bold</b>"
TURNED = "safe\u202etxt.exe\u0007"
GUARDS = [
    {"code": "check_tensor(L['x'], Tensor)", "stack": None, "user_stack": [{"line": 7, "name": "f", "filename": 0, "loc": "y = x"}]},
    {"code": MARKUP},
]
CODE = "# kernel\nimport torch\nasync_compile = 'a string'\n" + "".join(f"buf{i} = kernel_{i}({i})\n" for i in range(200))
GRAPH = "class GraphModule(torch.nn.Module):\n    def forward(self, x: \"f32[2][1]cpu\"):\n        y: \"f32[2][1]cpu\" = torch.ops.aten.add.Tensor(x, 1);  x = None\n        return (y,)\n"


def record(event, payload=None, frame=0, compile_number=0, attempt=0, rank=None):
    envelope = dict(event)
    if rank is not None:
        envelope["rank"] = rank
    if frame is not None:
        envelope |= {"frame_id": frame, "frame_compile_id": compile_number, "attempt": attempt}
    if payload is not None:
        envelope["has_payload"] = hashlib.md5(payload.encode()).hexdigest()
    lines = "" if payload is None else "".join(f"\t{line}\n" for line in payload.split("\n"))
    return f"V1120 18:28:13.658000 9595 torch/x.py:10] {json.dumps(envelope)}\n{lines}"


def artifact(name, payload, encoding="string", **context):
    return record({"artifact": {"name": name, "encoding": encoding}}, payload, **context)


def stack(*lines):
    return [{"line": line, "name": f"f{line}", "filename": 0, "loc": f"call({line})"} for line in lines]


def event(name, phase, microseconds, **more):
    return record({"chromium_event": {}}, json.dumps({"name": name, "ph": phase, "ts": microseconds, "pid": 1, "tid": 0, "args": {"compile_id": "0/0"}, **more}))


def whole_log():
    return "".join([
        record({"str": ["model.py", 0]}, frame=None), record({"str": ["<eval_with_key>.3", 1]}, frame=None),
        artifact("torch_version", "2.14.0", frame=None),
        record({"dynamo_start": {"stack": stack(1, 2)}}),
        record({"describe_tensor": {"id": 0, "describer_id": 0, "ndim": 1, "dtype": "f", "device": "cpu", "size": [2]}}),
        record({"describe_tensor": {"id": 1, "describer_id": 0, "ndim": 1, "dtype": "f", "device": "cpu", "size": [2]}}),
        record({"dynamo_output_graph": {"sizes": {"x": [2]}}}, GRAPH),
        artifact("inductor_post_grad_graph", GRAPH.replace("1)", "2)")),
        record({"dynamo_guards": {}}, json.dumps(GUARDS)),
        record({"inductor_output_code": {"filename": "/c/abc.py"}}, CODE),
        artifact("fx_graph_cache_hit_0", json.dumps({"key": "k", "time": 1.5, "lines": "a\nb"}), "json"),
        record({"guard_added_fast": {"expr": "Eq(s0, 8)", "user_stack": stack(2), "stack": stack(1, 2)}}),
        record({"symbolic_shape_specialization": {"symbol": "s0", "sources": ["L['x']"], "value": "8", "reason": "r", "user_stack": stack(2)}}),
        artifact("inductor_provenance_tracking_node_mappings", json.dumps({"preToPost": {"x": ["y"]}, "postToCppCode": {"y": ["kernel_150:1"]}}), "json"),
        event("compile", "B", 1000), event("backend", "X", 1200, dur=500), event("compile", "E", 3000),
        record({"compilation_metrics": {"co_name": "forward", "co_filename": "model.py", "co_firstlineno": 3, "graph_op_count": 1, "graph_node_count": 3, "guard_count": 2,
                                        "entire_frame_compile_time_s": 1.25, "nothing": None, "odd": float("nan")}}),
        record({"dynamo_start": {"stack": stack(1, 5)}}, frame=1),
        record({"dump_file": {"name": "<eval_with_key>.3"}}, "def g():\n    pass\n    return 1", frame=1),
        record({"dynamo_start": {"stack": [*stack(1), {"line": 2, "name": "g", "filename": 1}]}}, frame=1, attempt=1),
        record({"compilation_metrics": {"co_name": "g", "graph_op_count": 0, "restart_reasons": ["graph break: print"]}}, frame=1, attempt=1),
        record({"compilation_metrics": {"co_name": "bad", "graph_op_count": 4, "fail_type": "InductorError", "fail_reason": MARKUP, "fail_user_frame_filename": "m.py", "fail_user_frame_lineno": 9}}, frame=2),
        record({"link": {"name": "profile", "url": "https://example.org/p"}}), record({"link": {"name": "evil link", "url": "javascript:alert(1)"}}),
        record({"missing_fake_kernel": {"op": "mylib::foo", "reason": "no kernel"}}, frame=None),
        artifact("invented", "text", frame=2), record({"odd_event": {"a": [1, {"b": MARKUP}]}}, "payload", frame=2),
    ])


def log(site, name="log.log", text=None):
    path = site.path(name)
    if not os.path.exists(path):
        with open(path, "w", encoding="utf-8") as file:
            file.write(whole_log() if text is None else text)
    return site.report(path)


def summary(site):
    site.open(log(site), "#log")
    site.shows(".log-list", "[0/0]")
    site.shows(".log-list", "[1/0_1]")
    site.shows(".log .cards", "Failures")
    site.shows(".log-body", "graph break: print")
    site.shows(".log-body", "InductorError")
    site.shows(".log-body", "m.py:9")
    site.shows(".log-body", "mylib::foo no kernel")
    # Frames that compilations share stand once.
    trie = site.text(".trie")
    assert trie.count("model.py:1 in f1") == 1 and "model.py:5 in f5" in trie and "call(2)" in trie, trie
    site.shows(".log-list", "failed")
    site.shows(".log-list", "restarted")
    site.shows(".log-body", "torch_version")
    assert site.count(".flame rect") == 2
    site.shot("log_light")


def compilation(site):
    site.open(log(site), "#log")
    site.click(".log-list a:nth-of-type(3)")
    site.shows(".log-body h1", "[0/0] forward")
    site.shows(".log .cards", "1.3 s")
    body = site.text(".log-body")
    for words in ("dynamo_output_graph", "describe_tensor ×2", "3 nodes", "cache hit", "Eq(s0, 8)", "8, L['x'], r", "graph_node_count", "NaN", "model.py:2 in f2"):
        assert words in body, f"“{words}” in {body}"
    assert "nothing" not in body
    site.click(".log-body section a[href*='graph=dynamo_output_graph']")
    site.wait(lambda: "view" not in site.driver.current_url and "graph=dynamo_output_graph" in site.driver.current_url, "the graph")
    site.driver.back()
    site.shows(".log-body h1", "[0/0] forward")


def click_record(site, name):
    site.js("[...document.querySelectorAll('.log-body td a')].find((a) => a.textContent === arguments[0]).click()", name)
    site.shows(".log-body h1", name)


def payloads(site):
    site.open(log(site), "#log&graph=0/0")
    click_record(site, "dynamo_guards")
    site.shows(".log-body table", "check_tensor(L['x'], Tensor)")
    site.shows(".log-body table", MARKUP)
    site.js("document.querySelectorAll('.log-body details').forEach((d) => { d.open = true; })")
    site.shows(".log-body table", "model.py:7 in f")
    site.driver.back()
    click_record(site, "inductor_output_code")
    site.shows(".code .comment", "# kernel")
    site.shows(".code .word", "import")
    site.shows(".code .string", "'a string'")
    assert site.text(".gutter").split()[-1] == str(CODE.count("\n") + 1)
    assert site.js("return document.querySelector('.code .text').textContent") == CODE
    site.shot("log_code_light")
    site.open(log(site), "#log&graph=0/0")
    click_record(site, "fx_graph_cache_hit_0")
    site.shows(".code .text", '"time": 1.5')
    # Text inside of JSON is shown with its lines.
    assert '"a\nb"' in site.js("return document.querySelector('.code .text').textContent")
    site.click(".log-body .button:last-of-type")
    site.wait(lambda: "fx_graph_cache_hit_0" not in site.text(".log-body h1"), "the next record")
    site.open(log(site), "#log&graph=0/0")
    click_record(site, "describe_tensor")
    site.shows(".code .text", '"id": 1')


def links_between_records(site):
    site.open(log(site), "#log")
    site.js("[...document.querySelectorAll('.trie a')].find((a) => a.textContent.startsWith('<eval')).click()")
    site.shows(".log-body h1", "<eval_with_key>.3")
    site.wait(lambda: site.count(".code .mark") == 1, "the line of the frame")
    site.open(log(site), "#log&graph=0/0")
    hrefs = site.js("return [...document.querySelectorAll('.log-body a')].map((a) => a.getAttribute('href'))")
    assert "https://example.org/p" in hrefs and not any(href.startswith("javascript") for href in hrefs)


def marks(site):
    """Lines that are marked in each pane, from where the marks are drawn."""
    return site.js("""return [...document.querySelectorAll('.texts .code')].map((box) => [...box.querySelectorAll('.mark')].map((mark) =>
        box.querySelector('.text').textContent.split('\\n')[Math.round((mark.offsetTop - 8) / parseFloat(getComputedStyle(box).lineHeight))].trim()))""")


def point(site, pane, words):
    """Moves the mouse onto the line that begins with `words`."""
    site.js("""const box = document.querySelectorAll('.texts .code')[arguments[0]], line = box.querySelector('.text').textContent.split('\\n').findIndex((l) => l.trim().startsWith(arguments[1]));
        box.scrollTop = Math.max(0, 18 * line - 60);
        box.dispatchEvent(new MouseEvent('mousemove', {clientY: box.getBoundingClientRect().top - box.scrollTop + 8 + 18 * line + 9}))""", pane, words)  # fmt: skip


def body(*lines):
    text = "class GraphModule(torch.nn.Module):\n    def forward(self, x: \"f32[2][1]cpu\"):\n"
    return text + "".join(f"        {name}: \"f32[2][1]cpu\" = torch.ops.aten.{op}\n" for name, op in lines) + "        return (y,)\n"


def provenance(site):
    """A line of a graph marks its lines in the other graph and in the code; two graphs of one compilation each have their own."""
    def part(number, mapping, code, before, after):
        return "".join([artifact("before_pre_grad_graph", before), artifact("after_pre_grad_graph", before), artifact("before_post_grad_graph", after), artifact("inductor_post_grad_graph", after),
                        record({"inductor_output_code": {"filename": f"/c/{number}.py"}}, code), artifact("inductor_provenance_tracking_node_mappings", json.dumps(mapping), "json")])  # fmt: skip
    code = "kernel_1 = compile()\n" + "# filler\n" * 300 + "def call(args):\n    # Source node to ATen node: kernel_1:2\n    kernel_1(a)\n    # kernel_1:21\n    extern.mm(b)\n    # extern.mm:3\n    extern.mm(c)\n"
    mapping = {"postToPre": {"a": ["u"], "b": ["u"], "y": ["y"]}, "cppCodeToPost": {"kernel_1:2": ["a", "b"], "extern.mm:3": ["y"]}}
    text = part(0, mapping, code, body(("u", "sin.default(x)"), ("y", "neg.default(u)")), body(("a", "cos.default(x)"), ("b", "sin.default(a)"), ("y", "neg.default(b)")))
    text += part(1, {"postToPre": {"v": ["w"]}, "cppCodeToPost": {"other": ["v"]}}, "def call(args):\n    other(1)\n    other(2)\n", body(("w", "abs.default(x)"), ("y", "neg.default(w)")), body(("v", "abs.default(x)"), ("y", "neg.default(v)")))
    page = log(site, "provenance.log", text)
    site.open(page, "#log&graph=0/0")
    site.js("[...document.querySelectorAll('.log-body td a')].find((a) => a.textContent === 'side by side').click()")
    site.wait(lambda: site.count(".texts .code") == 3, "three panes")
    assert [words.split("\n")[0] for words in site.js("return [...document.querySelectorAll('.texts h3')].map((x) => x.textContent)")] == ["before_pre_grad_graph", "inductor_post_grad_graph", "inductor_output_code"]
    site.wait(lambda: all(marks(site)), "the first pair is marked")
    starts = lambda lines: [line.split(":")[0] for line in lines]
    point(site, 0, "u:")
    pre, post, called = marks(site)
    assert starts(pre) == ["u"] and starts(post) == ["a", "b"] and called == ["kernel_1(a)"], (pre, post, called)
    shown = site.js("const box = document.querySelectorAll('.texts .code')[2], mark = box.querySelector('.mark'); return mark.offsetTop >= box.scrollTop && mark.offsetTop < box.scrollTop + box.clientHeight")
    assert shown, "the marked code is in view"
    point(site, 2, "extern.mm(c)")
    pre, post, called = marks(site)
    assert starts(pre) == ["y"] and starts(post) == ["y"] and called == ["extern.mm(c)"], (pre, post, called)
    point(site, 2, "extern.mm(b)")
    assert marks(site)[:2] == [[], []], marks(site)
    point(site, 1, "b:")
    site.js("document.querySelectorAll('.texts .code')[1].dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowDown'}))")
    assert starts(marks(site)[1]) == ["y"] and starts(marks(site)[0]) == ["y"], marks(site)
    site.shot("log_provenance_light")
    site.open(page, "#log&graph=0/0")
    site.js("[...document.querySelectorAll('.log-body td a')].filter((a) => a.textContent === 'side by side')[1].click()")
    site.wait(lambda: site.count(".texts .code") == 3 and all(marks(site)), "three panes")
    pre, post, called = marks(site)
    assert starts(pre) == ["w"] and starts(post) == ["v"] and called == ["other(1)", "other(2)"], (pre, post, called)
    for size in (PHONE, WIDE):
        site.resize(size)
        problems = [*site.js(CONTRAST), *site.js(RULES)]
        assert not problems and site.js("return document.documentElement.scrollWidth <= innerWidth"), (size, problems)
    site.quiet()


def expressions(site):
    created = lambda method, result, number, *arguments: record({"expression_created": {"method": method, "result": result, "result_id": number, "arguments": [words for words, _ in arguments], "argument_ids": [i for _, i in arguments], "user_stack": stack(number)}}, frame=None)
    text = record({"str": ["model.py", 0]}, frame=None) + record({"create_unbacked_symbol": {"symbol": "u0", "node_id": 1, "vr": "[0, 9]", "user_stack": stack(1)}}, frame=None)
    text += created("neg", "-u0", 2, ("u0", 1)) + created("add", "5 - u0", 3, ("-u0", 2), ("5", None)) + created("self", "loop", 4, ("loop", 4))
    text += record({"guard_added": {"expr": "5 - u0 >= 0"}}, frame=None) + record({"propagate_real_tensors_provenance": {"expr": "Eq(5 - u0, 0)", "expr_node_id": 3}}, frame=None) + record({"guard_added": {"expr": "s0 > 1"}}, frame=None) + record({"guard_added": {"expr": "loop"}}, frame=None)
    page = log(site, "expressions.log", text)
    for node, is_known in ((4, True), (5, True), (6, False)):
        site.open(page, f"#log&graph=-&node={node}")
        site.shows(".log-body h1", "guard_added" if node != 5 else "propagate")
        tree = site.text(".trie") if site.count(".trie") else ""
        assert all(words in tree for words in ("5 - u0 by add", "-u0 by neg", "u0", "model.py:3 in f3")) == is_known, (node, tree)
    assert site.js("return document.querySelectorAll('.trie li li li').length") == 0
    site.open(page, "#log&graph=-&node=4")
    assert site.js("return document.querySelectorAll('.trie li li li').length") == 1
    site.open(page, "#log&graph=-&node=7")
    site.shows(".trie", "loop by self")
    site.quiet()


def collectives(site):
    code = "def call(args):\n    a = torch.ops._c10d_functional.all_reduce_.default(x, 'sum', '0')\n    b = torch.ops._c10d_functional.all_gather_into_tensor_out.default(a, 2, '0')  # torch.ops._c10d_functional.all_reduce.default(\n    torch.ops._c10d_functional.wait_tensor.default(a)\n"
    names = ["all_reduce_", "wait_tensor", "reduce_scatter_tensor", "all_gather_into_tensor"]
    text = artifact("inductor_collective_schedule", json.dumps([f"torch.ops._c10d_functional.{name}.default" for name in names]), "json") + record({"inductor_output_code": {}}, code)
    site.open(log(site, "collectives.log", text), "#log&graph=0/0")
    site.shows(".log-body", "schedule and code differ, 1 wait missing")
    rows = site.js("return [...document.querySelectorAll('.log-body section:last-of-type tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent).join(' '))")
    assert rows == ["all_reduce 1 1", "wait_tensor 1 1", "reduce_scatter 1 0", "all_gather 1 1"], rows


def search(site):
    site.open(log(site), "#log&graph=0/0")
    site.type(".finder .search", "cache_hit")
    site.wait(lambda: site.count(".log-body table tbody tr") and "dynamo_guards" not in site.text(".log-body section:first-of-type"), "the filter")
    site.type(".finder .search", "torch_vers")
    site.shows("#results", "torch_version")


def rank_logs(site):
    """Two ranks that compiled and cached differently."""
    folder = site.path("log_ranks")
    if not os.path.isdir(folder):
        os.makedirs(folder)
        for rank in (0, 1):
            text = artifact("fx_graph_cache_miss_1" if rank else "fx_graph_cache_hit_1", "{}", "json", rank=rank) + record({"dynamo_output_graph": {}}, GRAPH, rank=rank)
            text += artifact("inductor_collective_schedule", json.dumps(["all_gather" if rank else "all_reduce"]), "json", rank=rank) + artifact("same", "on both", rank=rank)
            text += artifact("inductor_runtime_and_tensor_meta", json.dumps({"ops": [{"name": "mm", "estimated_runtime_ns": 1e6 * (1 + rank)}]}), "json", rank=rank)
            order = ["0/0", "0/1", "0/0"] if rank else ["0/0", "0/0", "0/0"]
            text += artifact("graph_execution", json.dumps({"graph_execution_order": [{"compile_id": i} for i in order]}, indent=0), "json", frame=None, rank=rank)
            if rank:
                text += record({"dynamo_start": {"stack": stack(4)}}, frame=3, rank=rank)
            with open(os.path.join(folder, f"dedicated_log_torch_trace_rank_{rank}_x.log"), "w", encoding="utf-8") as file:
                file.write(text)
    return site.report(folder)


def ranks(site):
    site.open(rank_logs(site), "#log")
    site.shows(".log-body", "2 compilations differ between ranks")
    site.shows(".log-body", "miss")
    site.shows(".log-body", "none")
    site.shows(".log-body", "inductor_collective_schedule")
    body = site.text(".log-body")
    assert "2.00" in body and "2.0 ms" in body, body
    places = site.js("return [...document.querySelectorAll('.log-body section')].find((s) => s.textContent.startsWith('Order of execution')).innerText").split("\n")
    assert "ranks differ at 3 of 3 places" in places[1], places
    assert places[-3:] == ["0\t[0/0]\t[0/0]\tcollectives, cache", "1\t[0/0]\t[0/1]\tgraph, collectives, cache", "2\t[0/0]\t[0/0]\tcollectives, cache"], places
    assert "same" not in body.split("Payloads that differ")[1].split("Expected run time")[0], body


def hostile(site):
    """Contents that mean harm are text: nothing runs, nothing is asked for, nothing is turned around."""
    text = "".join([
        artifact(MARKUP, MARKUP), artifact(TURNED, TURNED + "\u2066x"), artifact("../../etc/passwd", "x"), artifact("n" * 100_000, "long name"),
        artifact("long lines", "y" * 2_000_000), artifact("many lines", "z\n" * 30_000),
        artifact("not json", "{\"a\": ", "json"), artifact("deep", '{"a":[' * 20_000 + "]}" * 20_000, "json"), record({"odd": json.loads('{"a":[' * 300 + "]}" * 300)}),
        record({"dynamo_start": {"stack": [{"line": MARKUP, "name": MARKUP, "filename": "x"}, 7]}}), record({"dynamo_start": {"stack": "no list"}}, frame=4), record({"compilation_metrics": {"co_name": 5, "co_filename": ["x"], "co_firstlineno": "\u202e", "fail_type": 7, "fail_reason": {}, "fail_user_frame_filename": 5,
                                        "fail_user_frame_lineno": "\u202e", "restart_reasons": [1, None], "entire_frame_compile_time_s": "x", "guard_count": "y"}}, frame=9), record({"dynamo_start": {"stack": stack(*range(1000))}}, frame=7), record({"dynamo_start": {"stack": [None, [], "x"]}}, frame=8), record({"guard_added_fast": {"expr": [1], "user_stack": [None, 5]}}, frame=8),
        record({"compilation_metrics": {"co_name": MARKUP, "fail_type": MARKUP, "fail_reason": TURNED, "restart_reasons": [MARKUP]}}), record({"compilation_metrics": ["no object"]}, frame=5),
        record({"dynamo_guards": {}}, json.dumps([1, None, {"code": 5, "user_stack": "x"}])), record({"chromium_event": {}}, json.dumps({"name": MARKUP, "ph": "X", "ts": 1, "dur": 5})),
        record({"chromium_event": {}}, "no json"), record({"chromium_event": {}}, json.dumps([1])), record({MARKUP: {"name": MARKUP}}, MARKUP), record({"link": {"name": "l", "url": "data:text/html,x"}}),
        artifact("__proto__", "x"), artifact("constructor", "x", frame=6), artifact("inductor_provenance_tracking_node_mappings", json.dumps({"preToPost": {"a": 5, MARKUP: [MARKUP]}, "postToCppCode": 3}), "json"),
    ])  # fmt: skip
    page = log(site, "hostile.log", text)
    site.open(page, "#log")
    site.quiet()
    places = site.js("return [...document.querySelectorAll('.log-list a')].map((a) => a.getAttribute('href'))")
    for href in places:
        site.open(page, href)
        site.shows(".log-body", "")
        for link in set(site.js("return [...document.querySelectorAll('.log-body td a')].map((a) => a.getAttribute('href')).filter((x) => /&node=\\d+$/.test(x))")):
            site.open(page, link)
            assert site.count(".log-body h1") == 1, link
            assert "owned" not in site.js("return document.title")
            assert site.count("main img, main b b") == 0
            words = site.js("return document.querySelector('main').textContent")
            assert not any(turn in words for turn in "\u202e\u2066\u0007"), link
        site.quiet()
    site.open(page, "#log&graph=0/0&node=5")
    site.shows(".code button", "Show all 30,001 lines")
    site.click(".code button")
    site.wait(lambda: site.text(".gutter").split()[-1] == "30001", "all lines")


def access(site):
    """Names, roles and contrast; nothing cut or covered."""
    site.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-reduced-motion", "value": "reduce"}]})
    for size in (WIDE, PHONE):
        site.resize(size)
        for fragment in ("#log", "#log&graph=0/0", "#log&graph=2/0", "#log&graph=0/0&node=7"):
            site.open(log(site), fragment)
            for theme in ("dark", "light"):
                site.js("document.documentElement.dataset.theme = arguments[0]", theme)
                low = site.js(CONTRAST)
                assert not low, (size, fragment, theme, low)
            for check in (RULES, CUT):
                problems = site.js(check)
                assert not problems, (size, fragment, problems)
    site.resize(WIDE)
    site.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def phone(site):
    site.resize(PHONE)
    for fragment in ("#log", "#log&graph=0/0", "#log&graph=0/0&node=6"):
        site.open(log(site), fragment)
        wide = site.js("return document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0, f"{fragment}: {wide} px wider than the screen"
    site.shot("phone_log_light")
    site.resize(WIDE)
    site.open(log(site), "#log&graph=0/0")
    site.theme("dark")
    site.shot("log_compilation_dark")
    site.theme("light")


if __name__ == "__main__":
    run((summary, compilation, payloads, links_between_records, provenance, expressions, collectives, search, ranks, hostile, access, phone))
