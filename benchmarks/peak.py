"""Share of the matmul peak: the matrix products of our training step alone, against the whole step.

One real step is recorded: every matrix product with the shapes and memory layouts of its operands, forward and
backward. The same products are then run by themselves in a plain loop, on operands that are not in the cache and into
memory that is there already. The share is their time over the step's: at 1, nothing but products would cost time.
"""

import math
import statistics
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from measure import Figure, Result, finish, interleave, make_parser, spread
from steps import OurStep, add_options, choose_batches, minilm_recipe, open_store

TARGET = 0.6
_POOL = 1 << 26  # floats: 256 MB, several times any last-level cache

aten = torch.ops.aten
_ATTENTION = "_scaled_dot_product_flash_attention_for_cpu"


class Layout(NamedTuple):
    """Where the entries of a matrix lie."""

    size: tuple[int, ...]
    stride: tuple[int, ...]

    @classmethod
    def of(cls, tensor: Tensor) -> "Layout":
        """Read the layout off a tensor."""
        return cls(tuple(tensor.shape), tuple(tensor.stride()))

    @classmethod
    def packed(cls, stack: int, rows: int, columns: int, *, transposed: bool = False) -> "Layout":
        """Return a stack of matrices, one behind the other; ``transposed``, each column by column."""
        return cls((stack, rows, columns), (rows * columns, *((1, rows) if transposed else (columns, 1))))


class Product(NamedTuple):
    """A matrix product: ``mm``, ``addmm`` (with a bias) or ``bmm``."""

    left: Layout
    right: Layout
    biased: bool = False

    @property
    def stacked(self) -> bool:
        """Whether it is a stack of products."""
        return len(self.left.size) == 3

    @property
    def flops(self) -> int:
        """Multiplications and additions."""
        return 2 * math.prod(self.left.size) * self.right.size[-1]


class Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes every matrix product that runs while it is on."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.products: list[Product] = []

    def __torch_dispatch__(
        self, func: Any, types: Iterable[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Note a product and run the operation as it is."""
        if func in (aten.mm.default, aten.bmm.default):
            self.products.append(Product(Layout.of(args[0]), Layout.of(args[1])))
        elif func in (aten.addmm.default, aten.baddbmm.default):
            self.products.append(Product(Layout.of(args[1]), Layout.of(args[2]), biased=args[1].ndim == 2))
        elif func.overloadpacket.__name__ == _ATTENTION:
            self.products += attention_products(args[0], backward=False)
        elif func.overloadpacket.__name__ == _ATTENTION + "_backward":
            self.products += attention_products(args[1], backward=True)
        return func(*args, **(kwargs or {}))


def attention_products(query: Tensor, *, backward: bool) -> list[Product]:
    """Return the products inside the fused attention; those that it does again in the backward pass are not counted."""
    rows, heads, positions, width = query.shape
    stack = rows * heads
    plain, turned = Layout.packed(stack, positions, width), Layout.packed(stack, width, positions, transposed=True)
    scores, scores_turned = (Layout.packed(stack, positions, positions, transposed=t) for t in (False, True))
    outer, inner = Product(plain, turned), Product(scores, plain)
    # Forward: scores = q k', then scores v. Backward: the gradients of the scores, of q, of k and of v.
    return [outer, inner, Product(scores_turned, plain), Product(scores_turned, plain)] if backward else [outer, inner]


class Pool:
    """Hands out matrices one behind the other in a large block, so that none is in the cache when it is used."""

    def __init__(self) -> None:
        self._block = torch.rand(_POOL)
        self._next = 0

    def take(self, layout: Layout) -> Tensor:
        """Return a matrix of this layout."""
        extent = 1 + sum((size - 1) * stride for size, stride in zip(*layout, strict=True))
        if self._next + extent > _POOL:
            self._next = 0
        place, self._next = self._next, self._next + extent
        return self._block.as_strided(layout.size, layout.stride, place)


def bind(product: Product, pool: Pool, results: Pool) -> Callable[[], Tensor]:
    """Return a product with operands and result in place."""
    left, right = pool.take(product.left), pool.take(product.right)
    rows, columns = product.left.size[-2], product.right.size[-1]
    if product.stacked:
        stacked = results.take(Layout.packed(product.left.size[0], rows, columns))
        return lambda: torch.bmm(left, right, out=stacked)
    result = results.take(Layout((rows, columns), (columns, 1)))
    if product.biased:
        bias = pool.take(Layout((columns,), (1,)))
        return lambda: torch.addmm(bias, left, right, out=result)
    return lambda: torch.mm(left, right, out=result)


def run_all(calls: list[Callable[[], Tensor]]) -> None:
    """Run the products one after the other."""
    for call in calls:
        call()


def main() -> None:
    """Measure steps and products in turn."""
    parser = make_parser(__doc__, repetitions=5)
    add_options(parser)
    options = parser.parse_args()
    recipe = minilm_recipe(quick=options.quick)
    with open_store(options) as store:
        exact, _ = choose_batches(store, options.batches, options.batch_size)
        step = OurStep(recipe.model, recipe.noise, recipe.training, store, exact)
        step.epoch()
        with Recorder() as recorder:
            step.epoch()
        square = Layout((2048, 2048), (2048, 1))
        products = {
            "linear": [product for product in recorder.products if not product.stacked],
            "attention": [product for product in recorder.products if product.stacked],
            "square": [Product(square, square)],
        }
        operands, results = Pool(), Pool()
        calls = {name: [bind(product, operands, results) for product in group] for name, group in products.items()}
        loops = {name: partial(run_all, group) for name, group in calls.items()}
        interleave(loops, 1)  # warm-up
        times = interleave({"step": step.epoch, **loops}, options.repetitions)
    gigaflops = {name: sum(product.flops for product in group) / 1e9 for name, group in products.items()}
    gigaflops["products"] = gigaflops["step"] = gigaflops["linear"] + gigaflops["attention"]
    times["products"] = [sum(pair) for pair in zip(times["linear"], times["attention"], strict=True)]
    whole = statistics.median(times["step"])
    names = {
        "step": "whole step",
        "products": "its matrix products alone",
        "linear": "... of Linear layers and head",
        "attention": "... of attention",
        "square": "for scale: one 2,048 x 2,048 x 2,048 product",
    }
    finish(
        Result(
            title="Share of the matmul peak",
            compared="The matrix products of our training step (minilm recipe), recorded from real steps and run by"
            " themselves in a plain loop, against the whole step (batch, masks, loss, backward, clip, AdamW, average).",
            columns=["what", "s a round, median", "share of the step", "GFLOP", "GFLOP/s, median (range)"],
            rows=[
                [
                    label,
                    f"{statistics.median(times[name]):.3f}",
                    "" if name == "square" else f"{statistics.median(times[name]) / whole:.3f}",
                    f"{gigaflops[name]:,.1f}",
                    spread([gigaflops[name] / each for each in times[name]]),
                ]
                for name, label in names.items()
            ],
            figures=[Figure("Products against the whole step", statistics.median(times["products"]) / whole, TARGET)],
            repetitions=options.repetitions,
            sizes=step.sizes() | {"products a round": len(recorder.products)},
            times=times,
            notes=[
                "The step's GFLOP/s count its matrix products only. Products that the fused attention does a second"
                " time in its backward pass are not counted."
            ],
        ),
        options,
    )


if __name__ == "__main__":
    main()
