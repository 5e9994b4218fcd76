"""Configurations by name, for ``--config``."""

import dataclasses

from torchtitan.models.llama3 import config_registry
from torchtitan.trainer import Trainer

from . import model_registry
from .trainer import HiPressTrainer


def _compressed(config: Trainer.Config, flavor: str) -> HiPressTrainer.Config:
    """Return one of torchtitan's configurations, with compression and without CUDA graphs."""
    config.training.disable_cuda_graphs = True
    fields = {each.name: getattr(config, each.name) for each in dataclasses.fields(config)}
    return HiPressTrainer.Config(**{**fields, "model_spec": model_registry(flavor)})


def hipress_debugmodel() -> HiPressTrainer.Config:
    """Return torchtitan's debug model."""
    return _compressed(config_registry.llama3_debugmodel(), "debugmodel")


def hipress_8b() -> HiPressTrainer.Config:
    """Return torchtitan's Llama 3 8B."""
    return _compressed(config_registry.llama3_8b(), "8B")
