"""Contents of a measured profile's file, for tests that change some of it."""

from hipress.planning import profiles

CURVE = {"w": 1e-9, "b": 1e-5, "o": 1e-5}
CODEC = {
    "bytes_per_element": 1.0,
    "fixed_bytes": 64,
    "encode": CURVE,
    "decode": CURVE,
    "merge": CURVE,
    "add": CURVE,
}
MEASURED = {
    "format": profiles.FORMAT,
    "version": profiles.VERSION,
    "name": "here",
    "nodes": 2,
    "threads": 1,
    "task": 1e-6,
    "shared_host": True,
    "network": {"send": CURVE, "message": 1e-6, "handling": 1e-6, "part": 1e-6},
    "codecs": {"none": CODEC, "tbq": CODEC},
}
