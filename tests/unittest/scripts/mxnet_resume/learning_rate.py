"""Changes the learning rate; from the third of four steps on it is 0."""

from mxnet import gluon

from common import net, train, weight

trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.125}, kvstore="dist_sync")
train(trainer, 2)
trained = weight()
trainer.set_learning_rate(0.0)
train(trainer, 2)
assert weight() == trained != [1.0, 1.0], (weight(), trained)
trainer.set_learning_rate(0.5)
train(trainer, 1)
assert weight() != trained
