"""The entropy stage behind a codec: the same bits in fewer bytes, in every codec and topology."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

import hipress
from harness.cluster import run_cluster, worker_outputs
from scripts import SCRIPTS

BLOCK = 128 << 10
CODERS = 32
CODECS = {
    "maxmin": {"bits": 4},
    "maxminef": {"bits": 8},
    "terngrad": {},
    "tbq": {"threshold": 1.0},
    "2bit": {"threshold": 1.5},
    "1bit": {},
    "onebit": {},
    "ternary": {},
    "natural": {},
    "fp16": {},
    "bf16": {},
    "stc": {},
    "topk": {"ratio": 0.1},
    "randomk": {"ratio": 0.1},
    "graddrop": {"drop": 0.9},
    "dgc": {"ratio": 0.1},
    "sparseloco": {"ratio": 0.1},
    "dct": {"ratio": 0.1},
    "lossless": {},
}
SERVER = (sys.executable, "-c", "from hipress.runtime.node import Node; Node().serve()")
WORKER = SCRIPTS / "entropy.py"


def unpacked(payload: bytes) -> bytes:
    """Return the codec's payload before the entropy stage, by the definitions in entropy.cc and
    rans.h."""
    if payload[0] == 0:
        return payload[1:]
    left = int.from_bytes(payload[1:5], "little")
    at, out = 5, bytearray()
    while left:
        n, tables = min(left, BLOCK), payload[at]
        left, at = left - n, at + 1
        if tables == 0:
            out += payload[at : at + n]
            at += n
            continue
        lookup = []
        for _ in range(tables):
            present = payload[at : at + 32]
            at += 32
            lookup.append([])
            for byte in range(256):
                if present[byte // 8] >> byte % 8 & 1:
                    less, at = payload[at], at + 1
                    if less >= 128:
                        less, at = (less & 127) + 128 * payload[at], at + 1
                    lookup[-1] += [(byte, k, less + 1) for k in range(less + 1)]
            assert len(lookup[-1]) == 4096
        x = np.frombuffer(payload, "<u4", CODERS, at).tolist()
        at += 4 * CODERS
        for i in range(n):
            byte, k, f = lookup[i % tables][x[i % CODERS] % 4096]
            x[i % CODERS] = f * (x[i % CODERS] >> 12) + k
            if x[i % CODERS] < 1 << 15:
                x[i % CODERS] = x[i % CODERS] << 16 | int.from_bytes(payload[at : at + 2], "little")
                at += 2
            out.append(byte)
        assert x == [1 << 15] * CODERS
    assert at == len(payload)
    return bytes(out)


@pytest.mark.parametrize("n", [0, 1, 100, 20_000, 150_000])
@pytest.mark.parametrize("type", CODECS)
def test_a_payload_is_the_codecs_own_behind_an_entropy_coder(type, n):
    plain = hipress.Compressor(type, **CODECS[type])
    coded = hipress.Compressor(type, entropy=True, **CODECS[type])
    assert coded.type == type and coded.config == plain.config + " entropy=1"
    assert coded.max_bytes(n) == plain.max_bytes(n) + 1
    rng = np.random.default_rng(n)
    for _ in range(2):
        x = rng.standard_t(4, n).astype(np.float32)
        wanted, payload = plain.encode(x), coded.encode(x)
        assert len(payload) <= len(wanted) + 1
        assert unpacked(payload) == wanted
        assert coded.decode(payload, n).tobytes() == plain.decode(wanted, n).tobytes()
        total = coded.decode_sum([payload, payload], n)
        assert total.tobytes() == plain.decode_sum([wanted, wanted], n).tobytes()
    for name, state in plain.state_dict()["states"].items():
        assert coded.state_dict()["states"][name].tobytes() == state.tobytes()
    coded.load_state_dict(plain.state_dict())
    plain.load_state_dict(coded.state_dict())


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize(
    ("topology", "workers", "servers"),
    [
        ("ps", 3, 2),
        ("colocated", 3, 0),
        ("ring", 3, 0),
        ("tree", 3, 0),
        ("butterfly", 4, 0),
        ("star", 3, 0),
        ("hierarchical", 4, 0),
    ],
)
def test_results_have_the_bits_of_those_without(topology, workers, servers):
    options = {"server_command": SERVER} if servers else {}
    found = {}
    for entropy in ("0", "1"):
        env = {
            "HIPRESS_TOPOLOGY": topology,
            "HIPRESS_DEVICES_PER_HOST": "2",
            "ENTROPY": entropy,
            "HIPRESS_PARTITION_ELEMENTS": "16384",
        }
        results = run_cluster(
            WORKER, workers=workers, servers=servers, env=env, args=[json.dumps(CODECS)], **options
        )
        lines = [output.split() for output in worker_outputs(results)]
        words = [line[line.index("found") + 1 :] for line in lines]
        found[entropy] = [line[: len(CODECS)] for line in words]
        sent = [[*map(int, line[len(CODECS) :])] for line in words]
        found[entropy, "sent"] = np.sum(sent, axis=0)
    assert found["0"] == found["1"]
    fewer = dict(zip(CODECS, found["1", "sent"] / found["0", "sent"]))
    # Announcements of codecs are longer, and heartbeats occur occasionally.
    assert (found["1", "sent"] < 1.1 * found["0", "sent"] + 4096).all(), fewer
    least = 0.98 if topology == "hierarchical" else 0.9  # sums within a host go as they are
    assert all(fewer[type] < least for type in ("maxmin", "tbq", "natural", "bf16")), fewer


def test_what_is_wrong_is_one_sentence():
    for wrong, sentence in [
        ({"type": "tbq", "entropy": "much"}, "entropy must be True or False, not 'much'"),
        ({"type": "none", "entropy": True}, "type none has no entropy stage: type lossless"),
        ({"type": "powersgd", "entropy": True}, "powersgd has no entropy stage"),
        ({"type": "auto", "entropy": True}, "leave entropy out, or name the type"),
        ({"type": "tbq", "entropy": 1, "encode_on": "device"}, "entropy is for payloads in host"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            hipress.CompressionConfig.of(wrong)
    with pytest.raises(ValueError, match='entropy of compression type tbq must be 0 or 1, not "2"'):
        hipress.Compressor("tbq", entropy=2)
    coded = hipress.Compressor("natural", entropy=True)
    payload = coded.encode(np.random.default_rng(0).normal(size=5000).astype(np.float32))
    for damaged in (payload[:-1], payload + b"\0", b"\x02" + payload[1:], payload[:5], b""):
        with pytest.raises(ValueError, match="a natural payload of 5000 elements"):
            coded.decode(damaged, 5000)


def test_one_field_says_it_to_all_front_ends():
    config = hipress.CompressionConfig("maxmin", {"bits": 4}, entropy=True)
    for given in ({"entropy": True}, {"entropy": "True"}, {"entropy": 1}):
        assert hipress.CompressionConfig.of({"type": "maxmin", "bits": 4, **given}) == config
    assert hipress.CompressionConfig.of("maxmin", params={"bits": 4, "entropy": True}) == config
    assert config.params == {"bits": 4} and config.codec_params == {"bits": 4, "entropy": 1}
    assert config.store_params() == {"type": "maxmin", "bits": 4, "entropy": 1, "pull": "auto"}
    assert str(config) == "type=maxmin, bits=4, entropy=True"
