"""What a person installs: only ``memoryd``, complete, and at work without the source."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2]
DATA = {"memoryd/systemd/memoryd.service", "memoryd/launchd/memoryd.daemon.plist"}

pytestmark = pytest.mark.slow


def run(*command: str | Path, cwd: Path) -> str:
    """Run ``command`` without our own Python settings; what it printed comes back."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env=kept,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, f"{command}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist and the wheel built from it, from a copy of the source."""
    folder = tmp_path_factory.mktemp("distributions")
    unwanted = shutil.ignore_patterns(
        ".git", ".venv", ".*_cache", ".hypothesis", "build", "dist", "*.egg-info", "__pycache__"
    )
    copy = folder / "copy"
    shutil.copytree(SOURCE, copy, ignore=unwanted, symlinks=True)
    build = (sys.executable, "-m", "build", "--no-isolation", "--outdir")
    run(*build, folder, cwd=copy)
    return folder


@pytest.fixture(scope="module")
def installed(distributions: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs' folder of a fresh environment with the wheel and the libraries of this one.

    The libraries are named by a path file. Path files among them are not read in turn, so the
    editable install that may be there does not count.
    """
    environment = tmp_path_factory.mktemp("installed") / "environment"
    run(sys.executable, "-m", "venv", "--without-pip", environment, cwd=distributions)
    python = environment / "bin" / "python"
    (wheel,) = distributions.glob("*.whl")
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python)
    run(*pip, "install", "--no-deps", "--no-index", "--quiet", wheel, cwd=distributions)
    own = run(
        python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=distributions
    )
    libraries = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (Path(own.strip()) / "libraries.pth").write_text("\n".join(sorted(libraries)))
    return python.parent


def names_in_wheel(distributions: Path) -> set[str]:
    """The files of the one wheel there is."""
    (wheel,) = distributions.glob("*.whl")
    return set(zipfile.ZipFile(wheel).namelist())


def test_the_wheel_holds_memoryd_and_nothing_else(distributions: Path) -> None:
    """Nothing generic like ``cli`` or ``tests`` lands beside other people's packages."""
    names = names_in_wheel(distributions)

    tops = {name.split("/")[0].split("-")[0] for name in names}
    assert tops == {"memoryd"}
    assert not [name for name in names if "test_" in name or "conftest" in name]
    assert [name for name in names if name.endswith(".data/scripts/memoryd-hook")]


def test_the_wheel_holds_every_module_and_the_data(distributions: Path) -> None:
    """Built by way of the sdist, so both are complete: modules, service files, examples."""
    names = names_in_wheel(distributions)

    folders = ("memory", "sessions", "jobs", "daemon", "cli")
    modules = {
        f"memoryd/{path.relative_to(SOURCE).as_posix()}"
        for folder in folders
        for path in (SOURCE / folder).rglob("*.py")
    }
    examples = {
        f"memoryd/{path.relative_to(SOURCE).as_posix()}"
        for path in (SOURCE / "examples").rglob("*")
        if path.is_file() and path.suffix not in {".py", ".pyc"}
    }
    assert (modules | DATA | examples) - names == set()


def test_the_sdist_holds_what_a_build_needs(distributions: Path) -> None:
    """Licence, readme, the hook's script and the project file are in it."""
    (sdist,) = distributions.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.split("/", 1)[-1] for name in archive.getnames()}

    assert {"LICENSE", "README.md", "pyproject.toml", "bin/memoryd-hook"} <= names


def test_memoryd_runs_where_the_source_is_out_of_reach(installed: Path, tmp_path: Path) -> None:
    """The program answers from the installed package, not from a checkout."""
    where = run(
        installed / "python",
        "-c",
        "import memoryd.cli.main, memoryd.daemon.service as s; print(s.__file__)",
        cwd=tmp_path,
    )

    assert where.startswith(str(installed.parent))
    assert "Usage" in run(installed / "memoryd", "--help", cwd=tmp_path)


def test_the_service_files_are_found_in_the_package(installed: Path, tmp_path: Path) -> None:
    """Both templates are read from the installation and name its own program."""
    script = (
        "import os; from memoryd.daemon import service_files as f; from memoryd.memory.home "
        "import Home; i = f.Installation.running(Home.locate(None, os.environ), os.environ); "
        "print(f.render_systemd(i), f.render_launchd(i))"
    )

    text = run(installed / "python", "-c", script, cwd=tmp_path)

    assert f'ExecStart=:"{installed}/memoryd" run' in text
    assert f"<string>{installed}/memoryd</string>" in text


def test_the_installed_hook_leaves_an_envelope(installed: Path, tmp_path: Path) -> None:
    """The script is ours to the byte but for its first line, which names the environment."""
    hook = installed / "memoryd-hook"
    done = subprocess.run(
        [str(hook), "codex", "stop"],
        input=b'{"session_id":"s1"}',
        env={**os.environ, "MEMORYD_HOME": str(tmp_path / "home")},
        cwd=tmp_path,
        capture_output=True,
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert len(list((tmp_path / "home" / "inbox").glob("*.json"))) == 1
    first, *rest = hook.read_text().splitlines()
    assert first.startswith(f"#!{installed}/python")
    assert rest == (SOURCE / "bin" / "memoryd-hook").read_text().splitlines()[1:]
