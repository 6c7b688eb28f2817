"""`strata mcp` as an agent sees it: lines of JSON over pipes."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
TEXT = "def forward(self, x):\n    relu = torch.relu(x)\n    return relu\n"


class McpTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.outside = folder.name
        self.root = os.path.join(folder.name, "root")
        os.mkdir(self.root)
        self.write("root/a.txt", TEXT)
        self.write("root/b.txt", TEXT.replace("relu(", "sigmoid("))
        self.write("secret.txt", TEXT)
        self.server = subprocess.Popen(
            [sys.executable, "-B", "-m", "strata", "mcp", "--root", self.root], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, cwd=self.root,
            env={**os.environ, "STRATA_BIN": STRATA, "PYTHONPATH": os.path.join(ROOT, "python")})
        self.addCleanup(self.end)

    def end(self):
        """The end of the input ends the server."""
        self.server.stdin.close()
        self.assertEqual(self.server.wait(timeout=10), 0)
        self.server.stdout.close()

    def write(self, name, text):
        with open(os.path.join(self.outside, name), "w", encoding="utf-8") as file:
            file.write(text)

    def send(self, line):
        self.server.stdin.write(line.encode() + b"\n")
        self.server.stdin.flush()

    def ask(self, method, **params):
        self.send(json.dumps({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}))
        answer = json.loads(self.server.stdout.readline())
        self.assertEqual(answer["id"], 7)
        return answer

    def call(self, name, **arguments):
        result = self.ask("tools/call", name=name, arguments=arguments)["result"]
        return result["isError"], result["content"][0]["text"], result.get("structuredContent", {})

    def test_handshake_and_tools(self):
        result = self.ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={})["result"]
        self.assertEqual((result["protocolVersion"], result["serverInfo"]["name"]), ("2025-06-18", "strata"))
        self.assertEqual(self.ask("initialize", protocolVersion="1999-01-01")["result"]["protocolVersion"], "2025-11-25")
        self.send('{"jsonrpc":"2.0","method":"notifications/initialized"}')
        self.assertEqual(self.ask("ping")["result"], {"resultType": "complete"})
        tools = {tool["name"]: tool for tool in self.ask("tools/list")["result"]["tools"]}
        self.assertEqual(sorted(tools), ["bisect", "blame", "diff", "ls", "profile", "prove", "ranks", "show"])
        self.assertTrue(all(tool["annotations"]["readOnlyHint"] for tool in tools.values()))
        self.assertEqual(tools["diff"]["inputSchema"]["required"], ["before", "after"])

    def test_commands_answer(self):
        self.assertEqual(self.call("diff", before="a.txt", after=os.path.join(self.root, "b.txt"))[0], False)
        self.assertIn("torch.sigmoid", self.call("diff", before="a.txt", after="b.txt")[1])
        self.assertIn("torch.relu(x)", self.call("show", ref="a.txt")[1])
        failed, text, _ = self.call("ls", trace="none.strata")
        self.assertEqual((failed, text), (True, "no such file: none.strata"))

    def test_files_outside_of_the_roots_are_refused(self):
        os.symlink(os.path.join(self.outside, "secret.txt"), os.path.join(self.root, "link.txt"))
        for ref in ("../secret.txt", "link.txt", os.path.join(self.outside, "secret.txt"), "/etc/passwd"):
            self.assertEqual(self.call("show", ref=ref)[:2], (True, f"outside of the folders that may be read: {ref}"))

    def test_an_argument_is_never_an_option(self):
        path = os.path.join(self.root, "made.html")
        self.assertTrue(self.call("blame", trace="a.txt", node="--help")[0])
        self.assertTrue(self.call("show", ref="--output=made.html")[0])
        self.assertFalse(os.path.exists(path))

    def test_long_results_come_in_pages(self):
        lines = "".join(f"    x{i + 1} = torch.relu(x{i})\n" for i in range(4000))
        self.write("root/long.txt", f"def forward(self, x0):\n{lines}    return x4000\n")
        whole, cursor, pages = "", "0", 0
        while cursor:
            _, text, structured = self.call("show", ref="long.txt", cursor=cursor)
            self.assertLess(len(text), 41_000)
            cursor = structured.get("next")
            whole += text[:text.rindex("… next: ")] if cursor else text
            pages += 1
        self.assertGreater(pages, 2)
        self.assertEqual(whole.count("torch.relu"), 4000)

    def test_protocol_errors(self):
        self.send("{nonsense")
        self.assertEqual(json.loads(self.server.stdout.readline())["error"]["code"], -32700)
        self.assertEqual(self.ask("nothing/here")["error"]["code"], -32601)
        self.assertEqual(self.ask("tools/call", name="train", arguments={})["error"]["code"], -32602)
        self.assertEqual(self.ask("tools/call", name="diff", arguments={"before": "a.txt"})["error"]["code"], -32602)
        self.assertEqual(self.ask("tools/call", name="ls", arguments={"trace": 3})["error"]["code"], -32602)


if __name__ == "__main__":
    STRATA = os.path.abspath(sys.argv.pop(1))
    unittest.main()
