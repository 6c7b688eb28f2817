"""Lets a test run in a Python that can import PyTorch: this one, or that of .venv-bench (`./dev setup bench`).

    import torch_python
    torch_python.need()

The package `strata` of this checkout is imported from its sources.
"""

import importlib.util
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_MARK = "STRATA_TEST_PYTHON"


def _works(python):
    """LibTorch alone, as .venv has it, cannot be imported."""
    return os.access(python, os.X_OK) and subprocess.run([python, "-c", "import torch"], capture_output=True,
                                                         check=False).returncode == 0


def need():
    """Starts the script again in such a Python; without one the test is skipped."""
    if not os.environ.get(_MARK):
        for folder in (".venv-bench", ".venv"):
            python = os.path.join(ROOT, folder, "bin", "python")
            if _works(python):
                os.environ[_MARK] = python
                os.environ["PYTHONPATH"] = os.path.join(ROOT, "python")
                os.execv(python, [python, "-B", *sys.argv])
        if importlib.util.find_spec("torch") is None:
            print("skipped: no Python with PyTorch: ./dev setup bench")
            sys.exit(77)
    sys.path.insert(0, os.path.join(ROOT, "python"))
