"""Trains in twelve views, two steps in each, and records open files and threads."""

import os
import threading

import torch

import hipress.torch.elastic as elastic

model = torch.nn.Linear(64, 96)
state = elastic.State(model, torch.optim.SGD(model.parameters(), 0.1), "onebit", min_size=256)


@elastic.run
def train(state):
    while state.epoch < 12:
        for _ in range(2):
            state.optimizer.zero_grad()
            model(torch.randn(8, 64)).square().mean().backward()
            state.optimizer.step()
            for thread in threading.enumerate():
                if thread.name == "hipress-gloo-end":  # a busy machine lets it wait
                    thread.join(10)
            files, threads = os.listdir("/proc/self/fd"), os.listdir("/proc/self/task")
            state.commit(files=len(files), threads=len(threads))
        if state.rank == 0:
            state.session._agent.request_change("a test", state.epoch)


train(state)
