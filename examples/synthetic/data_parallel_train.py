#!/usr/bin/env python3
"""Trains a network of Gluon's model zoo on synthetic images, data-parallel, with HiPress.

    python data_parallel_train.py --numprocess 4 --servers node1:1,node2:1,node3:1,node4:1 \\
        --model vgg19 --topo PS --comp-alg tbq --comp-threshold 262144 --interface eth0

Started by hand it runs itself under the launcher, one worker per process; on several hosts by ssh.
Without --servers, or with this host's name only, all processes are here. Each worker times its
steps; worker 0 prints images a second, of all workers together.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ZOO = {
    "resnet50": ("resnet50_v1", 224),
    "resnet152": ("resnet152_v1", 224),
    "vgg19": ("vgg19", 224),
    "inceptionv3": ("inceptionv3", 299),
    "alexnet": ("alexnet", 224),
}
"""Zoo models: name here, name in Gluon's zoo, pixels of a side. The zoo has no Inception v4."""
MODELS = ["lenet", *ZOO]
LOCAL = {"localhost", "127.0.0.1", "[::1]"}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--numprocess", type=_positive, default=2, help="workers (2)")
    add("--servers", default="", help="hosts and processes on each: node1:1,node2:1")
    add("--model", default="lenet", choices=MODELS)
    add("--topo", default="PS", help="PS, Ring, or another topology of the launcher")
    add("--comp-alg", default="none", help="compression type: tbq, onebit, terngrad, dgc, ...")
    add(
        "--comp-param",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a parameter of the compression, such as threshold=0.01; repeatable",
    )
    add(
        "--comp-threshold",
        type=_positive,
        default=262144,
        help="gradients of fewer floats go uncompressed (262144)",
    )
    add(
        "--comprplan",
        default="",
        metavar="FILE",
        help="SeCoPaPlan.txt: which gradients to compress, how to cut; or auto",
    )
    add("--interface", default="", help="network interface")
    add("--horovodrun", action="store_true", help="accepted; HiPress's own launcher is used")
    add("--batch-size", type=_positive, default=32, help="images per worker and step (32)")
    add("--numexamples", type=_positive, default=320, help="images per worker in all (320)")
    add(
        "--strongscaling",
        action="store_true",
        help="--batch-size and --numexamples are of all workers together",
    )
    add(
        "--profiler",
        nargs="?",
        const="timeline.json",
        default="",
        metavar="FILE",
        help="record a timeline; draw it with `hipress report FILE`",
    )
    add("--lr", type=float, default=0.01)
    add("--image-size", type=_positive, help="pixels of a side, instead of the model's own")
    return parser.parse_args()


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number from 1 up")
    return int(text)


def launch(args: argparse.Namespace) -> int:
    """Run this script as a job and return the launcher's status."""
    form = re.compile(r"(\[.+\]|[^:]+)(?::(\d*))?")  # an IPv6 address is in brackets
    pairs = [form.fullmatch(pair) for pair in args.servers.split(",") if pair]
    if not all(pairs):
        sys.exit(f"--servers takes host:processes,..., not {args.servers!r}")
    hosts = [(match[1], int(match[2] or 1)) for match in pairs]
    slots = sum(count for _, count in hosts)
    if hosts and slots != args.numprocess:
        sys.exit(f"--servers has room for {slots} processes, but --numprocess is {args.numprocess}")
    command = [sys.executable, str(ROOT / "tools" / "launch.py"), "-n", str(args.numprocess)]
    command += ["--hipress", "--topo", args.topo.lower()]
    if args.interface:
        command += ["--interface", args.interface]
    if args.comprplan:
        plan = args.comprplan
        command += ["--comprplan", plan if plan == "auto" else os.path.abspath(plan)]
    if args.profiler:
        command += ["--env", f"HIPRESS_TIMELINE={os.path.abspath(args.profiler)}"]
    if args.horovodrun:
        print("--horovodrun: HiPress starts its processes itself")
    with tempfile.NamedTemporaryFile("w", prefix="hipress-hosts-") as file:
        if all(name in LOCAL | {socket.gethostname()} for name, _ in hosts):
            command += ["--launcher", "local"]
        else:
            file.writelines(f"{name} slots={count}\n" for name, count in hosts)
            file.flush()
            command += ["--hostfile", file.name]
        return subprocess.call([*command, "--", sys.executable, __file__, *sys.argv[1:]])


def build(args: argparse.Namespace):
    """Return the network and its images' shape."""
    from mxnet import gluon

    if args.model != "lenet":
        name, side = ZOO[args.model]
        side = args.image_size or side
        return getattr(gluon.model_zoo.vision, name)(classes=1000), (3, side, side), 1000
    net = gluon.nn.HybridSequential()
    for channels in (20, 50):
        net.add(gluon.nn.Conv2D(channels, 5, activation="relu"), gluon.nn.MaxPool2D(2, 2))
    net.add(gluon.nn.Dense(500, activation="relu"), gluon.nn.Dense(10))
    side = args.image_size or 28
    return net, (1, side, side), 10


def compression(args: argparse.Namespace) -> dict[str, object]:
    """Return the Trainer's compression_params."""
    params: dict[str, object] = {"type": args.comp_alg}
    for pair in args.comp_param:
        name, equals, value = pair.partition("=")
        if not equals:
            sys.exit(f"--comp-param takes name=value, not {pair!r}")
        params[name] = value
    # A plan decides which gradients are worth compressing.
    params["min_size"] = 0 if args.comprplan else args.comp_threshold
    return params


def train(args: argparse.Namespace) -> None:
    """Train as a worker."""
    import mxnet as mx
    from mxnet import autograd, gluon

    kv = mx.kv.create("dist_sync")
    share = kv.num_workers if args.strongscaling else 1
    batch = max(1, args.batch_size // share)
    steps = max(2, args.numexamples // share // batch)
    mx.random.seed(7)
    net, shape, classes = build(args)
    net.initialize(mx.init.Xavier())
    net.hybridize()
    mx.random.seed(100 + kv.rank)
    images = mx.nd.random.uniform(shape=(batch, *shape))
    labels = mx.nd.floor(mx.nd.random.uniform(0, classes, shape=(batch,)))
    params = compression(args)
    trainer = gluon.Trainer(
        net.collect_params(),
        "sgd",
        {"learning_rate": args.lr},
        kvstore=kv,
        compression_params=params if params["type"] != "none" else None,
        update_on_kvstore=False,
    )
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
    seconds = []
    for _ in range(steps):
        start = time.perf_counter()
        with autograd.record():
            loss = loss_of(net(images), labels)
        loss.backward()
        trainer.step(batch * kv.num_workers)
        mx.nd.waitall()
        seconds.append(time.perf_counter() - start)
    if kv.rank == 0:
        # The first step compiles and initializes.
        step = statistics.median(seconds[1:])
        result = {
            "model": args.model,
            "workers": kv.num_workers,
            "topology": args.topo,
            "compression": args.comp_alg,
            "step_ms": round(1e3 * step, 2),
            "images_per_second": round(batch * kv.num_workers / step, 1),
            "loss": round(float(loss.mean().asscalar()), 4),
        }
        print(json.dumps(result), flush=True)


def main() -> None:
    args = arguments()
    if os.environ.get("DMLC_ROLE"):
        train(args)
    else:
        sys.exit(launch(args))


if __name__ == "__main__":
    main()
