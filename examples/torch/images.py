"""Trains VGG19 or ResNet50 on synthetic images of ImageNet's shape.

    torchrun --nproc-per-node=2 examples/torch/images.py --model resnet50 --compression onebit

The images are noise around one prototype per class, so the loss falls as it would on easy images.
``--image-size 32 --hidden 512 --width 0.5 --classes 10`` makes it fit a small machine.
"""

from __future__ import annotations

import torch
import torch.distributed as dist
from models import resnet50, vgg
from torch.nn import functional as F

import common


class Synthetic:
    """Noisy prototypes: ``batch(size)`` returns images[size, 3, side, side] and their classes."""

    def __init__(self, classes: int, side: int, seed: int) -> None:
        self._generator = torch.Generator().manual_seed(7)
        self._prototypes = torch.randn(classes, 3, side, side, generator=self._generator)
        self._generator.manual_seed(seed)

    def batch(self, size: int) -> tuple[torch.Tensor, torch.Tensor]:
        labels = torch.randint(len(self._prototypes), (size,), generator=self._generator)
        noise = torch.randn(size, *self._prototypes.shape[1:], generator=self._generator)
        return self._prototypes[labels] + noise, labels


def main() -> None:
    parser = common.parser(__doc__.splitlines()[0], steps=20, batch_size=4, learning_rate=0.01)
    parser.add_argument("--model", choices=["vgg19", "resnet50"], default="vgg19")
    parser.add_argument("--image-size", type=int, default=224)
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--hidden", type=int, default=4096, help="of VGG's dense layers")
    parser.add_argument("--width", type=float, default=1.0, help="of VGG's convolutions")
    args = parser.parse_args()
    common.start(args)
    if args.model == "vgg19":
        model = vgg(args.image_size, args.classes, args.hidden, args.width)
    else:
        model = resnet50(args.classes)
    model, compression = common.distribute(model, args)
    optimizer = common.optimizer_of(model, args, compression)
    data = Synthetic(args.classes, args.image_size, 1000 * args.seed + dist.get_rank())
    report = common.Report(every=1)
    for step in range(args.steps):
        images, labels = data.batch(args.batch_size)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        report(step, loss)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
