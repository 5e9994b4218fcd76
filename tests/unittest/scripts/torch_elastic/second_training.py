"""A second training in one process is refused."""

import torch

import hipress.torch.elastic as elastic
from hipress.elastic import ElasticError


def training(inner):
    model = torch.nn.Linear(8, 8)
    state = elastic.State(model, torch.optim.SGD(model.parameters(), 0.1), timeout=60)

    @elastic.run
    def train(state):
        while state.step < 5:
            if inner and state.step == 3:
                refused(inner)
            state.optimizer.zero_grad()
            model(torch.ones(2, 8)).sum().backward()
            state.optimizer.step()
            state.commit()

    return lambda: train(state)


def refused(run):
    try:
        run()
    except ElasticError as error:
        print("refused:", error, flush=True)


training(training(None))()
refused(training(None))
