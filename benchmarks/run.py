"""Run benchmark rows by name (`python benchmarks/run.py faces scene`), or all of them."""

from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"  # before NumPy is loaded: a BLAS reads it once

import argparse
import json
import sys
import tempfile
from pathlib import Path

# The literal algorithm for missing entries is in reproduction/, beside this folder.
sys.path.append(str(Path(__file__).resolve().parents[1]))

from baseline_rows import (
    baselines,
    baselines_faces,
    baselines_memory,
    baselines_usps,
    sparse_codes,
)
from clustering_rows import clustering, clustering_growth, clustering_large
from job_rows import denoise as denoise_pictures
from job_rows import impute as impute_tables
from job_rows import inpaint, jobs, photograph_memory
from kernel_rows import (
    denoising,
    kernel,
    kernel_estimate,
    kernel_growth,
    kernel_memory,
    table4,
)
from missing_rows import missing, missing_fit, missing_memory
from peers import peers_growth, peers_iteration
from rows import ROWS as COMPLETE_ROWS
from small_rows import small
from timing import machine

ROWS = COMPLETE_ROWS | {
    "small": small,
    "missing": missing,
    "missing_fit": missing_fit,
    "missing_memory": missing_memory,
    "kernel": kernel,
    "kernel_estimate": kernel_estimate,
    "kernel_growth": kernel_growth,
    "kernel_memory": kernel_memory,
    "table4": table4,
    "denoising": denoising,
    "baselines": baselines,
    "baselines_usps": baselines_usps,
    "baselines_faces": baselines_faces,
    "baselines_memory": baselines_memory,
    "sparse_codes": sparse_codes,
    "clustering": clustering,
    "clustering_growth": clustering_growth,
    "clustering_large": clustering_large,
    "peers": peers_iteration,
    "peers_growth": peers_growth,
    "jobs": jobs,
}
# Parts of the row "jobs", to run one at a time.
PARTS = {
    "jobs_denoise": denoise_pictures,
    "jobs_inpaint": inpaint,
    "jobs_impute": impute_tables,
    "jobs_memory": photograph_memory,
}


# Import names of packages, and what to install for them.
INSTALLED_AS = {"skimage": "scikit-image", "bm3d": "scikit-image bm3d"}


def write_whole(path: Path, text: str) -> None:
    """Write a file so that an interrupt leaves no half-written file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(
        "w", dir=path.parent, delete=False, suffix=".part", encoding="utf-8"
    ) as file:
        file.write(text)
    Path(file.name).replace(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", nargs="*", metavar="row", help=f"of {', '.join(ROWS)}")
    parser.add_argument("--output", type=Path, default=Path("build/benchmarks.json"))
    options = parser.parse_args()
    known = ROWS | PARTS
    unknown = [name for name in options.rows if name not in known]
    if unknown:
        parser.error(f"no row is named {', '.join(unknown)}; there are {', '.join(known)}")
    about = machine()
    print("; ".join(f"{key} {value}" for key, value in about.items()), flush=True)
    results, left_out = [], []
    for name in options.rows or ROWS:
        try:
            for row in known[name]():
                results.append(row)
                values = [f"{key} {v:.4g}" for key, v in row.items() if isinstance(v, float)]
                print(f"{row['row']}: " + "; ".join(values), flush=True)
                text = json.dumps({"machine": about, "rows": results}, indent=2)
                write_whole(options.output, text)
        except ModuleNotFoundError as error:
            package = INSTALLED_AS.get(error.name or "", error.name)
            print(f"{name}: left out, needs `pip install {package}`", flush=True)
            left_out.append(name)
    if results:
        print(f"written to {options.output}")
    if left_out and options.rows:
        raise SystemExit(f"not measured: {', '.join(left_out)}")


if __name__ == "__main__":
    main()
