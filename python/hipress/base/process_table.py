"""Processes of this host, as its kernel shows them in /proc.

Needs only the standard library of Python 3.6: the launcher sends this text to other hosts together
with its supervisor.
"""

import os


def boot_id():
    """Return a text that changes whenever this host restarts; empty if it is not known."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read().strip()
    except OSError:
        return ""


def namespace():
    """Return the namespaces of process ids and start times; empty if they are not known."""
    try:
        if os.readlink("/proc/self") != str(os.getpid()):
            return ""  # /proc belongs to another namespace
        spaces = [f"/proc/self/ns/{kind}" for kind in ("pid", "time")]  # older kernels lack "time"
        return " ".join(os.readlink(space) for space in spaces if os.path.exists(space))
    except OSError:
        return ""


def machine():
    """Return a text that stays the same when this host restarts; empty if there is none."""
    for path in ("/etc/machine-id", "/var/lib/dbus/machine-id"):
        try:
            with open(path) as file:
                text = file.read().strip()
        except (OSError, ValueError):
            continue
        if text:
            return f"{text} {os.uname()[1]}"  # cloned machines may have the same id
    return ""


def read_stat(pid):
    """Return the fields of /proc/PID/stat after the process's name; None if it cannot be read."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()  # the name may contain anything
    except OSError:
        return None


def has_ended(fields):
    """Return whether all threads of a process have ended, given its fields of ``read_stat``."""
    # The first thread may have ended before the process's other threads.
    return fields[0] in (b"Z", b"X") and int(fields[17]) <= 1


def start_time(pid):
    """Return when a process was started, in ticks since boot.

    0 if it has ended and its parent has not waited for it, None if the time cannot be read.
    """
    fields = read_stat(pid)
    if fields is None:
        return None
    return 0 if has_ended(fields) else int(fields[19])


def parents():
    """Return the parent's process id of each running process."""
    table = {}
    for entry in os.listdir("/proc"):
        fields = read_stat(entry) if entry.isdigit() else None
        if fields and not has_ended(fields):
            table[int(entry)] = int(fields[1])
    return table


def descendants():
    """Return the ids of all running processes that descend from this one."""
    table = parents()
    found, level = [], {os.getpid()}
    while level:
        level = {pid for pid, parent in table.items() if parent in level}
        found.extend(level)
    return found
