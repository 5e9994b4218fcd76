"""Variables with the same path are refused."""

import keras

import hipress.tensorflow as hvd
import hipress.tensorflow.elastic as elastic


def tower():
    given = keras.Input((2,))
    return given, keras.Model(given, keras.layers.Dense(1, name="fc")(given))(given)


(a, left), (b, right) = tower(), tower()
model = keras.Model([a, b], keras.layers.Add()([left, right]))
for make in (
    lambda: elastic.State(model, keras.optimizers.SGD(0.1)),
    lambda: hvd.DiLoCo(model, 4, keras.optimizers.SGD(0.7)),
):
    try:
        make()
    except ValueError as error:
        print("refused:", error)
