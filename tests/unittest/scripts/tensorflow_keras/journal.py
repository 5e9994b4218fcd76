"""Writes figures of any name into the journal."""

from unittest import mock

import numpy as np

import hipress.tensorflow.elastic as elastic
from hipress.elastic.training.journal import Journal
from hipress.elastic.training.session import Session

logs = {"loss": 1.0, "rank": 5.0, "event": 2.0, "f1": np.ones(3)}
committed = {}
state = mock.Mock(commit=lambda **figures: committed.update(figures))
elastic._Commit.on_train_batch_end(mock.Mock(_state=state), 0, logs)
session = mock.Mock(
    view=mock.Mock(epoch=4), _state=mock.Mock(step=7), size=2, rank=1, _journal=Journal(0)
)
Session._write(session, "step", committed)
