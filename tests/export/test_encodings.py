"""Exported files where the standard output has a code page, as on Windows."""

import os
import subprocess
import sys

import numpy as np
import pandas as pd

from polyspan import MiCUSaL, export_model


def test_the_help_of_a_file_with_any_names(tmp_path):
    X = np.random.RandomState(0).standard_normal((40, 3))
    frame = pd.DataFrame(X, columns=["λ", "b", "長さ"])
    export_model(MiCUSaL(2, 1, random_state=0).fit(frame), tmp_path / "m.py")
    frame.to_csv(tmp_path / "x.csv", index=False)
    code_page = {**os.environ, "PYTHONIOENCODING": "cp1252", "PYTHONUTF8": "0"}
    for words, code, said in (
        (("--help",), 0, b"\\u9577"),
        (("x.csv",), 0, b"0\n"),
        (("長.csv",), 1, b"error: "),
    ):
        done = subprocess.run(
            [sys.executable, "m.py", *words], cwd=tmp_path, env=code_page, capture_output=True
        )
        assert done.returncode == code, done.stderr
        assert said in (done.stdout + done.stderr).replace(b"\r\n", b"\n")
        assert b"Traceback" not in done.stderr
