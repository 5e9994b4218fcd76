"""`hipress doctor`: what HiPress finds on this machine, and how to get what is missing.

Its output is what an issue report should contain. It sends nothing and changes nothing.
"""

import ctypes
import json
import os
import platform
import re
import resource
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Annotated, Optional

import typer

SUPPORTED: dict[str, tuple[str, Optional[str]]] = {
    "torch": ("2.6", None),
    "mxnet": ("1.9.1", "1.9.1"),
    "tensorflow": ("2.16", None),
    "keras": ("3.0", None),
}
"""Lowest and highest supported version of each framework, both included; None: no limit known.

A test compares this with the extras in pyproject.toml.
"""
ADAPTED = ("transformers", "accelerate", "lightning", "ray")
"""Packages above the frameworks, whose versions an issue report needs."""
MANY_FILES = 4096
"""Open files that are enough for some hundred workers per host; each connection needs one."""


@dataclass(frozen=True)
class Finding:
    """One line of the report."""

    subject: str
    """Group of the line, such as "network"."""
    name: str
    value: str
    problem: str = ""
    """Description of what does not work. Empty: nothing is wrong."""
    remedy: str = ""
    """Way to solve the problem or to get the missing part. Empty: nothing to do."""


def command(
    as_json: Annotated[bool, typer.Option("--json", help="as JSON")] = False,
) -> None:
    """Report versions, frameworks, kernel features and limits, and what is missing."""
    findings = list(examine())
    if as_json:
        typer.echo(json.dumps([asdict(finding) for finding in findings], indent=2))
    else:
        typer.echo(report(findings))
    if any(finding.problem and finding.subject == "hipress" for finding in findings):
        raise typer.Exit(1)


def examine() -> Iterator[Finding]:
    """Yield the findings of all subjects, in the order of the report."""
    yield from _machine()
    yield from _library()
    yield from _frameworks()
    yield from _gpu()
    yield from _kernel()
    yield from _network()
    yield from _tools()


def report(findings: Iterable[Finding]) -> str:
    """Return the findings as text: a block for each subject, and the problems at the end."""
    findings = list(findings)
    width = max(len(finding.name) for finding in findings)
    lines, subject = [], ""
    for finding in findings:
        if finding.subject != subject:
            subject = finding.subject
            lines.append(subject)
        lines.append(f"  {finding.name:{width}}  {finding.value}")
    notes = [finding for finding in findings if finding.problem or finding.remedy]
    lines.append("problems" if any(finding.problem for finding in notes) else "no problems")
    for finding in notes:
        parts = [part for part in (finding.problem, finding.remedy) if part]
        lines.append(f"  {finding.name}: {'; '.join(parts)}")
    return "\n".join(lines)


def _machine() -> Iterator[Finding]:
    yield Finding("machine", "system", f"{_distribution()}, Linux {platform.release()}")
    libc = " ".join(platform.libc_ver()) or "unknown"
    yield Finding("machine", "C library", libc)
    yield Finding("machine", "processor", f"{_processor()}, {platform.machine()}")
    cores = len(os.sched_getaffinity(0))
    yield Finding("machine", "cores", f"{cores} of {os.cpu_count()} usable by this process")
    python = f"{platform.python_version()} ({sys.executable})"
    yield Finding("machine", "Python", python)


def _library() -> Iterator[Finding]:
    from hipress import __version__

    yield Finding("hipress", "version", __version__)
    try:
        from hipress import _lib

        compiled, used = _lib.instruction_sets()
    except (ImportError, RuntimeError) as error:
        yield Finding("hipress", "native library", "cannot be used", str(error))
        return
    native = f"{_lib.version()} ({_lib.library_path()})"
    other = _lib.version() != __version__
    problem = f"the library is of version {_lib.version()}, the package of {__version__}"
    remedy = "make build, or install the package again"
    yield Finding("hipress", "native library", native, problem * other, remedy * other)
    yield Finding("hipress", "instruction set", f"{used}; codecs for {', '.join(compiled)}")
    yield Finding("hipress", "encryption", _openssl(_lib.lib))
    yield _cuda_codecs()
    variables = sorted(name for name in os.environ if name.startswith(("HIPRESS_", "DMLC_")))
    shown = (f"{name}={_harmless(name)}" for name in variables)
    yield Finding("hipress", "variables", " ".join(shown) or "none set")


def _cuda_codecs() -> Finding:
    from hipress.compll.cuda import CudaError, built_in_library

    try:
        path = built_in_library()
    except CudaError as error:
        return Finding("hipress", "CUDA codecs", "cannot be used", str(error))
    return Finding("hipress", "CUDA codecs", str(path) if path.exists() else "not installed")


def _frameworks() -> Iterator[Finding]:
    for name, (lowest, highest) in SUPPORTED.items():
        found = _installed(name)
        if found is None:
            extra = "tensorflow" if name == "keras" else name
            remedy = f'pip install "hipress[{extra}]"'
            yield Finding("frameworks", name, "not installed", "", f"to use it: {remedy}")
        elif is_supported(found, lowest, highest):
            yield Finding("frameworks", name, found)
        else:
            allowed = lowest if lowest == highest else f"{lowest} or later"
            problem = f"version {found} is not supported; supported: {allowed}"
            yield Finding("frameworks", name, found, problem, f'pip install "{name}>={lowest}"')
    numpy = _installed("numpy") or "not installed"
    problem = remedy = ""
    if _installed("mxnet") and not is_supported("1.23.5", numpy, None):
        # MXNet 1.9.1 reads np.bool at import, which NumPy 1.24 removed.
        problem, remedy = "MXNet 1.9.1 cannot be imported with it", 'pip install "numpy==1.23.5"'
    yield Finding("frameworks", "numpy", numpy, problem, remedy)
    for name in ADAPTED:
        found = _installed(name)
        if found is not None:
            yield Finding("frameworks", name, found)


def _gpu() -> Iterator[Finding]:
    command = shutil.which("nvidia-smi")
    if command is None:
        yield Finding("GPU", "NVIDIA driver", "not installed")
        return
    query = [command, "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
    try:
        done = subprocess.run(query, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        yield Finding("GPU", "NVIDIA driver", "cannot be queried", str(error))
        return
    lines = done.stdout.strip().splitlines() if done.returncode == 0 else []
    for number, line in enumerate(lines):
        yield Finding("GPU", f"GPU {number}", line.strip())
    if not lines:
        yield Finding("GPU", "NVIDIA driver", "finds no GPU")


def _kernel() -> Iterator[Finding]:
    shared = "available" if hasattr(os, "memfd_create") else "not available"
    problem = "" if shared == "available" else "processes of one host exchange data by TCP"
    yield Finding("kernel", "memfd (shared memory)", shared, problem)
    control = Path("/proc/sys/net/ipv4")
    available = _read(control / "tcp_available_congestion_control") or "unknown"
    default = _read(control / "tcp_congestion_control") or "unknown"
    value = f"{default}, available: {available}"
    yield Finding("kernel", "TCP congestion control", value)
    for name in ("rmem_max", "wmem_max"):
        yield Finding("kernel", f"net.core.{name}", _read(Path("/proc/sys/net/core") / name) or "?")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = f"{_limit(soft)} (hard limit {_limit(hard)})"
    few = hard != resource.RLIM_INFINITY and hard < MANY_FILES
    problem = f"a host with more than about {hard // 4} workers needs more" if few else ""
    yield Finding("kernel", "open files", files, problem, "ulimit -n" if few else "")


def _network() -> Iterator[Finding]:
    from hipress import addresses

    for _, name in socket.if_nameindex():
        folder = Path("/sys/class/net") / name
        parts = [f"{_read(folder / 'operstate') or 'unknown'}"]
        try:
            parts.append(addresses.of_interface(name))
        except ValueError:
            parts.append("no IPv4 address")
        speed = _read(folder / "speed")
        if speed and speed.lstrip("-").isdigit() and int(speed) > 0:
            parts.append(f"{speed} Mbit/s")
        parts.append(f"MTU {_read(folder / 'mtu') or '?'}")
        yield Finding("network", name, ", ".join(parts))
    own = addresses.of_this_machine()
    problem = "other machines cannot reach it" if addresses.is_loopback(own) else ""
    remedy = "name an interface with DMLC_INTERFACE for jobs of several machines" if problem else ""
    yield Finding("network", "address", own, problem and f"it is loopback: {problem}", remedy)


def _tools() -> Iterator[Finding]:
    compiler = os.environ.get("CXX") or "g++"
    found = shutil.which(compiler.split()[0]) is not None
    remedy = "" if found else "install g++ to compile codecs of your own at run time"
    yield Finding("tools", "C++ compiler", compiler if found else "not installed", "", remedy)
    for name, purpose in (("ssh", "launch jobs on many hosts"), ("rsync", "copy scripts to hosts")):
        found = shutil.which(name) is not None
        remedy = "" if found else f"install it to {purpose}"
        yield Finding("tools", name, "installed" if found else "not installed", "", remedy)


def is_supported(found: str, lowest: str, highest: Optional[str]) -> bool:
    """Return whether a version is within two others, both included. Suffixes do not count."""
    version = _numbers(found)
    return _numbers(lowest) <= version and (highest is None or version <= _numbers(highest))


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", re.split(r"[a-z+]", version)[0])))


def _installed(name: str) -> Optional[str]:
    # TensorFlow and MXNet come as packages of several names.
    for distribution in (name, f"{name}-cpu", f"{name}-cu117", f"py{name}"):
        try:
            return metadata.version(distribution)
        except metadata.PackageNotFoundError:
            continue
    return None


def _openssl(library: ctypes.CDLL) -> str:
    """Return the version of the OpenSSL that the library's connections use."""
    try:
        function = library.OpenSSL_version  # of the library that libhipress.so is linked with
    except AttributeError:
        return "OpenSSL, linked into the library"
    function.restype, function.argtypes = ctypes.c_char_p, [ctypes.c_int]
    return str(function(0).decode("ascii", "replace"))


def _harmless(name: str) -> str:
    """Return the value of an environment variable, unless it is a secret."""
    return "(set)" if "SECRET" in name else repr(os.environ[name])


def _distribution() -> str:
    text = _read(Path("/etc/os-release")) or ""
    found = re.search(r'^PRETTY_NAME="?([^"\n]*)', text, re.MULTILINE)
    return found.group(1) if found else "unknown distribution"


def _processor() -> str:
    text = _read(Path("/proc/cpuinfo")) or ""
    found = re.search(r"^model name\s*:\s*(.*)$", text, re.MULTILINE)
    return found.group(1) if found else "unknown"


def _limit(value: int) -> str:
    return "unlimited" if value == resource.RLIM_INFINITY else str(value)


def _read(path: Path) -> Optional[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None
