"""Loads a checkpoint, makes states that are refused, and prints the errors."""

import keras
import numpy as np

import hipress.tensorflow.elastic as elastic

inner, outer = keras.optimizers.SGD(), keras.optimizers.SGD()


def state(compression="none", layers=None, optimizer=None, **options):
    layers = layers or [keras.Input((2,)), keras.layers.Dense(1, name="only")]
    model = keras.Sequential(layers, name="net")
    optimizer = optimizer or keras.optimizers.SGD()
    return elastic.State(model, optimizer, compression, **options)


def steps():
    made = state()
    made.optimizer.apply([None, None], made.model.trainable_variables)


def several():
    made = state(sync_every=5, outer_optimizer=outer)
    made.model.compile("sgd", "mse", steps_per_execution=2, jit_compile=False)
    made.model.fit(np.ones((4, 2)), verbose=0, callbacks=[made.callback()])


def checkpoint():
    made, other = (state(sync_every=5, outer_optimizer=keras.optimizers.SGD()) for _ in range(2))
    kernel, loaded = made.model.variables[0], other.model.variables[0]
    made.outer_steps.begin()
    outer_weights = np.array(kernel)
    kernel.assign_add([[1.0], [1.0]])  # in the middle of an outer step
    other.load_state_dict(made.state_dict())
    assert np.array_equal(loaded, outer_weights + 1)
    other.outer_steps.begin()
    assert np.array_equal(loaded, outer_weights)


checkpoint()
for refused in (
    lambda: state(layers=[keras.layers.Dense(1)]),
    lambda: state({"type": "onebit", "pull": "none"}),
    steps,
    lambda: state().commit(),
    lambda: state(sync_every=5),
    lambda: state(outer_optimizer=outer),
    lambda: state(sync_every=0, outer_optimizer=outer),
    lambda: state(sync_every=5, outer_optimizer="sgd"),
    lambda: state(optimizer=inner, sync_every=5, outer_optimizer=inner),
    lambda: state(sync_every=5, outer_optimizer=outer, fragments=4),
    several,
    lambda: state(sync_every=5, outer_optimizer=outer),
):
    try:
        refused()
    except Exception as error:
        print(str(error).splitlines()[0])
