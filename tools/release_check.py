"""Check that HEAD can be released: `make release-check`.

Every check prints a line: whether it holds, and what was found. What would be published lies in
`build/release` afterwards, with its checksums. RELEASING.md says what a person does then.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tarfile
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

from floor_constraints import floors
from release import archives, environments, readme, versions
from release.report import FailedCheckError, reported, require, run
from release.sbom import checked_sbom

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "build" / "release"
#: What `make docs-quick` writes.
SITE = ROOT / "build" / "site-quick" / "index.html"


@dataclass(frozen=True)
class Release:
    """What is released: the commit, its version and time, and the folder for everything between.

    The two trees are copies of the commit, and lie at paths of different depth.
    """

    work: Path
    version: str
    epoch: str
    tags: tuple[str, ...]
    floor_python: str

    @property
    def tree(self) -> Path:
        """The source tree of the commit."""
        return self.work / "one"

    @property
    def other_tree(self) -> Path:
        """The same once more."""
        return self.work / "another" / "place"

    def artefact(self, pattern: str) -> Path:
        """Return the one file of the release that fits a pattern."""
        found = list(OUT.glob(pattern))
        if len(found) != 1:
            raise FailedCheckError(f"{len(found)} files {pattern} in build/release: see the build")
        return found[0]

    @property
    def wheel(self) -> Path:
        """The wheel."""
        return self.artefact("*.whl")

    @property
    def sdist(self) -> Path:
        """The source archive."""
        return self.artefact("*.tar.gz")

    def check_tree(self) -> str:
        """Find nothing that waits for a commit: what is checked is what is there."""
        changed = run(["git", "status", "--porcelain"], cwd=ROOT).splitlines()
        if changed:
            some = ", ".join(line[3:] for line in changed[:3])
            raise FailedCheckError(
                f"{len(changed)} files differ from HEAD, which is what gets built: {some}"
            )
        return f"all files are as in commit {run(['git', 'rev-parse', 'HEAD'], cwd=ROOT)[:12]}"

    def check_versions(self) -> str:
        """Compare the versions that files and tag name."""
        require(versions.disagreements(self.tree, self.tags))
        entry = versions.top_entry((self.tree / "CHANGELOG.md").read_text(encoding="utf-8"))
        tag = f"tag {', '.join(self.tags)}" if self.tags else "no tag yet"
        names = ", ".join(versions.named_versions(self.tree))
        return f"{self.version} in {names} ({entry.items} items, {entry.note}); {tag}"

    def check_build(self) -> str:
        """Build twice, in other folders, another time zone and another order, and compare."""
        hashes = []
        for k, tree in enumerate((self.tree, self.other_tree)):
            dist = self.work / f"dist-{k}"
            unlike = {"TZ": ("UTC", "Asia/Tokyo")[k], "PYTHONHASHSEED": str(k + 1)}
            run(
                [sys.executable, "-m", "build", "--outdir", dist, tree],
                env={"SOURCE_DATE_EPOCH": self.epoch, **unlike},
            )
            hashes.append({path.name: archives.digest(path) for path in sorted(dist.iterdir())})
        first, second = hashes
        differ = [name for name in first | second if first.get(name) != second.get(name)]
        require([f"{name} differs between two builds" for name in differ])
        for name in first:
            shutil.copy2(self.work / "dist-0" / name, OUT / name)
        return "two builds agree: " + ", ".join(f"{name} {h}" for name, h in first.items())

    def check_wheel(self) -> str:
        """Look into the wheel: the package and its licences, and nothing else."""
        files = archives.wheel_files(self.wheel)
        require(archives.wheel_problems(files, self.version))
        require(archives.path_problems(files, self.folders()))
        require(archives.size_problems(self.wheel, archives.WHEEL_LIMIT))
        return f"{len(files)} files, {self.wheel.stat().st_size / 1e6:.1f} MB: polyspan, licences"

    def check_sdist(self) -> str:
        """Look into the source archive: files of the commit, with tests and licences."""
        files = archives.sdist_files(self.sdist)
        tracked = run(["git", "ls-tree", "-r", "-z", "--name-only", "HEAD"], cwd=ROOT).split("\0")
        require(archives.sdist_problems(files, self.version, tracked))
        require(archives.path_problems(files, self.folders()))
        require(archives.size_problems(self.sdist, archives.SDIST_LIMIT))
        return f"{len(files)} files, {self.sdist.stat().st_size / 1e6:.1f} MB, all of them in git"

    def check_metadata(self) -> str:
        """Ask twine about both files."""
        run([sys.executable, "-m", "twine", "check", "--strict", self.wheel, self.sdist])
        return "twine check --strict passes for both"

    def check_readme(self) -> str:
        """Make a page of the README in the wheel: nothing may be lost."""
        from markdown_it import MarkdownIt  # comes with twine

        text = (self.tree / "README.md").read_text(encoding="utf-8")
        files = archives.wheel_files(self.wheel)
        metadata = files[f"polyspan-{self.version}.dist-info/METADATA"].decode()
        header, _, described = metadata.partition("\n\n")
        if "Description-Content-Type: text/markdown" not in header:
            raise FailedCheckError("the wheel's description is not Markdown")
        if readme.without_links(described) != readme.without_links(text):
            raise FailedCheckError("the wheel's description is not README.md")
        html = MarkdownIt("commonmark").enable("table").render(described)
        require(readme.page_problems(text, html, self.tree))
        left = [f"the link {link} leads nowhere there" for link in readme.relative_links(described)]
        require(left)
        return "renders, with all headings, tables and code; all links lead to the repository"

    def check_newest(self) -> str:
        """Use the wheel with the newest versions of what it needs."""
        python = environments.empty_environment(self.work / "newest", sys.executable)
        environments.pip(python, "install", "--quiet", self.wheel)
        return environments.use(python, self.readme_text(), self.version)

    def check_sbom(self) -> str:
        """Write the bill of materials of that environment, before more comes into it."""
        python = self.work / "newest" / "bin" / "python"
        target = OUT / f"polyspan-{self.version}.cdx.json"
        packages = environments.installed(python)
        return checked_sbom(python, self.tree, target, (self.version, self.epoch), packages)

    def check_command(self) -> str:
        """Add the extra `cli`, and run the command."""
        folder = self.work / "newest" / "bin"
        environments.pip(folder / "python", "install", "--quiet", f"{self.wheel}[cli]")
        said = run([folder / "polyspan", "--version"], cwd=self.work).strip()
        if said != f"polyspan {self.version}":
            raise FailedCheckError(f"polyspan --version says {said!r}")
        return f"`polyspan --version` says {said}"

    def check_floors(self) -> str:
        """Use the wheel with the lowest versions that it allows."""
        python = environments.empty_environment(self.work / "floors", self.floor_python)
        lowest = self.work / "constraints.txt"
        pinned = [f"{name}=={v}\n" for name, v in floors(self.tree / "pyproject.toml").items()]
        lowest.write_text("".join(pinned), encoding="utf-8")
        environments.pip(python, "install", "--quiet", "--constraint", lowest, self.wheel)
        return environments.use(python, self.readme_text(), self.version)

    def check_docs(self) -> str:
        """Build the site, where warnings are errors."""
        SITE.unlink(missing_ok=True)
        run(["make", "docs-quick"], cwd=ROOT)
        require([] if SITE.exists() else [f"{SITE.relative_to(ROOT)} is not there"])
        pages = len(list(SITE.parent.rglob("*.html")))
        return f"{pages} pages in {SITE.parent.relative_to(ROOT)}, without warnings"

    def check_sums(self) -> str:
        """Write checksums of all artefacts, as `sha256sum --check` reads them."""
        wanted = [self.wheel, self.sdist, self.artefact("*.cdx.json")]
        lines = [f"{archives.digest(path)}  {path.name}\n" for path in sorted(wanted)]
        (OUT / "SHA256SUMS").write_text("".join(lines), encoding="utf-8")
        return f"{len(lines)} files in build/release/SHA256SUMS"

    def folders(self) -> list[Path]:
        """Return the folders of this machine that no artefact may name."""
        return [ROOT, self.work, Path.home()]

    def readme_text(self) -> str:
        """Return the README of the commit."""
        return (self.tree / "README.md").read_text(encoding="utf-8")


CHECKS = (
    "tree", "versions", "build", "wheel", "sdist", "metadata", "readme", "newest", "sbom",
    "command", "floors", "docs", "sums",
)  # fmt: skip


def exported(work: Path, floor_python: str) -> Release:
    """Copy HEAD into two clean folders, and say what it is."""
    archive = work / "head.tar"
    run(["git", "archive", "--format=tar", "--output", archive, "HEAD"], cwd=ROOT)
    epoch = run(["git", "log", "-1", "--format=%ct"], cwd=ROOT).strip()
    tags = run(["git", "tag", "--points-at", "HEAD"], cwd=ROOT).split()
    release = Release(work, "", epoch, tuple(tags), floor_python)
    for tree in (release.tree, release.other_tree):
        with tarfile.open(archive) as files:
            files.extractall(tree, filter="data")
    version = versions.named_versions(release.tree)["pyproject.toml"]
    return Release(work, version, epoch, tuple(tags), floor_python)


def main() -> int:
    """Run all checks; 1 if one failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--floor-python", default=sys.executable, help="for the lowest versions")
    parser.add_argument("--requirements", action="store_true", help="print what this tool needs")
    options = parser.parse_args()
    if options.requirements:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        print(*project["optional-dependencies"]["release"], sep="\n")
        return 0
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix="polyspan-release-") as folder:
        release = exported(Path(folder).resolve(), options.floor_python)
        failed = [name for name in CHECKS if not reported(name, getattr(release, f"check_{name}"))]
    if failed:
        print(f"{len(failed)} of {len(CHECKS)} checks failed: {', '.join(failed)}")
    else:
        print(f"{len(CHECKS)} checks hold: build/release has what would be published")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
