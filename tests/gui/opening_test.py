"""Opening files: how far an import is, giving it up, and files dragged from another program."""

import os
import subprocess
import unittest

import x_drag
from gui_case import LOG, STRATA, VIEW, GuiCase, record


class Opening(GuiCase):

    def large(self):
        """A log whose import takes some seconds."""
        path = self.path("large.log")
        if not os.path.exists(path):
            with open(path, "w", encoding="utf-8") as file:
                for i in range(60):
                    file.write(record("before_pass" if i % 2 == 0 else "after_pass", 3000, i + 1))
        return path

    def test_a_bar_shows_how_far_an_import_is(self):
        tree = self.view(f"""
            now open {self.large()}
            now await state progress > 5
            now assert start/loading contains "Importing the log"
            now assert start/progress > 0
            now screenshot {self.picture("importing")}
            assert state opening = ""
            assert state progress = 0
            now open {self.large()}
            now await state progress > 5
            now assert status/progress > 0
            now screenshot {self.picture("importing_another")}
        """)
        self.assertEqual((tree["state"]["error"], tree["state"]["runs"]), ("", "1"))

    def test_an_import_is_given_up(self):
        tree = self.view(f"""
            now open {self.large()}
            now await state progress > 5
            now click start/cancel
            now await state opening = ""
            assert state runs = 0
            assert state message contains "Given up"
            assert start/hint exists
            open {LOG}
        """)
        self.assertEqual((tree["state"]["error"], tree["state"]["runs"]), ("", "1"))

    @unittest.skipUnless(x_drag.load(), "no Xlib")
    def test_files_dragged_from_another_program_open(self):
        trace = self.path("a name with 100 %.strata")
        subprocess.run([STRATA, "import", LOG, "-o", trace], check=True, capture_output=True)
        script = self.path("dropped.txt")
        with open(script, "w", encoding="utf-8") as file:
            file.write(f'await state nodes > 0\nassert state file = "{trace}"\nassert state error = ""\n')
        viewer = subprocess.Popen([VIEW, "--script", script], text=True, stderr=subprocess.PIPE,
                                  env={**os.environ, "DISPLAY": self.display.name, "LIBGL_ALWAYS_SOFTWARE": "1"})
        self.addCleanup(viewer.kill)
        drag = x_drag.Drag(self.display.name)
        self.addCleanup(drag.close)
        drag.drop([trace])
        errors = viewer.communicate(timeout=90)[1]
        self.assertEqual((viewer.returncode, errors), (0, ""))


if __name__ == "__main__":
    unittest.main()
