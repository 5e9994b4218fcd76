"""The `compll` command: generates code from algorithms, and checks them.

compll my_algorithm.cll -b -w -r -f torch -o folder   codec, operators, their registration
compll my_algorithm.cll --show-ir                     the IR before and after the passes
compll check my_algorithm.cll                         compiled code against the interpreter
"""

import re
import sys
import timeit
from collections.abc import Callable, Sequence
from enum import Enum
from pathlib import Path
from typing import Annotated, Optional

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from hipress.base import files
from hipress.base.files import FileError
from hipress.compression.compiler import (
    Compiled,
    CompileError,
    Interpreter,
    PayloadError,
    Program,
    compile_file,
    emit,
    optimize,
)
from hipress.compression.compiler.compiler_errors import BuildError
from hipress.compression.compiler.frontend.source_reader import read_program
from hipress.compression.compiler.ir.printer import print_program
from hipress.compression.compiler.runtime.native import build

generator = typer.Typer(add_completion=False, help="Generates code from a CompLL algorithm.")
checker = typer.Typer(add_completion=False, help="Checks a CompLL algorithm.")
console = Console(highlight=False)
_STEPS = 3
"""Number of consecutive encodes that a check compares. A wrong state shows in the next encode."""


class Target(str, Enum):
    """Target of generated code."""

    cpu = "cpu"
    numpy = "numpy"
    cuda = "cuda"


class Framework(str, Enum):
    """Framework of generated operators."""

    mxnet = "mxnet"
    torch = "torch"
    tensorflow = "tensorflow"


def _fail(message: object) -> None:
    typer.echo(str(message), err=True)
    raise typer.Exit(1)


def _read_pair(source: Path) -> Program:
    """Return the program of a file and, if it has only one function, of its partner.

    HiPress's compiler took one function a file: the partner of TernGradEncode.pse is
    TernGradDecode.pse in the same folder, and both are the algorithm TernGrad.
    """
    text = files.read(source, "algorithm")
    program = read_program(text, str(source))
    if program.encode is not None and program.decode is not None:
        return program
    here, there = ("Encode", "Decode") if program.encode else ("Decode", "Encode")
    partner = source.with_name(source.name.replace(here, there))
    if here not in source.stem or not partner.exists():
        return program
    other = files.read(partner, "algorithm")
    read_program(other, str(partner))  # for errors with the right file and line
    name = source.name.replace(here, "") if source.stem != here else source.name
    return read_program(f"{text}\n{other}", str(source.with_name(name)))


@generator.command()
def generate_code(
    source: Annotated[Path, typer.Argument(help="the algorithm's source file")],
    body: Annotated[bool, typer.Option("-b", help="generate the codec")] = False,
    wrapper: Annotated[bool, typer.Option("-w", help="generate the operators")] = False,
    registration: Annotated[
        bool, typer.Option("-r", help="generate their registration, and build.sh")
    ] = False,
    framework: Annotated[
        Framework, typer.Option("-f", help="the framework of -w and -r")
    ] = Framework.mxnet,
    output: Annotated[
        Optional[Path],  # noqa: UP045 (Python 3.9)
        typer.Option("-o", help="folder of the files; output/NAME if it is not given"),
    ] = None,
    target: Annotated[Target, typer.Option("--target", help="what the body runs on")] = Target.cpu,
    show_ir: Annotated[bool, typer.Option("--show-ir", help="print the IR")] = False,
) -> None:
    """Generates code; without -b, -w or -r the source is only checked for errors."""
    try:
        program = _read_pair(source)
        if show_ir:
            typer.echo(f"; before the passes\n{print_program(program)}")
        optimize(program)
        if show_ir:
            typer.echo(f"; after the passes\n{print_program(program)}")
        outputs = emit.body(program, target.value) if body else {}
        if wrapper or registration:
            _check_operators(program, source, target)
        if wrapper:
            outputs.update(emit.wrapper(program, framework.value))
        if registration:
            outputs.update(emit.registration(program, framework.value))
    except (CompileError, BuildError, ImportError, FileError) as error:
        _fail(error)
    folder = output or Path("output") / program.identifier
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in outputs.items():
            files.write(folder / name, "source", content)
            typer.echo(f"wrote {folder / name}")
    except OSError as error:
        _fail(f"cannot write to the folder {folder}: {error.strerror}")
    except FileError as error:
        _fail(error)
    if registration:
        typer.echo(f"compile: sh {folder / 'build.sh'}")
        typer.echo(f"load: {emit.load_line(program, framework.value, folder)}")


def _check_operators(program: Program, source: Path, target: Target) -> None:
    if target is not Target.cpu:
        _fail("compll: operators (-w, -r) are generated for --target cpu")
    missing = "an encoder" if program.encode is None else "a decoder"
    if program.encode is None or program.decode is None:
        _fail(
            f"{source}: operators (-w, -r) need an encoder and a decoder; there is not {missing} "
            "here, nor in a file next to it that has Encode for Decode in its name, or vice versa"
        )


def _inputs(n: int) -> dict[str, np.ndarray]:
    normal = np.random.default_rng(n).normal(0, 1, n).astype(np.float32)
    kinds = {
        "random": normal,
        "tiny": normal * np.float32(1e-40),
        "huge": normal * np.float32(1e37),
        "zero": normal * 0,
    }
    for name, value in (("NaN", np.nan), ("Inf", np.inf)):
        kinds[name] = normal.copy()
        kinds[name][: n // 10 + 1] = value
    return kinds


def _same(one: Compiled, two: Interpreter, x: np.ndarray) -> bool:
    """Return whether two coders agree in every bit, also of states after several steps."""
    states: tuple[dict, dict] = ({}, {})
    for step in range(_STEPS):
        given = np.roll(x, step)  # NaN and Inf are at other places
        payload = one.encode(given, states[0], step)
        if two.encode(given, states[1], step) != payload:
            return False
        if one.decode(payload, x.size).tobytes() != two.decode(payload, x.size).tobytes():
            return False
        if not all(map(_same_but_nan, states[0].values(), states[1].values())):
            return False
        if any(np.isnan(values).any() for values in states[1].values()):
            break  # the next payload may have another NaN, which is not defined
    return True


def _same_but_nan(one: np.ndarray, two: np.ndarray) -> bool:
    """Return whether the bits are the same, where any NaN is as good as another."""
    nan = np.isnan(one) & np.isnan(two)
    return np.array_equal(one.view(np.uint32)[~nan], two.view(np.uint32)[~nan])


def _speed(work: Callable, n: int) -> float:
    """Return GB/s of float32 gradient, the best of five."""
    return 4e-9 * n / min(timeit.repeat(work, number=1))


@checker.command()
def check(
    source: Annotated[Path, typer.Argument(help="the algorithm's source file")],
    param: Annotated[list[str], typer.Option("-p", help="name=value; repeatable")] = (),
    n: Annotated[int, typer.Option("-n", min=1, help="elements of the test gradients")] = 100_003,
) -> None:
    """Run an algorithm compiled and interpreted, compare every bit, and measure it."""
    try:
        # The interpreter runs the text without the passes, so a check also tests the passes.
        written = read_program(files.read(source, "algorithm"), str(source))
        program = compile_file(source)
        params = {}
        for pair in param:
            name, _, value = pair.partition("=")
            try:
                params[name] = float(value) if re.search(r"[.eE]", value) else int(value)
            except ValueError:
                _fail(f"-p takes NAME=NUMBER, not {pair!r}")
        if program.encode is None or program.decode is None:
            _fail(f"{source}: a check needs both an encoder and a decoder")
        build(program)
        oracle, coder = Interpreter(written, **params), Compiled(program, **params)
    except (CompileError, BuildError, ValueError) as error:
        _fail(error)
    table = Table("input", "bits equal", "ratio", "relative error")
    wrong = 0
    for kind, x in _inputs(n).items():
        same = _same(coder, oracle, x)
        wrong += not same
        payload = coder.encode(x)
        decoded = coder.decode(payload, n)
        with np.errstate(all="ignore"):
            wide = x.astype(np.float64)
            error = np.linalg.norm(wide - decoded) / np.linalg.norm(wide)
        ratio = 4 * n / max(len(payload), 1)
        table.add_row(kind, "yes" if same else "NO", f"{ratio:.1f}", f"{error:.3g}")
    refused = 0
    generator = np.random.default_rng(0)
    for _ in range(200):
        try:
            coder.decode(generator.bytes(int(generator.integers(0, 2 * len(payload) + 1))), n)
        except PayloadError:
            refused += 1
    console.print(table)
    large = np.random.default_rng(1).normal(0, 1, 1 << 22).astype(np.float32)
    states: dict[str, np.ndarray] = {}
    payload = coder.encode(large, states)
    encode = _speed(lambda: coder.encode(large, states), large.size)
    decode = _speed(lambda: coder.decode(payload, large.size), large.size)
    typer.echo(f"{refused} of 200 random payloads refused, none crashed")
    typer.echo(f"encode {encode:.2f} GB/s, decode {decode:.2f} GB/s of gradient, one thread")
    if wrong:
        _fail(f"{wrong} inputs differ from the interpreter")


def main(arguments: Optional[Sequence[str]] = None, prog: str = "compll") -> None:  # noqa: UP045
    """Run the `compll` command: `compll check FILE`, or `compll FILE` with flags."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    if arguments[:1] == ["check"]:
        checker(args=arguments[1:], prog_name=f"{prog} check")
    else:
        generator(args=arguments, prog_name=prog)


if __name__ == "__main__":
    main()
