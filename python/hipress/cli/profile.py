"""`hipress profile`: measurement of a cluster's codecs and network by a job."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from hipress.cli import fail

_OUTPUT = Path("profile.json")
_TIMEOUT = 900  # seconds of the whole job, if this command starts it


def command(
    type: Annotated[
        list[str],
        Option("--type", help="compression type, as NAME or NAME:param=value,...; repeatable"),
    ] = ("tbq",),
    workers: Annotated[
        int, Option("--workers", min=2, help="processes, if this is not run in a job")
    ] = 2,
    largest: Annotated[
        int, Option("--largest", min=1024, help="elements of the largest gradient")
    ] = 1 << 22,
    output: Annotated[Path, Option("--output", help="the profile's file")] = _OUTPUT,
    keep_timeline: Annotated[
        bool, Option("--keep-timeline", help="leave the recorded timeline beside it")
    ] = False,
) -> None:
    """Measure this cluster's codecs and network, and save what a planner needs.

    By itself it starts a few processes on this host. To measure a cluster, run it as a job without
    servers: tools/launch.py -n 4 -s 0 -H hosts hipress profile --output profile.json
    """
    pairs = [_type(text) for text in type]
    types = dict(pairs)
    if len(types) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        fail(f"--type {twice} is there twice, but a profile has one curve of each: make two")
    if "DMLC_ROLE" not in os.environ:
        return _start(types, workers, output)
    # This process runs only this command. The library reads the variable when it is loaded.
    trace = output.with_suffix(".timeline.json").resolve()
    os.environ["HIPRESS_TIMELINE"] = str(trace)
    os.environ["HIPRESS_TOPOLOGY"] = "colocated"
    from hipress.cli import profile_job
    from hipress.runtime.node import HipressError

    sizes = [size for size in profile_job.SIZES if size <= largest]
    scheduler = os.environ["DMLC_ROLE"] == "scheduler"
    try:
        profile_job.run(types, sizes)
        if scheduler:
            _finish(trace, types, output)
    except (HipressError, ValueError, OSError) as error:
        fail(error)
    finally:
        if scheduler and not keep_timeline:
            trace.unlink(missing_ok=True)


def _type(text: str) -> tuple[str, dict[str, str]]:
    name, _, rest = text.partition(":")
    params = {}
    for pair in filter(None, rest.split(",")):
        key, equals, value = pair.partition("=")
        if not equals:
            fail(f"--type {text}: {pair!r} is not param=value")
        if key in ("type", "threads"):  # Compressor's own parameters
            fail(f"--type {text}: {name} has no parameter {key}")
        params[key] = value
    if name in ("", "none"):
        fail(f"--type {text}: none is measured in any case; name a compression type")
    return name, params


def _start(types: dict[str, dict[str, str]], workers: int, output: Path) -> None:
    """Run this command as a job on this host."""
    from hipress import Compressor
    from hipress.launch import supervisor

    for name, params in types.items():
        try:
            Compressor(name, **params)
        except ValueError as error:
            fail(error)
    if not output.parent.is_dir():
        fail(f"there is no directory {output.parent}")
    typer.echo(f"measuring with {workers} processes here, some 20 seconds or more", err=True)
    launch = [sys.executable, "-m", "hipress.launch", "-n", str(workers), "-s", "0"]
    launch += ["--launcher", "local", "--timeout", str(_TIMEOUT), "--"]
    with tempfile.TemporaryFile("w+") as log:
        done = subprocess.run(
            [*launch, sys.executable, "-m", "hipress", *sys.argv[1:]],
            stdout=log,
            stderr=subprocess.STDOUT,
            check=False,
            preexec_fn=lambda: supervisor.prctl(supervisor.PR_SET_PDEATHSIG, signal.SIGTERM),
        )
        log.seek(0)
        lines = log.read().splitlines()
    for line in lines:
        prefix = "[scheduler] "
        if done.returncode == 0 and line.startswith(prefix):
            typer.echo(line[len(prefix) :])
        elif done.returncode:
            typer.echo(line, err=True)
    if done.returncode:
        fail(f"the profiling job failed with status {done.returncode}")


def _finish(trace: Path, types: dict[str, dict[str, str]], output: Path) -> None:
    from hipress.base import files
    from hipress.planning import fitting, profiles
    from hipress.simulator import setting

    profile = fitting.profile(trace, types)
    files.write(output, "profile", json.dumps(profile, indent=1) + "\n")
    loaded = profiles.load(output)
    network = profile["network"]["send"]
    typer.echo(
        f"{output}: {profile['nodes']} workers{', all on one host' * profile['shared_host']}; "
        f"{1 / max(network['w'], 1e-13) * 8 / 1e9:.3g} Gbit/s, "
        f"{1e6 * max(network['b'], network['o']):.0f} us a message, "
        f"{1e6 * profile['network']['message']:.0f} us between messages, "
        f"{1e6 * profile['network']['part']:.1f} us a part of a shared message, "
        f"{1e6 * profile['task']:.0f} us between tasks"
    )
    for name, row in profile["codecs"].items():
        speeds = ", ".join(
            f"{op} {4e-9 / row[op]['w']:.3g} GB/s" if row[op]["w"] > 0 else f"{op} free"
            for op in ("encode", "decode", "add", "merge")
        )
        typer.echo(f"  {name}: {row['bytes_per_element'] / 4:.4f} of the size; {speeds}")
    for name, check in profile["check"].items():
        guess = setting.predict(loaded, name, check["elements"])
        typer.echo(
            f"  check, {4 * check['elements'] / 2**20:.3g} MiB on all at once, {name}: "
            f"measured {1e3 * check['seconds']:.2f} ms, predicted {1e3 * guess:.2f} ms"
        )
    for name in loaded.poor:
        typer.echo(f"  note: the curve of {name} fits its measurements badly")
