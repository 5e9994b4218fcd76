"""Integrations with PyTorch's data-parallel wrappers, which hand their gradients over.

What belongs here: when a wrapper has a gradient, and where the result goes. What does not: how it
travels (``executors``)::

    ddp.py               DDP's communication hook: compress(), HookState
    first_forward.py     finds a DDP model for integrations that are not given it
    fsdp.py              FSDP2: compress_fsdp(), in the reduce-scatter, and in HSDP's all-reduce
    fsdp_meshes.py       process groups of FSDP2's meshes, and which of them to compress
    optimizer.py         DistributedOptimizer, in Horovod's form, with buckets
    process_group.py     the backend "hipress": Gloo with compressed all-reduces
    demo.py              DeMo: buckets of cosine coefficients; the momentum is the codec's residual
    diloco.py, outer.py  DiLoCo and Local SGD on tensors
    huggingface.py       callback of a Hugging Face Trainer
    huggingface_accelerate.py  handler of Accelerate
    lightning.py         strategies of Lightning
    ray.py               process group of Ray Train
    checkpoint_folder.py residuals of all ranks with a framework's checkpoint

With FSDP2 each sum stays on the rank that owns a chunk. A gradient lies in chunks of FSDP's flat
tensor, and ``hipress.topology.flat_program`` places the partitions of a program there.
"""
