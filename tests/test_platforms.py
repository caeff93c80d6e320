"""The source does not take every system for Linux: what can be seen by reading it."""

import ast
import functools
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
#: What users run, and what else is Python here.
OURS = ("src", "reproduction")
ALL = (*OURS, "tools", "examples", "benchmarks", "tests")
#: Modules that Windows does not have.
MODULES = {
    "crypt", "fcntl", "grp", "posix", "pty", "pwd", "readline", "resource", "spwd", "syslog",
    "termios", "tty",
}  # fmt: skip
#: Names of `os` and `signal` that it does not have.
NAMES = {
    "fork", "forkpty", "getpgid", "geteuid", "getuid", "killpg", "mkfifo", "register_at_fork",
    "sched_getaffinity", "setsid", "uname", "alarm", "setitimer", "SIGALRM", "SIGCHLD", "SIGHUP",
    "SIGKILL", "SIGPIPE", "SIGQUIT", "SIGUSR1", "SIGUSR2",
}  # fmt: skip
#: Folders that other systems do not have.
FOLDERS = ("/dev/", "/etc/", "/home/", "/proc/", "/sys/", "/tmp", "/usr/", "/var/")
#: Of `tempfile`: until Python 3.12 they try 2³¹ names where Windows does not let one write.
TEMPORARY = {"mkstemp", "mkdtemp", "NamedTemporaryFile", "TemporaryDirectory", "TemporaryFile"}
#: What starts another program.
STARTERS = {"Popen", "check_output", "run"}
#: What has an `open` that opens no text.
NO_TEXT = {"Image", "gzip", "os", "tarfile", "webbrowser", "zipfile"}


@functools.cache
def nodes(tree):
    """Return all parts of a tree; every tree is walked once for all rules."""
    return list(ast.walk(tree))


def calls(tree):
    """Yield every call with the name of the function, and that of its owner."""
    for node in nodes(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = node.func.value
            yield node, node.func.attr, getattr(owner, "attr", getattr(owner, "id", ""))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node, node.func.id, None


def given(call):
    """Return the names of the arguments of a call; None for those in a dictionary."""
    return {keyword.arg for keyword in call.keywords}


def opens_text(call, place):
    modes = [*call.args[place : place + 1], *(k.value for k in call.keywords if k.arg == "mode")]
    return not any(isinstance(mode, ast.Constant) and "b" in mode.value for mode in modes)


def without_encoding(tree):
    """Text in the encoding of the system, which is a code page on Windows."""
    for call, name, owner in calls(tree):
        if given(call) & {"encoding", None}:
            continue
        if name == "open" and owner not in NO_TEXT:
            bad = opens_text(call, 1 if owner in (None, "io", "builtins") else 0)
        else:
            least = {"read_text": 0, "write_text": 1}.get(name)
            bad = owner is not None and len(call.args) == least
        if bad:
            yield call.lineno


def children_in_text(tree):
    """Output of other programs, read in the encoding of the system."""
    for call, name, _ in calls(tree):
        if (
            name in STARTERS
            and given(call) & {"text", "universal_newlines"}
            and "encoding" not in given(call)
        ):
            yield call.lineno


def unguarded_imports(tree):
    """Modules that Windows does not have, imported where nothing catches the error."""
    for node in tree.body:
        named = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            named = [node.module or ""]
        if MODULES & {name.partition(".")[0] for name in named}:
            yield node.lineno


def unguarded_names(tree):
    """Names of `os` and `signal` that Windows does not have, used where nothing asks for them."""
    asked = set()
    for node in nodes(tree):
        if isinstance(node, ast.If) and "hasattr(" in ast.unparse(node.test):
            asked |= {id(part) for part in ast.walk(node)}
    for node in nodes(tree):
        if isinstance(node, ast.Attribute) and node.attr in NAMES:
            known = ast.unparse(node.value) in ("os", "signal")
            if known and id(node) not in asked:
                yield node.lineno


def folders_of_linux(tree):
    """Names of folders that only some systems have, other than in documentation."""
    said = {id(node.value) for node in nodes(tree) if isinstance(node, ast.Expr)}
    for node in nodes(tree):
        text = node.value if isinstance(node, ast.Constant) and id(node) not in said else None
        if isinstance(text, str) and text.startswith(FOLDERS):
            yield node.lineno


def temporary_files(tree):
    """Names from `tempfile`, which can hang: `polyspan.base.files` has its own."""
    yield from (call.lineno for call, name, _ in calls(tree) if name in TEMPORARY)


def ends_of_lines(tree):
    """Tables that are written with the line ends of the system."""
    for call, name, _ in calls(tree):
        if name == "to_csv" and "lineterminator" not in given(call):
            yield call.lineno


RULES = {
    without_encoding: ALL,
    children_in_text: OURS,
    unguarded_imports: ALL,
    unguarded_names: OURS,
    folders_of_linux: OURS,
    temporary_files: OURS,
    ends_of_lines: OURS,
}


@functools.cache
def trees_of(folder):
    """Return the files of a folder as trees; every file is read once for all rules."""
    return {
        path.relative_to(ROOT).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted((ROOT / folder).rglob("*.py"))
    }


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_source(rule):
    trees = {name: tree for folder in RULES[rule] for name, tree in trees_of(folder).items()}
    assert len(trees) > 200
    found = [f"{name}:{line}" for name, tree in trees.items() for line in rule(tree)]
    assert not found, f"{rule.__doc__}: {found}"


BAD = {
    without_encoding: [
        "open(p)", "open(p, 'w')", "p.open()", "p.open('a')", "p.read_text()", "io.open(p)",
        "p.write_text(t)", "p.open(mode='w')", "json.loads(p.read_text())",
    ],
    children_in_text: ["subprocess.run(c, text=True)", "run(c, universal_newlines=True)"],
    unguarded_imports: ["import os, resource", "import fcntl as f", "from pwd import getpwnam"],
    unguarded_names: ["os.fork()", "signal.signal(signal.SIGALRM, f)", "n = os.sched_getaffinity"],
    folders_of_linux: ["open('/proc/self/status')", "x = f'/tmp/{y}'"],
    temporary_files: ["tempfile.mkstemp()", "with TemporaryDirectory() as f: pass"],
    ends_of_lines: ["frame.to_csv(f, index=False)"],
}  # fmt: skip
GOOD = {
    without_encoding: [
        "open(p, 'rb')", "p.open('wb')", "p.read_text(encoding='utf-8')", "Image.open(p)",
        "p.read_text('utf-8')", "p.write_text(t, 'utf-8')", "p.open(**how)", "read_text(p, q)",
        "open(p, mode='rb')", "os.open(p, flags)",
    ],
    children_in_text: ["subprocess.run(c)", "subprocess.run(c, text=True, encoding='utf-8')"],
    unguarded_imports: ["try:\n    import pwd\nexcept ImportError:\n    pwd = None"],
    unguarded_names: ["if hasattr(os, 'fork'):\n    os.fork()", "rows.fork()", "os.getpid()"],
    folders_of_linux: ["'''/tmp is a folder.'''", "x = '/'"],
    temporary_files: ["tempfile.gettempdir()"],
    ends_of_lines: ["frame.to_csv(f, lineterminator='\\n')"],
}  # fmt: skip


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_what_a_rule_finds(rule):
    assert [text for text in BAD[rule] if not list(rule(ast.parse(text)))] == []
    assert [text for text in GOOD[rule] if list(rule(ast.parse(text)))] == []


def test_names_of_files_suit_every_system():
    """None is reserved on Windows, has letters that it refuses, or differs only in capitals."""
    paths = [
        path.relative_to(ROOT).as_posix()
        for folder in (*ALL, "docs")
        for path in (ROOT / folder).rglob("*")
        if "__pycache__" not in path.parts
    ]
    assert len(paths) > 500
    reserved = {
        "con",
        "prn",
        "aux",
        "nul",
        *(f"{port}{k}" for port in ("com", "lpt") for k in range(10)),
    }
    for path in paths:
        assert not set(path) & set('<>:"|?*\\'), path
        assert not path.endswith((".", " ")), path
        assert not reserved & {part.lower().partition(".")[0] for part in path.split("/")}, path
    assert len({path.casefold() for path in paths}) == len(paths)
