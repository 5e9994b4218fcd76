"""Llama 3 of torchtitan with compressed gradients between hosts.

It follows torchtitan's conventions: ``model_registry`` returns a ``ModelSpec``, and
``config_registry.py`` holds configurations by name.
"""

import dataclasses

from torchtitan.models import llama3
from torchtitan.protocols.model_spec import ModelSpec

from .compress import compress_parts


def model_registry(flavor: str, **options: object) -> ModelSpec:
    """Return torchtitan's ``ModelSpec`` of a flavor, whose gradients are compressed.

    ``parallelize_fn`` gets a model on the meta device. ``compress_fsdp`` needs its real device, so
    it is called by ``post_optimizer_build_fn``, the next function of the specification. Pipelines
    are not supported.
    """
    spec = llama3.model_registry(flavor, **options)
    return dataclasses.replace(spec, post_optimizer_build_fn=compress_parts, pipelining_fn=None)
