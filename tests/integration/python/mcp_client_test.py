"""`strata mcp` with the official client of the Model Context Protocol, in both eras of it. Needs its package `mcp`."""

import asyncio
import importlib.util
import os
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
TYPED = """\
class Step(torch.nn.Module):
    def forward(self, x: "f32[4][1]", y: "f32[4][1]"):
        add: "f32[4][1]" = torch.ops.aten.add.Tensor(x, y)
        mul: "f32[4][1]" = torch.ops.aten.mul.Tensor(add, x)
        return (mul,)
"""
TEXT = "def forward(self, x):\n    relu = torch.relu(x)\n    return relu\n"

if importlib.util.find_spec("mcp") is None:
    print("skipped: no client of the Model Context Protocol: ./dev setup test")
    sys.exit(77)

import mcp  # noqa: E402
from mcp.client.stdio import stdio_client  # noqa: E402


class ClientTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = os.path.join(folder.name, "root")
        os.mkdir(self.root)
        lines = "".join(f"    x{i + 1} = torch.relu(x{i})\n" for i in range(4000))
        for name, text in (("root/a.txt", TEXT), ("root/b.txt", TEXT.replace("relu(", "sigmoid(")), ("secret.txt", TEXT),
                           ("root/typed.txt", TYPED), ("root/commuted.txt", TYPED.replace("(x, y)", "(y, x)")),
                           ("root/doubled.txt", TYPED.replace("(add, x)", "(add, add)")),
                           ("root/long.txt", f"def forward(self, x0):\n{lines}    return x4000\n")):
            with open(os.path.join(folder.name, name), "w", encoding="utf-8") as file:
                file.write(text)
        # The client hands on a few variables alone; the server needs these.
        self.server = mcp.StdioServerParameters(
            command=sys.executable, args=["-B", "-m", "strata", "mcp", "--root", self.root], cwd=self.root,
            env={"STRATA_BIN": STRATA, "PYTHONPATH": os.path.join(ROOT, "python")})

    async def check(self, client):
        """What an agent does: looks at the tools, compares, reads page by page, and makes mistakes."""
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        self.assertEqual(sorted(tools), ["bisect", "blame", "diff", "ls", "profile", "prove", "ranks", "show"])
        self.assertTrue(all(tool.annotations.read_only_hint for tool in tools.values()))
        found = await client.call_tool("diff", {"before": "a.txt", "after": "b.txt"})
        self.assertFalse(found.is_error)
        self.assertIn("torch.relu → torch.sigmoid", found.content[0].text)
        proven = await client.call_tool("prove", {"trace": "typed.txt", "after": "commuted.txt"})
        self.assertFalse(proven.is_error, proven.content)
        self.assertIn("proven", proven.content[0].text)
        refuted = await client.call_tool("prove", {"trace": "typed.txt", "after": "doubled.txt"})
        self.assertFalse(refuted.is_error, refuted.content)
        self.assertIn("differ", refuted.content[0].text)
        refused = await client.call_tool("show", {"ref": "../secret.txt"})
        self.assertTrue(refused.is_error)
        self.assertIn("outside of the folders that may be read", refused.content[0].text)
        count, cursor, pages = 0, "0", 0
        while cursor:
            page = await client.call_tool("show", {"ref": "long.txt", "cursor": cursor})
            self.assertLess(len(page.content[0].text), 41_000)
            count += page.content[0].text.count("torch.relu")
            cursor = (page.structured_content or {}).get("next")
            pages += 1
        self.assertEqual(count, 4000)
        self.assertGreater(pages, 2)
        with self.assertRaisesRegex(Exception, "no tool train"):
            await client.call_tool("train", {})
        with self.assertRaisesRegex(Exception, "missing: after"):
            await client.call_tool("diff", {"before": "a.txt"})

    def test_a_session_with_a_handshake(self):  # PY-31
        async def run():
            async with stdio_client(self.server) as (read, write), mcp.ClientSession(read, write) as session:
                about = await session.initialize()
                self.assertEqual(about.server_info.name, "strata")
                await self.check(session)

        asyncio.run(asyncio.wait_for(run(), 60))

    def test_a_client_of_either_era(self):  # PY-31
        async def run(mode):
            async with mcp.Client(stdio_client(self.server), mode=mode) as client:
                await self.check(client)

        for mode in ("auto", "legacy"):
            with self.subTest(mode):
                asyncio.run(asyncio.wait_for(run(mode), 60))


if __name__ == "__main__":
    STRATA = os.path.abspath(sys.argv.pop(1))
    unittest.main()
