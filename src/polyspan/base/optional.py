"""Import packages that not everybody has installed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

#: The extra of pyproject.toml that brings a module, where there is one.
EXTRAS = {
    "PIL": "data",
    "imagecodecs": "cli",
    "matplotlib": "plot",
    "onnx": "onnx",
    "pandas": "cli",
    "pooch": "data",
    "pyarrow": "cli",
    "rich": "progress",
    "skops": "cli",
    "tifffile": "data",
}


def import_optional(module: str, user: str, instead: str = "") -> Any:
    """Import a module; where its package is missing, say what to install.

    Parameters
    ----------
    module : str
        Full name of the module.
    user : str
        What needs it, as the subject of a sentence.
    instead : str
        What else the user can do, after a comma.
    """
    package = module.partition(".")[0]
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        # Another package that this one needs: its own message says more.
        if (error.name or package).partition(".")[0] != package:
            raise
        wanted = f'"polyspan[{EXTRAS[package]}]"' if package in EXTRAS else package
        name = "pillow" if package == "PIL" else package
        raise ModuleNotFoundError(
            f"{user} needs {name}: pip install {wanted}{instead and f', {instead}'}",
            name=error.name,
        ) from error
