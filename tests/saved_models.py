"""Models to save: every estimator fitted to small data, what it makes of them; forged files."""

import io
import json
import zipfile

import numpy as np

from polyspan.datasets import make_union_of_subspaces, mask_entries
from polyspan.storage.archive import MANIFEST, SCHEMA, digest

DATA = make_union_of_subspaces(
    (30, 30), n_features=12, subspace_dim=2, spread=0.8, noise=0.02, random_state=0
)
SIZES = {"n_subspaces": 2, "subspace_dim": 2, "max_subspaces": 3, "max_dim": 3, "n_clusters": 2}


def fitted(kind, X=None, **parameters):
    known = kind().get_params()
    sizes = {name: value for name, value in SIZES.items() if name in known}
    if "random_state" in known:
        sizes["random_state"] = 0
    model = kind(**{**sizes, **parameters})
    if X is None:
        X = DATA.X
        if model.__sklearn_tags__().input_tags.allow_nan:
            X = mask_entries(X, 0.1, random_state=0)
    return model.fit(X), X


def outcomes(model, X):
    names = (
        "predict", "transform", "reconstruct", "impute", "impute_std", "score_samples",
        "contributions",
    )  # fmt: skip
    return {name: getattr(model, name)(X) for name in names if hasattr(model, name)}


def assert_same(model, again, X):
    """Compare the bits, also of a few rows: BLAS takes other ways for them."""
    for rows in (X, X[:1], X[:3], X[:17]):
        before, after = outcomes(model, rows), outcomes(again, rows)
        assert before.keys() == after.keys()
        for name in before:
            assert before[name].dtype == after[name].dtype
            np.testing.assert_array_equal(before[name], after[name], err_msg=name)


def rewritten(content, change=None, manifest=None, compression=zipfile.ZIP_STORED, more=None):
    """Forge a file: change tree, manifest or members and make the checksum right again."""
    source = zipfile.ZipFile(io.BytesIO(content))
    members = {name: source.read(name) for name in source.namelist()} | (more or {})
    tree, about = json.loads(members[SCHEMA]), json.loads(members[MANIFEST])
    if change is not None:
        tree = change(tree) or tree
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, member in members.items():
            if name not in (SCHEMA, MANIFEST):
                archive.writestr(name, member)
        archive.writestr(SCHEMA, tree if isinstance(tree, bytes) else json.dumps(tree))
        about["sha256"] = digest(archive)
        archive.writestr(MANIFEST, json.dumps({**about, **(manifest or {})}))
    return buffer.getvalue()


def attributes(tree):
    return tree["content"]["content"]


def node(loader, name):
    module, _, kind = name.rpartition(".")
    empty = {"content": {}, "key_types": {"__class__": "list", "__module__": "builtins",
             "__loader__": "ListNode", "content": []}}  # fmt: skip
    return {"__class__": kind, "__module__": module, "__loader__": loader, **empty}
