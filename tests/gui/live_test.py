"""A trace that grows is followed; exports; the dialog that opens files."""

import json
import os
import signal
import subprocess
import time
import unittest
import xml.etree.ElementTree

from gui_case import LOG, STRATA, VIEW, GuiCase, record


LOG_NAME = os.path.basename(LOG)


class Live(GuiCase):

    def environment(self):
        return {**os.environ, "DISPLAY": self.display.name, "LIBGL_ALWAYS_SOFTWARE": "1"}

    def test_a_trace_that_grows_is_followed_until_it_ends(self):
        log, trace, script = self.path("live.log"), self.path("live.strata"), self.path("live.txt")
        told = [self.path(f"told_{i}.dot") for i in range(3)]
        with open(script, "w", encoding="utf-8") as file:
            file.write(f"""
                await state passes = 1
                assert state run_status = running
                assert state following = yes
                run live
                export {told[0]}
                await state passes = 3
                await state pass_index = 2
                await state added = 3
                key k
                assert state pass_index = 1
                export {told[1]}
                await state passes = 4
                assert state pass_index = 1
                key F6
                assert state following = no
                key F6
                export {told[2]}
                await state run_status = finished
                assert state following = no
                assert live/status text finished
            """)
        graphs = [(1, 2), (2, 4), (4, 7), (7, 11)]
        passes = [record("before_p", a) + record("after_p", b) for a, b in graphs]
        follower = subprocess.Popen([STRATA, "import", log, "--follow", "-o", trace], stderr=subprocess.PIPE, text=True)
        viewer = None
        ended = lambda: viewer.poll() is not None

        def write(*texts):
            with open(log, "a", encoding="utf-8") as stream:
                stream.writelines(texts)

        try:
            write(passes[0])
            self.wait_for(lambda: os.path.exists(trace))
            viewer = subprocess.Popen([VIEW, "--script", script, trace], env=self.environment(), text=True,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.wait_for(lambda: ended() or os.path.exists(told[0]))
            write(*passes[1:3])
            self.wait_for(lambda: ended() or os.path.exists(told[1]))
            write(passes[3])
            self.wait_for(lambda: ended() or os.path.exists(told[2]))
        finally:
            follower.send_signal(signal.SIGINT)
            follower.communicate(timeout=60)
            errors = viewer.communicate(timeout=120)[1] if viewer else ""
        self.assertEqual((viewer.returncode, errors), (0, ""))

    def wait_for(self, condition):
        for _ in range(600):
            if condition():
                return
            time.sleep(0.1)
        self.fail("nothing happened within 60 s")

    def test_graphs_are_exported(self):
        svg, dot, data, png, html = (self.path(f"g.{ending}") for ending in ("svg", "dot", "json", "png", "html"))
        tree = self.view(f"""
            key J n
            export {svg}
            export {dot}
            export {data}
            export {html}
            await state message contains g.html
            assert state message contains Written
            export {png}
            await state message contains g.png
        """, LOG)
        self.assert_picture(png, 1600, 1000)
        texts = [e.text or "" for e in xml.etree.ElementTree.parse(svg).iter()]
        self.assertTrue(any("view → reshape" in text for text in texts))
        with open(data, encoding="utf-8") as file:
            graph = json.load(file)
        self.assertEqual(len(graph["nodes"]), int(tree["state"]["nodes"]))
        self.assertIn("target", next(n["change"] for n in graph["nodes"] if n["name"] == tree["state"]["node"]))
        with open(html, encoding="utf-8") as file:
            page = file.read()
        self.assertTrue(page.lower().startswith("<!doctype html>"))
        self.assertIn(LOG_NAME, page)
        with open(dot, encoding="utf-8") as file:
            text = file.read()
        self.assertEqual(text.count(" -> "), len(graph["edges"]))
        for path, message in [("g.xyz", "unknown format"), ("no/such/folder/g.svg", "no/such/folder")]:
            done = self.start(f"export {self.path(path)}\n", LOG)
            self.assertEqual(done.returncode, 2)
            self.assertIn(message, done.stderr)

    def test_dropped_files_open_and_a_full_disk_is_said(self):
        tree = self.view(f"""
            drop {LOG}
            await state passes > 0
            export /dev/full.html
            await state message contains full.html
            drop /no/such/file
            await state error contains /no/such/file
        """)
        self.assertIn("/no/such/file", tree["state"]["error"])

    def test_the_dialog_exports_into_the_home_folder(self):
        done = self.start("key J Ctrl+E\ntype ~/home.json\nkey Enter\nwait state.message contains home.json\n"
                          "wait\n", LOG, env={"HOME": self.folder})
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertTrue(os.path.exists(self.path("home.json")))

    def test_the_dialogs_export_and_open(self):
        path = self.path("dialog")
        tree = self.view(f"""
            key J Ctrl+E
            key Ctrl+A
            type {path}
            assert export/item:{path}.png exists
            click export/item:{path}.json
            assert state message contains dialog.json
            key Ctrl+O
            type {os.path.dirname(LOG)}/compile_torch2.11
            screenshot {self.picture("open")}
            key Enter
            assert state file contains compile_torch2.11
            key Ctrl+2
        """, LOG)
        self.assertTrue(os.path.exists(path + ".json"))
        self.assertIn(LOG_NAME, tree["state"]["file"])
        self.view("""
            key Ctrl+O
            type /no/such/file.strata
            key Enter
            assert state error = ""
            key Escape
            key Ctrl+9
            assert state message = "No recent file 9"
        """, LOG)


if __name__ == "__main__":
    unittest.main()
