"""Membership of elastic jobs: the processes of each view, while processes die and join.

>>> agent = Agent.from_environment(on_change=lambda view: engine.abort())
>>> view = agent.join(timeout=60)

What belongs here: agreement. What does not: frameworks, gradients and weights. The native library
is used for one thing, the certificate of TLS. (Names in this package say *epoch* for a view's
number.)

The protocol is a state machine without clock, threads, sockets and random numbers, so that a test
can replay any schedule::

    agent.py          what a training process calls: join, await_view, completed, share, fetch
    agent_thread.py   one thread with a clock and sockets; links.py, channel.py, tls.py, notes.py
    protocol.py       the state machine; acceptor.py, proposer.py, founder.py are its parts
    successor.py      the content of the next view
    evidence.py       the host's kernel as a witness that a process has ended
    detector.py       processes that have been silent for too long

The opening lines of :mod:`.protocol` explain the decision, quorums and evidence.
"""
