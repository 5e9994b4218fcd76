"""Workflows in .github: they call commands that exist, with no more permissions than they need."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness import ROOT

sys.path.insert(0, str(ROOT / "tools"))
import release_notes

yaml = pytest.importorskip("yaml")

FOLDER = ROOT / ".github" / "workflows"
TEXTS = {path.stem: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.yml")}
JOBS = {
    (workflow, name): job
    for workflow, text in TEXTS.items()
    for name, job in yaml.safe_load(text)["jobs"].items()
}
WRITES = {
    ("release", "testpypi"): {"id-token": "write"},
    ("release", "pypi"): {"id-token": "write"},
    ("release", "github"): {"contents": "write"},
}
"""Permissions of the jobs that may write."""


def commands() -> str:
    """Return the commands of all steps."""
    return "\n".join(step.get("run", "") for job in JOBS.values() for step in job["steps"])


def test_workflows_call_make_targets_scripts_and_commands_that_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"^make ([a-z-]+)", commands(), re.MULTILINE)
    assert {"test", "test-all"} <= set(targets)
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    files = re.findall(r"(?:tools|examples)/[\w./-]+", commands())
    assert "tools/release_notes.py" in files
    assert [file for file in files if not (ROOT / file).is_file()] == []
    called = re.findall(r"^hipress ([a-z]+)", commands(), re.MULTILINE)
    modules = ROOT / "python" / "hipress" / "cli"
    assert called and all((modules / f"{name}.py").is_file() for name in called)


def test_wheels_are_built_where_cibuildwheel_is_configured():
    if "[tool.cibuildwheel]" not in (ROOT / "pyproject.toml").read_text(encoding="utf-8"):
        pytest.skip("pyproject.toml has no options for cibuildwheel")
    folders = re.findall(r"cibuildwheel==\S+ .*?(packaging/\S+)$", commands(), re.MULTILINE)
    assert folders and all((ROOT / name / "pyproject.toml").is_file() for name in folders)


def test_actions_are_pinned_to_commits_with_their_version():
    used = [line for text in TEXTS.values() for line in text.splitlines() if "uses:" in line]
    assert len(used) > 10
    for line in used:
        assert re.search(r"uses: [\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$", line), line
    versions = {tuple(re.split(r"[@ ]", line.partition("uses: ")[2])[:2]) for line in used}
    assert len(versions) == len({action for action, _ in versions}), "one version of each action"


def test_tools_are_pinned_to_a_version():
    assert re.findall(r"pipx run (?!\S+==\d)", commands()) == []


@pytest.mark.parametrize("workflow", TEXTS)
def test_only_publishing_jobs_have_write_permissions(workflow: str):
    assert yaml.safe_load(TEXTS[workflow])["permissions"] == {}
    for (of, name), job in JOBS.items():
        if of == workflow:
            allowed = WRITES.get((of, name), {})
            granted = {key: value for key, value in job["permissions"].items() if value != "read"}
            assert granted == allowed, name
            assert job["timeout-minutes"] <= 120, name


def test_needed_jobs_and_artifacts_exist():
    uploaded, downloaded = set(), set()
    for (workflow, _), job in JOBS.items():
        needs = job.get("needs", [])
        for need in [needs] if isinstance(needs, str) else needs:
            assert (workflow, need) in JOBS
        for step in job["steps"]:
            options = step.get("with", {})
            if "upload-artifact" in step.get("uses", ""):
                uploaded.add(re.sub(r"\$\{\{.*?\}\}", "x", options["name"]))
            elif "download-artifact" in step.get("uses", ""):
                patterns = options.get("name") or options["pattern"].strip("{}")
                downloaded |= set(patterns.split(","))
    for pattern in downloaded:
        assert [name for name in uploaded if Path(name).match(pattern)], pattern


def test_bug_report_form_requires_the_doctors_report():
    form = yaml.safe_load((ROOT / ".github/ISSUE_TEMPLATE/bug.yml").read_text(encoding="utf-8"))
    required = [item["id"] for item in form["body"] if item.get("validations", {}).get("required")]
    assert "doctor" in required
    labels = [item["attributes"]["label"] for item in form["body"]]
    assert len(set(labels)) == len(labels)  # the form is refused otherwise


@pytest.mark.parametrize("linter", ["actionlint", "zizmor"])
def test_linters_find_nothing(linter: str):
    command = shutil.which(linter)
    if command is None:
        pytest.skip(f"{linter} is not installed; the workflow `tests` installs and runs it")
    arguments = ["--offline"] if linter == "zizmor" else []
    arguments += [str(path) for path in FOLDER.glob("*.yml")]
    done = subprocess.run(
        [command, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


CHANGELOG = """\
# Changelog

## 0.2.0 (2027-01-31)

### Added

- A feature.

## [0.1.0]

- The first release.
"""


def test_release_notes_are_the_section_of_the_version():
    assert release_notes.section(CHANGELOG, "0.2.0") == "### Added\n\n- A feature."
    assert release_notes.section(CHANGELOG, "0.1.0") == "- The first release."
    assert release_notes.section(CHANGELOG, "0.1") == ""
    assert release_notes.section(CHANGELOG, "0.2.0.1") == ""


@pytest.mark.parametrize(
    ("tag", "message"),
    [
        ("v0.9.9", "the tag is v0.9.9, but the version is 1.2.3: expected the tag v1.2.3"),
        ("v1.2.3", "CHANGELOG.md has no section for version 1.2.3: expected '## 1.2.3'"),
    ],
)
def test_release_is_refused_without_matching_version_and_notes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tag: str, message: str
):
    package = tmp_path / "python" / "hipress"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text('__version__ = "1.2.3"\n')
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## Unreleased\n\n- A feature.\n")
    monkeypatch.setattr(release_notes, "ROOT", tmp_path)
    with pytest.raises(SystemExit, match=re.escape(message)):
        release_notes.main(tag)
    (tmp_path / "CHANGELOG.md").write_text("## 1.2.3\n\n- A feature.\n")
    assert release_notes.main("v1.2.3") == "- A feature."
