"""What the documentation names exists: files, folders, pages and their sections; the edits that it shows apply."""

import os
import re
import subprocess
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# Not what commands write.
PATH = re.compile(r"`(?!out/|build/)([a-z-]+)/([\w./-]*)`")
LINK = re.compile(r"\]\(([^)\s]+)\)")


def pages():
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"], cwd=ROOT,
                            capture_output=True, text=True, check=True).stdout.split()
    for page in listed:
        if page.startswith("docs/") or "/" not in page:
            with open(os.path.join(ROOT, page), encoding="utf-8") as file:
                yield page, file.read()


def anchors(text):
    """What GitHub calls the sections of a page."""
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


class Docs(unittest.TestCase):

    def test_paths_exist(self):
        """Paths from the root; folders that are not built yet are exempt as a whole."""
        missing = [f"{page}: {top}/{rest}" for page, text in pages() for top, rest in PATH.findall(text)
                   if os.path.isdir(os.path.join(ROOT, top)) and not os.path.exists(os.path.join(ROOT, top, rest))]
        self.assertEqual(missing, [])

    def test_links_lead_somewhere(self):
        texts = dict(pages())
        broken = []
        for page, text in texts.items():
            for link in LINK.findall(text):
                if "://" in link:
                    continue
                path, _, anchor = link.partition("#")
                target = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
                if not os.path.exists(os.path.join(ROOT, target)):
                    broken.append(f"{page}: {link}")
                elif anchor and target in texts and anchor not in anchors(texts[target]):
                    broken.append(f"{page}: {link}")
        self.assertEqual(broken, [])

    def test_edits_apply(self):
        """The lines of a ```diff block that are there before the edit are consecutive lines of the file."""
        edits = 0
        for page, text in pages():
            for block in re.findall(r"^```diff\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
                lines = block.split("\n")[:-1]
                path = lines[0].removeprefix("--- a/")
                with open(os.path.join(ROOT, path), encoding="utf-8") as file:
                    source = file.read()
                before = "".join(line[1:] + "\n" for line in lines[3:] if not line.startswith("+"))
                self.assertIn(before, source, f"{page}: {path}")
                edits += 1
        self.assertGreater(edits, 0)


if __name__ == "__main__":
    unittest.main()
