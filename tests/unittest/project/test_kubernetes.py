"""The manifests of examples/kubernetes: Kubernetes' schemas accept them, and their commands train.

No cluster is started. Each pod is a process in a network namespace, with the pod's name, the names
that the manifest's service gives to the other pods, and the variables that Kubernetes would set.
"""

from __future__ import annotations

import os
import re
import secrets
import signal
import sys
from pathlib import Path

import pytest

from harness import ROOT, netns
from harness.marks import needs_namespaces
from harness.processes import Processes, base_environment

yaml = pytest.importorskip("yaml")
FOLDER = ROOT / "examples" / "kubernetes"
VERSION = "1.32"
"""Version of Kubernetes; pods have the label apps.kubernetes.io/pod-index since 1.28."""


def documents(name: str) -> list[dict]:
    """Return the objects of a manifest."""
    return list(yaml.safe_load_all((FOLDER / name).read_text(encoding="utf-8")))


def pod_template(name: str) -> tuple[list[str], dict]:
    """Return the names of a manifest's pods in its network, and their container."""
    document = documents(name)[-1]
    spec, job = document["spec"], document["metadata"]["name"]
    if document["kind"] == "StatefulSet":
        pods = [f"{job}-{i}.{spec['serviceName']}" for i in range(spec["replicas"])]
        return pods, spec["template"]["spec"]["containers"][0]
    if document["kind"] == "TrainJob":  # the runtime makes a JobSet with a job called node
        pods = [f"{job}-node-0-{i}.{job}" for i in range(spec["trainer"]["numNodes"])]
        return pods, spec["trainer"]
    (replicated,) = spec["replicatedJobs"]
    jobs = replicated["template"]["spec"]
    pods = [f"{job}-{replicated['name']}-0-{i}.{job}" for i in range(jobs["completions"])]
    return pods, jobs["template"]["spec"]["containers"][0]


def environment(name: str, index: int, secret: str) -> dict[str, str]:
    """Return the variables that Kubernetes, or Kubeflow's runtime, sets in a pod."""
    pods, container = pod_template(name)
    env = {}
    for each in container["env"]:
        source = each.get("valueFrom", {})
        if "secretKeyRef" in source:
            env[each["name"]] = secret
        elif "fieldRef" in source:
            field = source["fieldRef"]["fieldPath"]
            assert field in (
                "metadata.labels['apps.kubernetes.io/pod-index']",
                "metadata.annotations['batch.kubernetes.io/job-completion-index']",
            )
            env[each["name"]] = str(index)
        else:
            env[each["name"]] = each["value"]
    if name == "trainjob.yaml":
        env.update(
            PET_NNODES=str(container["numNodes"]),
            PET_NPROC_PER_NODE=str(container["numProcPerNode"]),
            PET_NODE_RANK=str(index),
            PET_MASTER_ADDR=pods[0],
            PET_MASTER_PORT="29400",
        )
    return env


class Pods(Processes):
    """Pods of a manifest, each in a separate namespace. Its hosts file names all pods."""

    def __init__(self, manifest: str, network: netns.ShapedNetwork) -> None:
        super().__init__(network)
        self.manifest, self.network, self.secret = manifest, network, secrets.token_hex(32)
        self.names, self.container = pod_template(manifest)
        self.addresses = {pod: network.address(i) for i, pod in enumerate(self.names)}
        self._folders = [
            Path("/etc/netns") / network.namespace(node) for node in range(network.nodes)
        ]

    def __enter__(self) -> Pods:
        for folder in self._folders:
            folder.mkdir(parents=True)
        self._write_hosts()
        return super().__enter__()

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        for folder in self._folders:
            (folder / "hosts").unlink(missing_ok=True)
            folder.rmdir()

    def _write_hosts(self) -> None:
        # A pod without an address is in no answer of the cluster's DNS.
        lines = [
            f"{address} {pod} {pod.split('.')[0]}\n" for pod, address in self.addresses.items()
        ]
        for folder in self._folders:  # in place: running pods have this file mounted
            (folder / "hosts").write_text("127.0.0.1 localhost\n" + "".join(lines))

    def run(self, index: int, name: str, node: int, steps: int | None = None) -> None:
        """Start a pod on a node of the network, whose script takes so many steps."""
        pod = self.names[index]
        self.addresses[pod] = self.network.address(node)
        self._write_hosts()
        env = {**base_environment(), **environment(self.manifest, index, self.secret)}
        env["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), env["PATH"]])
        command = [
            re.sub(r"(elastic\.py)", rf"\1 --steps={steps}", word) if steps else word
            for word in self.container["command"]
        ]
        if command[0] != "sh":
            command = " ".join(command).split(" ")
        script = f'hostname {pod.split(".")[0]} && cd {ROOT} && exec "$@"'
        self.start(
            name,
            ["unshare", "--uts", "sh", "-c", script, "sh", *command],
            env,
            node,
        )

    def remove(self, name: str) -> None:
        """End all processes of a pod at once, as when its container is killed."""
        os.killpg(self.processes[name].pid, signal.SIGKILL)


@pytest.mark.parametrize("manifest", sorted(path.name for path in FOLDER.glob("*.yaml")))
def test_kubernetes_schemas_accept_the_manifests(manifest):
    validate = pytest.importorskip(
        "kubernetes_validate", reason="needs kubernetes-validate"
    ).validate
    models = pytest.importorskip(
        "kubeflow_trainer_api.models", reason="needs kubeflow-trainer-api, which has JobSet's, too"
    )
    for document in documents(manifest):
        kind = document["kind"]
        if kind in ("TrainJob", "JobSet"):
            prefix = {"TrainJob": "TrainerV1alpha1", "JobSet": "JobsetV1alpha2"}[kind]
            read = getattr(models, prefix + kind).from_dict(document)
            assert read.to_dict() == document, "the schema does not have some of these fields"
            for job in document["spec"].get("replicatedJobs", []):
                core = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "job"}}
                validate({**core, **job["template"]}, VERSION, strict=True)
        else:
            validate(document, VERSION, strict=True)


def test_their_scripts_and_image_exist():
    dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    for path in FOLDER.glob("*.yaml"):
        _, container = pod_template(path.name)
        text = " ".join(container["command"])
        for script in re.findall(r"examples/\S+\.py", text):
            assert (ROOT / script).exists(), path
        assert f"AS {container['image'].partition(':')[2]}\n" in dockerfile


@pytest.mark.slow
@needs_namespaces
@pytest.mark.parametrize("manifest", ["jobset.yaml", "trainjob.yaml"])
def test_torchrun_trains_on_two_pods(manifest):
    """The commands find each other by the names that the service gives, and train.

    Cost: Two pods, 300 steps.
    """
    pytest.importorskip("torch")
    pytest.importorskip("sklearn")
    with netns.ShapedNetwork(2, rate=None) as network, Pods(manifest, network) as pods:
        for index in range(2):
            pods.run(index, f"pod {index}", index)
        results = pods.wait(150)
        assert all(result.returncode == 0 for result in results), pods.report()
        accuracy = re.search(r'"test_accuracy": ([\d.]+)', pods.report())
        assert accuracy and float(accuracy[1]) > 0.9, pods.report()


@pytest.mark.slow
@needs_namespaces
@pytest.mark.parametrize("manifest", ["elastic-statefulset.yaml", "elastic-jobset.yaml"])
def test_an_elastic_pod_dies_and_comes_back_at_another_address(manifest):
    """The remaining pods continue, and the new pod of the same index joins them.

    Cost: Three pods, and one starts again.
    """
    pytest.importorskip("torch")
    pytest.importorskip("sklearn")
    with netns.ShapedNetwork(4, rate=None) as network, Pods(manifest, network) as pods:
        for index in range(3):
            pods.run(index, f"pod {index}", index, steps=100_000)
        pods.wait_for("pod 0", "3 workers begin")
        pods.wait_for("pod 0", "step 50:")
        pods.remove("pod 1")
        pods.wait_for("pod 0", "2 workers go on")
        pods.run(1, "pod 1 again", 3, steps=100_000)
        pods.wait_for("pod 0", "3 workers go on")
