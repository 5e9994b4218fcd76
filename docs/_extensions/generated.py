"""Pages of the reference that are written from the sources when the site is built.

A page holds a line ``<!-- generated: NAME -->``, and the function NAME below writes the Markdown
that takes its place.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import click
import typer
from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[2]
MARKER = re.compile(r"^<!-- generated: (\w+) -->$", re.MULTILINE)


def _cell(text: object) -> str:
    """Text for one cell of a Markdown table."""
    words = " ".join(str(text).split())
    for special in "\\|<>*_[":
        words = words.replace(special, "\\" + special)
    return words


def _code(text: object) -> str:
    """Text as code in one cell of a Markdown table."""
    return "`" + " ".join(str(text).split()).replace("|", "\\|") + "`"


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield "| " + " | ".join(row) + " |"
    yield ""


def _paragraphs(text: str) -> str:
    """A help text as Markdown: indented lines become code."""
    blocks = re.split(r"\n\s*\n", text.strip("\n").replace("\b\n", ""))
    return "\n\n".join(
        f"```text\n{block}\n```" if block.startswith("    ") else _prose(block) for block in blocks
    )


def _prose(text: str) -> str:
    return re.sub(r"([<>*|\[])", r"\\\1", text)


def _default(value: object, is_flag: bool) -> str:
    if is_flag or value is None or value == [] or value == () or callable(value) or value == "":
        return ""
    if "unset" in repr(value).lower():
        return ""
    return _code(getattr(value, "value", value))


def _click_command(name: str, command: click.Command, level: str) -> Iterator[str]:
    context = click.Context(command, info_name=name)
    yield f"{level} {name}\n"
    yield f"```text\n{' '.join(command.get_usage(context).split()).removeprefix('Usage: ')}\n```\n"
    yield _paragraphs(command.help or "") + "\n"
    rows = []
    for param in command.params:
        if "--help" in param.opts:
            continue
        is_option = hasattr(param, "is_flag")
        names = ", ".join(map(_code, param.opts)) if is_option else _code(param.name.upper())
        rows.append(
            (
                names,
                _default(param.default, getattr(param, "is_flag", False)),
                _cell(getattr(param, "help", "") or ""),
            )
        )
    if rows:
        yield from _table(("option or argument", "default", "meaning"), rows)
    for sub, inner in getattr(command, "commands", {}).items():
        yield from _click_command(f"{name} {sub}", inner, level + "#")


def _parser_command(name: str, parser: argparse.ArgumentParser) -> Iterator[str]:
    yield f"## {name}\n"
    usage = " ".join(parser.format_usage().split()).removeprefix("usage: ")
    yield f"```text\n{usage}\n```\n"
    yield _paragraphs(parser.description or "") + "\n"
    rows = []
    for action in parser._actions:
        if "--help" in action.option_strings:
            continue
        names = ", ".join(map(_code, action.option_strings)) or _code(action.metavar)
        shown = {**vars(action), "prog": parser.prog}
        default = "" if action.default is argparse.SUPPRESS else action.default
        if "default" in (action.help or "") or action.dest == "command":
            default = ""
        rows.append(
            (names, _default(default, action.nargs == 0), _cell((action.help or "") % shown))
        )
    yield from _table(("option or argument", "default", "meaning"), rows)


def commands() -> Iterator[str]:
    """All commands of `hipress`, and those that have an entry of their own."""
    from hipress.cli import main
    from hipress.compression.compiler.cli import checker, generator
    from hipress.launch.cli import make_parser

    own = {
        "launch": lambda: _launch(make_parser("hipress launch")),
        "compile": lambda: _compile(generator, checker),
    }
    assert set(own) == set(main.OWN_PARSERS)
    for name in main.COMMANDS:
        if name in own:
            yield from own[name]()
            continue
        group = typer.main.get_command(main.build_app(name))
        command = group.commands[name]
        yield from _click_command(f"hipress {name}", command, "##")


def _launch(parser: argparse.ArgumentParser) -> Iterator[str]:
    parser._option_string_actions["--python"].default = "this one"  # no path of this machine
    yield from _parser_command("hipress launch", parser)


def _compile(generator: typer.Typer, checker: typer.Typer) -> Iterator[str]:
    yield from _click_command("hipress compile", typer.main.get_command(generator), "##")
    yield from _click_command("hipress compile check", typer.main.get_command(checker), "###")


def specs() -> Iterator[str]:
    """Every built-in algorithm: its parameters, its summary and its source."""
    folder = ROOT / "python" / "hipress" / "compression" / "compiler" / "specs"
    sources = {}
    for path in sorted(folder.glob("*.cll")):
        text = path.read_text(encoding="utf-8")
        name, summary = re.search(r'^algorithm "([^"]+)"\s+"([^"]+)"', text, re.MULTILINE).groups()
        sources[name] = (summary, text)
    for name, (summary, text) in sorted(sources.items()):
        yield f"## {name}\n\n{_prose(summary[0].upper() + summary[1:])}.\n"
        rows = []
        pattern = r"^param\s+(\S+)\s+(\w+)\s*([^;]*);"
        for kind, param, rest in re.findall(pattern, text, re.MULTILINE):
            meaning = " ".join(re.findall(r'"([^"]*)"', rest))
            limits = " ".join(re.sub(r'"[^"]*"', "", rest).split()).removeprefix("= ")
            rows.append((_code(param), _code(f"{kind} {limits}"), _cell(meaning)))
        if rows:
            yield from _table(("parameter", "default and limits", "meaning"), rows)
        yield f"```c\n{text.rstrip()}\n```\n"


def c_abi() -> Iterator[str]:
    """The comments and declarations of c_api.h, in its order and with its headings."""
    header = (ROOT / "include" / "hipress" / "c_api.h").read_text(encoding="utf-8")
    about = re.search(r"/\*!\n \* \\file.*?\\brief (.*?)\*/", header, re.DOTALL)[1]
    yield re.sub(r"^ \* ?", "", about, flags=re.MULTILINE).strip() + "\n"
    body = header[header.index("typedef struct HipressNode") :]
    body = re.split(r"#ifdef __cplusplus", body)[0]
    yield "## Types\n"
    parts = re.split(r"^/\* -+ (.*?) -+ \*/$", body, flags=re.MULTILINE)
    yield from _declarations(parts[0])
    for title, text in zip(parts[1::2], parts[2::2]):
        yield f"## {title}\n"
        yield from _declarations(text)


def _declarations(text: str) -> Iterator[str]:
    """A comment and what it is about, as prose and code."""
    for comment, code in re.findall(
        r"(?:/\*!(.*?)\*/\s*\n)?((?:(?!/\*!)[^\n]*\S[^\n]*\n)+)", text, re.DOTALL
    ):
        prose = re.sub(r"^\s*\* ?", "", comment, flags=re.MULTILINE)
        prose = prose.replace("\\brief ", "").strip()
        prose = re.sub(r"\\param (\w+)", r"\n- `\1`:", _prose(prose))
        prose = re.sub(r"\\return ", r"\nReturns: ", prose)
        if prose:
            yield prose + "\n"
        yield f"```c\n{code.replace('HIPRESS_API ', '').strip()}\n```\n"


def results() -> Iterator[str]:
    """Every file in benchmarks/results: when, where and from which commit it was measured."""
    pages = {
        page.stem: page.read_text(encoding="utf-8")
        for page in sorted((ROOT / "docs" / "measurements").glob("*.md"))
    }
    measured = []
    for path in sorted((ROOT / "benchmarks" / "results").glob("*.json")):
        result = json.loads(path.read_text(encoding="utf-8"))
        if "machine" not in result:  # its values are those of other files
            continue
        machine = result["machine"]
        if "date" not in machine:  # several runs
            machine = next((each for each in machine.values() if isinstance(each, dict)), {})
        shown = ", ".join(
            f"[{stem}]({stem}.md)"
            for stem, text in pages.items()
            if f"<!-- table: {path.stem} -->" in text or f"<!-- table: {path.stem}/" in text
        )
        date = str(machine.get("date", ""))
        processor = _cell(machine.get("gpu") or machine.get("cpu") or "")
        commit = machine.get("commit")
        load = machine.get("load_before", "")
        cells = [_cell(date[:10]), processor, _code(commit) if commit else "", str(load), shown]
        measured.append((_code(path.name), *cells))
    heads = ("file", "date", "processor", "commit", "load before", "page")
    yield from _table(heads, measured)


GENERATORS: dict[str, Callable[[], Iterator[str]]] = {
    "commands": commands,
    "specs": specs,
    "c_abi": c_abi,
    "results": results,
}


def _fill(app: Sphinx, docname: str, source: list[str]) -> None:
    source[0] = MARKER.sub(lambda match: "\n".join(GENERATORS[match[1]]()), source[0])


def setup(app: Sphinx) -> dict[str, Any]:
    """Sphinx calls it."""
    app.connect("source-read", _fill)
    return {"parallel_read_safe": True}
