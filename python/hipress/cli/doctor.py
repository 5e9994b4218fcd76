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
from typing import Optional

import typer

from hipress.cli import options

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
KERNEL_SETTINGS = (
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "net.core.rmem_max",
    "net.core.wmem_max",
)
"""Settings that decide how fast one connection can be, by sysctl's names."""
ALLOW_BBR = 'modprobe tcp_bbr && sysctl -w net.ipv4.tcp_allowed_congestion_control="reno cubic bbr"'
FAMILIES = (socket.AF_INET, socket.AF_INET6)
IFF_UP = 1
"""Flag of a network interface that is in use (Linux, ``if.h``)."""


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
    """Solution of the problem; without a problem, how to get an optional part."""


def command(as_json: options.AsJson = False) -> None:
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
    """Return the findings as text: a block for each subject, then problems and optional parts."""
    findings = list(findings)
    width = max(len(finding.name) for finding in findings)
    lines, subject = [], ""
    for finding in findings:
        if finding.subject != subject:
            subject = finding.subject
            lines.append(subject)
        lines.append(f"  {finding.name:{width}}  {finding.value}")
    problems = [finding for finding in findings if finding.problem]
    lines.append("problems" if problems else "no problems")
    for finding in problems:
        lines.append(f"  {finding.name:{width}}  {finding.problem}")
        if finding.remedy:
            lines.append(f"  {'':{width}}  -> {finding.remedy}")
    optional = [finding for finding in findings if finding.remedy and not finding.problem]
    lines += ["optional parts"] * bool(optional)
    lines += [f"  {finding.name:{width}}  {finding.remedy}" for finding in optional]
    home = str(Path.home())  # contains the user's name
    return "\n".join(lines).replace(f"{home}/", "~/") if home != "/" else "\n".join(lines)


def _machine() -> Iterator[Finding]:
    release = _read(Path("/etc/os-release")) or ""
    name = re.search(r'^PRETTY_NAME="?([^"\n]*)', release, re.MULTILINE)
    system = name[1] if name else "unknown distribution"
    yield Finding("machine", "system", f"{system}, Linux {platform.release()}")
    yield Finding("machine", "C library", " ".join(platform.libc_ver()) or "unknown")
    name = re.search(r"^model name\s*:\s*(.*)$", _read(Path("/proc/cpuinfo")) or "", re.MULTILINE)
    processor = name[1] if name else "unknown"
    yield Finding("machine", "processor", f"{processor}, {platform.machine()}")
    cores = len(os.sched_getaffinity(0))
    yield Finding("machine", "cores", f"{cores} of {os.cpu_count()} usable by this process")
    yield Finding("machine", "Python", f"{platform.python_version()} ({sys.executable})")


def _library() -> Iterator[Finding]:
    from hipress import __version__

    yield Finding("hipress", "version", __version__)
    try:
        from hipress.native import library

        compiled, used = library.instruction_sets()
    except (ImportError, RuntimeError) as error:
        yield Finding("hipress", "native library", "cannot be used", str(error))
        return
    native = f"{library.version()} ({library.library_path()})"
    other = library.version() != __version__
    problem = f"the library is of version {library.version()}, the package of {__version__}"
    remedy = "make build, or install the package again"
    yield Finding("hipress", "native library", native, problem * other, remedy * other)
    yield Finding("hipress", "instruction set", f"{used}; codecs for {', '.join(compiled)}")
    yield Finding("hipress", "encryption", _openssl(library.lib))
    yield _cuda_codecs()
    variables = sorted(name for name in os.environ if name.startswith(("HIPRESS_", "DMLC_")))
    values = {name: "(set)" if "SECRET" in name else repr(os.environ[name]) for name in variables}
    shown = (f"{name}={value}" for name, value in values.items())
    yield Finding("hipress", "variables", " ".join(shown) or "none set")


def _cuda_codecs() -> Finding:
    from hipress.compression.compiler.cuda import CudaError, built_in_library

    try:
        path = built_in_library()
    except CudaError as error:
        return Finding("hipress", "CUDA codecs", "cannot be used", str(error))
    if path.exists():
        return Finding("hipress", "CUDA codecs", str(path))
    return Finding("hipress", "CUDA codecs", "not installed", "", "pip install hipress-cuda12")


def _frameworks() -> Iterator[Finding]:
    for name, (lowest, highest) in SUPPORTED.items():
        found = _installed(name)
        remedy = f'pip install "hipress[{"tensorflow" if name == "keras" else name}]"'
        if name == "mxnet" and sys.version_info >= (3, 12):
            remedy += " with Python 3.11 or earlier"  # MXNet has no wheels for later ones
        if found is None:
            yield Finding("frameworks", name, "not installed", "", remedy)
        elif is_supported(found, lowest, highest):
            yield Finding("frameworks", name, f"{found}, supported")
        else:
            allowed = lowest if lowest == highest else f"{lowest} or later"
            problem = f"version {found} is not supported; supported: {allowed}"
            yield Finding("frameworks", name, f"{found}, not supported", problem, remedy)
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
    failed = ""
    try:
        os.close(os.memfd_create("hipress-doctor", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING))
    except (AttributeError, OSError) as error:
        failed = str(error)
    problem = f"processes of one host exchange data by TCP ({failed})" if failed else ""
    yield Finding("kernel", "memfd (shared memory)", "fails" if failed else "works", problem)
    failed = ""
    try:
        with socket.socket() as probe:
            probe.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"bbr")
    except OSError as error:
        failed = error.strerror
    remedy = f"for lossy long links, as root: {ALLOW_BBR}" if failed else ""
    yield Finding("kernel", "BBR", f"not allowed ({failed})" if failed else "allowed", "", remedy)
    settings = Path("/proc/sys")
    for name in KERNEL_SETTINGS:
        value = _read(settings / name.replace(".", "/")) or "unknown"
        yield Finding("kernel", name, " ".join(value.split()))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = {resource.RLIM_INFINITY: "unlimited"}
    files = f"{unlimited.get(soft, soft)} (hard limit {unlimited.get(hard, hard)})"
    few = hard not in unlimited and hard < MANY_FILES
    problem = f"a host with more than about {hard // 4} workers needs more" if few else ""
    remedy = f"raise the hard limit, for example to {MANY_FILES}: see ulimit -H -n" if few else ""
    yield Finding("kernel", "open files", files, problem, remedy)


def _network() -> Iterator[Finding]:
    from hipress.base import addresses

    for _, name in socket.if_nameindex():
        folder = Path("/sys/class/net") / name
        flags = int(_read(folder / "flags") or "0", 16)
        parts = ["up" if flags & IFF_UP else "down"]
        try:
            found = {addresses.of_interface(name, family): None for family in FAMILIES}
            parts += found
        except ValueError:
            parts.append("no address")
        speed = _read(folder / "speed")
        if speed and speed.lstrip("-").isdigit() and int(speed) > 0:
            parts.append(f"{speed} Mbit/s")
        parts.append(f"MTU {_read(folder / 'mtu') or '?'}")
        yield Finding("network", name, ", ".join(parts))
    own = addresses.of_this_machine()
    problem = remedy = ""
    if addresses.is_loopback(own):
        problem = "it is loopback: other machines cannot reach it"
        remedy = "connect an interface for jobs of several machines"
    yield Finding("network", "address of this host", own, problem, remedy)


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


def _read(path: Path) -> Optional[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None
