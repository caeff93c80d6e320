"""Modules that are imported only when they are used."""

import subprocess
import sys

CODE = """
import sys
import numpy as np
import polyspan, polyspan.baselines, polyspan.cli.jobs
X = np.random.RandomState(0).standard_normal((40, 6))
polyspan.MiCUSaL(2, 2, random_state=0).fit(X).predict(X)
X[::7, 1] = np.nan
polyspan.RobustMiCUSaL(2, 2, random_state=0).fit(X)
assert "numba" not in sys.modules, "before a compiled solver"
polyspan.baselines.GROUSE(2, n_sweeps=1, random_state=0).fit(X)
assert "numba" in sys.modules, "by a compiled solver"
"""


def test_numba_is_imported_only_by_what_it_compiles():
    # In another process: here other tests have imported it.
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
