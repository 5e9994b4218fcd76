"""Lines of code of each algorithm: its CompLL source, and other projects' equivalent files.

`--sources` is a folder with sources of the other projects: `byteps` (bytedance/byteps), `grace`
(sands-lab/grace), `hivemind` (learning-at-home/hivemind) and `mxnet` (apache/mxnet). Without it,
only CompLL's specs are counted. A line counts if it contains more than blanks, comments and
(Python) documentation strings.
"""

from __future__ import annotations

import io
import re
import tokenize
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.common.results import Record
from harness import ROOT

SPECS = ROOT / "python/hipress/compression/compiler/specs"

BYTEPS = "byteps/byteps/common/compressor"
FEEDBACK = [f"{BYTEPS}/{name}" for name in ("error_feedback.cc", "error_feedback.h")]
FEEDBACK += [f"{BYTEPS}/impl/vanilla_{name}" for name in ("error_feedback.cc", "error_feedback.h")]
GRACE = "grace/grace_dl/dist"
MXNET = "mxnet/src/kvstore/gradient_compression-inl.h"


def byteps(name: str) -> list[str]:
    """Return the files of one of BytePS's codecs."""
    return [f"{BYTEPS}/impl/{name}.cc", f"{BYTEPS}/impl/{name}.h"]


def grace(name: str, memory: str = "") -> list[str]:
    """Return the files of one of GRACE's codecs, and of its error feedback."""
    return [
        f"{GRACE}/compressor/{name}.py",
        *([f"{GRACE}/memory/{memory}.py"] if memory else []),
    ]


PEERS: list[tuple[str, str, list[str]]] = [
    (
        "2bit",
        "MXNet: the 2-bit functions for CPUs",
        [f"{MXNET}:135-234", f"{MXNET}:247-258"],
    ),
    ("onebit", "BytePS; one mean instead of two, no error feedback", byteps("onebit")),
    ("onebit", "GRACE; a byte for each bit", grace("onebit", "residual")),
    ("topk", "BytePS, with error feedback for all its codecs", [*byteps("topk"), *FEEDBACK]),
    ("topk", "GRACE", grace("topk", "residual")),
    ("randomk", "BytePS, with error feedback for all its codecs", [*byteps("randomk"), *FEEDBACK]),
    ("randomk", "GRACE", grace("randomk", "residual")),
    ("natural", "BytePS: linear and natural dithering", byteps("dithering")),
    ("natural", "GRACE; 8 bits, not every exponent", grace("natural")),
    ("terngrad", "GRACE; a byte for each of three values", grace("terngrad")),
    ("dgc", "GRACE; no warm-up, no exact k", grace("dgc", "dgc")),
    (
        "maxmin",
        "hivemind: three 8-bit quantizers",
        ["hivemind/hivemind/compression/quantization.py"],
    ),
]
"""Other implementations of an algorithm: project with a remark, and files, or lines of files."""


def count_c(text: str) -> int:
    """Return the number of lines of C, C++, CUDA or CompLL. Text in quotes is code."""
    pattern = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)

    def blank(match: re.Match[str]) -> str:
        return match[0] if match[0][0] == '"' else "\n" * match[0].count("\n")

    return sum(bool(line.strip()) for line in pattern.sub(blank, text).splitlines())


def count_python(text: str) -> int:
    """Return the number of lines of Python with a token, without documentation strings."""
    layout = {
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENDMARKER,
        tokenize.ENCODING,
    }
    lines: set[int] = set()
    begins = True  # at the start of a statement
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in layout:
            begins = begins or token.type == tokenize.NEWLINE
            continue
        if not (begins and token.type == tokenize.STRING):
            lines.update(range(token.start[0], token.end[0] + 1))
        begins = False
    return len(lines)


def count(name: str) -> int:
    """Return the number of lines of a file, or of its lines FROM to TO."""
    path, _, span = name.partition(":")
    text = Path(path).read_text()
    if span:
        first, last = map(int, span.split("-"))
        text = "\n".join(text.splitlines()[first - 1 : last])
    return count_python(text) if path.endswith(".py") else count_c(text)


def main(
    sources: Annotated[
        Path | None, typer.Option(help="Folder with sources of the other projects.")
    ] = None,
) -> None:
    record = Record("effort", locals())
    cells = []
    for spec in sorted(SPECS.glob("*.cll")):
        ours = str(count(str(spec)))
        peers = [peer for peer in PEERS if peer[0] == spec.stem] if sources else []
        for _, project, files in peers:
            lines = sum(count(str(sources / name)) for name in files)
            cells.append([f"`{spec.stem}`", ours, str(lines), project])
        if not peers:
            cells.append([f"`{spec.stem}`", ours, "", ""])
    heads = ["algorithm", "CompLL", "elsewhere", "where"]
    record.table(heads, cells, "Lines of code")
    record.save()
