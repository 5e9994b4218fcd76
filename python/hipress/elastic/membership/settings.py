"""Settings that the launcher passes to a process of an elastic job in its environment."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass

from hipress.base import addresses
from hipress.elastic.membership.membership_errors import ElasticError
from hipress.elastic.membership.tls import MODES
from hipress.elastic.membership.view import NEVER_AGAIN, Ended, first_incarnation, uncounted

SECRET_CHARACTERS = 16
HEARTBEAT_MS = 12000
_MOST_SECONDS = 86400
_RESTARTS = 1 << 17  # most restarts of a slot
_TORCHRUN_BITS = 12  # bits for torchrun's own restarts within each restart of a slot


@dataclass(frozen=True)
class AgentSettings:
    """Settings of one process's agent. Fields without a description are as in ``Agent``.

    Args:
        restart: as Agent's
        heartbeat_timeout: seconds
        ended_file: file in which a supervisor reports which slots' processes have ended
    """

    agents: tuple[tuple[str, int], ...]
    slot: int
    secret: bytes
    min_members: int
    restart: int
    heartbeat_timeout: float
    tls_mode: str
    ended_file: str = ""


def from_environment(environ: Mapping[str, str] = os.environ) -> AgentSettings:
    """Read the variables HIPRESS_ELASTIC_AGENTS and so on.

    Raises:
        ElasticError: a variable is missing or wrong; the message gives its name and valid values
    """
    agents = parse_agents(_required(environ, "HIPRESS_ELASTIC_AGENTS"))
    slot = _number(environ, "HIPRESS_ELASTIC_SLOT", None, 0, len(agents) - 1)
    secret = _required(environ, "HIPRESS_SECRET")
    if len(secret) < SECRET_CHARACTERS:
        raise ElasticError(
            f"HIPRESS_SECRET has {len(secret)} characters; elastic training needs "
            f"{SECRET_CHARACTERS} or more (openssl rand -hex 32 makes some)"
        )
    return AgentSettings(
        agents,
        slot,
        secret.encode(),
        _number(environ, "HIPRESS_ELASTIC_MIN_WORKERS", 1, 1, len(agents)),
        _restart(environ),
        _number(environ, "HIPRESS_HEARTBEAT_TIMEOUT_MS", HEARTBEAT_MS, 100, 1 << 30) / 1000,
        _tls_mode(environ),
        environ.get("HIPRESS_ELASTIC_ENDED", ""),
    )


def timeout(default: int, environ: Mapping[str, str] = os.environ) -> int:
    """Return HIPRESS_TIMEOUT: seconds to wait for other processes if a script sets no timeout.

    Raises:
        ElasticError: it is no such number
    """
    return _number(environ, "HIPRESS_TIMEOUT", default, 1, _MOST_SECONDS)


def _tls_mode(environ: Mapping[str, str]) -> str:
    mode = environ.get("HIPRESS_TLS") or "auto"
    if mode not in MODES:
        raise ElasticError(f"HIPRESS_TLS is '{mode}', but must be auto, on or off")
    return mode


def _restart(environ: Mapping[str, str]) -> int:
    """Return a number that is higher for each later process of a slot."""
    if not environ.get("HIPRESS_ELASTIC_RESTART"):
        return uncounted(time.time())
    count = _number(environ, "HIPRESS_ELASTIC_RESTART", None, 0, _RESTARTS)
    last = (1 << _TORCHRUN_BITS) - 1
    again = _number(environ, "TORCHELASTIC_RESTART_COUNT", 0, 0, last)
    return (count << _TORCHRUN_BITS) + again


def parse_ended(text: str) -> dict[int, Ended]:
    """Parse the text of the file HIPRESS_ELASTIC_ENDED: which processes have ended.

    Returns:
        The report of each slot.

    Raises:
        ValueError: the text is malformed.
    """
    reports = json.loads(text)
    if not isinstance(reports, dict):
        raise ValueError("no object")
    ended = {}
    for slot, report in reports.items():
        if not isinstance(report, list) or len(report) != 3:
            raise ValueError(f"slot {slot} has no report")
        restarts, boot, namespace = report
        if not all(isinstance(text, str) and text for text in (boot, namespace)):
            raise ValueError(f"slot {slot}'s process table is not named")
        if restarts is not None and (type(restarts) is not int or restarts < 0):
            raise ValueError(f"slot {slot} was not restarted {restarts!r} times")
        never = restarts is None
        below = NEVER_AGAIN if never else first_incarnation(restarts << _TORCHRUN_BITS)
        ended[int(slot)] = Ended(below, boot, namespace)
    return ended


def parse_agents(text: str) -> tuple[tuple[str, int], ...]:
    """Parse ``host:port,host:port``. IPv6 addresses are in brackets.

    Raises:
        ElasticError: naming the entry
    """
    agents = []
    for entry in text.split(","):
        try:
            host, port = addresses.split(entry.strip())
        except ValueError as error:
            raise ElasticError(
                f"HIPRESS_ELASTIC_AGENTS has '{entry}', where each slot's agent address belongs: "
                f"host:port,host:port,... (an IPv6 address in brackets)"
            ) from error
        if addresses.is_link_local(host):
            raise ElasticError(
                f"HIPRESS_ELASTIC_AGENTS has '{entry}': {host} is {addresses.LINK_LOCAL}"
            )
        agents.append((host, port))
    if len(set(agents)) < len(agents):
        raise ElasticError(f"HIPRESS_ELASTIC_AGENTS has one address twice: '{text}'")
    return tuple(agents)


def _required(environ: Mapping[str, str], name: str) -> str:
    value = environ.get(name, "")
    if not value:
        raise ElasticError(
            f"environment variable {name} is not set: start the job with 'hipress launch "
            "--elastic -n WORKERS python SCRIPT' (or with torchrun, which restarts all together)"
        )
    return value


def _number(
    environ: Mapping[str, str], name: str, default: int | None, minimum: int, maximum: int
) -> int:
    text = environ.get(name, "")
    if not text and default is not None:
        return default
    text = text or _required(environ, name)
    if not (text.isascii() and text.isdigit() and minimum <= int(text) <= maximum):
        raise ElasticError(f"{name} is '{text}'; it takes a number from {minimum} to {maximum}")
    return int(text)
