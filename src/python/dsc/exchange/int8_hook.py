"""A communication hook for DistributedDataParallel: block-wise int8, half the bytes of fp16."""

# Without `annotations` from the future: DDP compares those of a hook, and text would be refused.
import torch
import torch.distributed as dist

from ..torch_private import GradBucket
from .carrier import Carrier
from .errors import ExchangeMismatch
from .int8_carrier import Int8Carrier
from .run import Run


class BlockwiseInt8:
    """The ranks of `blockwise_int8_hook`. It keeps nothing from one step to the next, and a checkpoint needs nothing.

    Args:
        process_group: that of DDP; None is the default group.
        levels: 2: as for `ScaledHalf`; ranks of one host take their mean in fp32.
    """

    def __init__(self, process_group: dist.ProcessGroup | None = None, *, levels: int = 1) -> None:
        if levels not in (1, 2):
            raise ValueError(f"levels is {levels}, expected 1 or 2")
        self.process_group = process_group
        self.levels = levels
        self._carrier: Carrier | None = None

    def exchange(self, bucket: GradBucket) -> torch.futures.Future[torch.Tensor]:
        """Sends one bucket on its way.

        Args:
            bucket: gradients of one bucket of DDP, flat.

        Returns:
            A future that ends when its mean is there.
        """
        values = bucket.buffer()
        if values.layout != torch.strided:
            raise ExchangeMismatch(
                "a gradient is sparse, and int8 of sparse gradients is not exchanged: make the layer with "
                "sparse=False, or train it without this hook"
            )
        if self._carrier is None:
            self._carrier = self._open_carrier(values.device)
        if bucket.index() == 0:
            self._carrier.end_step()  # the one before
        gate = _Gate(values)
        run = Run((), (), values, [parameter.numel() for parameter in bucket.parameters()], "int8", ())
        self._carrier.send(run, gate.open)
        return gate.result

    def _open_carrier(self, device: torch.device) -> Carrier:
        if self.levels == 2:
            from .two_level_carrier import open_two_levels

            return open_two_levels(device, lambda group: Int8Carrier(group, device))(self.process_group)
        return Int8Carrier(self.process_group, device)


class _Gate:
    """Ends a bucket's future by itself: on a GPU it has to end on the stream where its mean is written."""

    def __init__(self, values: torch.Tensor) -> None:
        self._values = values
        self._error: Exception | None = None
        self._future: torch.futures.Future[torch.Tensor] = torch.futures.Future(
            devices=[values.device] if values.is_cuda else []
        )
        self.result = self._future.then(self._pass)

    def open(self, error: Exception | None) -> None:
        """Lets DDP go on, or tells it what went wrong."""
        self._error = self._error or error
        if not self._future.done():
            self._future.set_result(self._values)

    def _pass(self, future: torch.futures.Future[torch.Tensor]) -> torch.Tensor:
        # As in Step: this is how DDP, which is not Python, hears of it.
        if self._error is not None:
            raise self._error
        return future.value()


def blockwise_int8_hook(state: BlockwiseInt8, bucket: GradBucket) -> torch.futures.Future[torch.Tensor]:
    """For `ddp.register_comm_hook(BlockwiseInt8(), blockwise_int8_hook)`.

    Ranks swap parts of the bucket as int8 in blocks of 256 values, sum theirs in fp32, and gather the means as int8: 1
    byte per value and 4 per block travel where fp16's all-reduce has 2 per value (ZeRO++'s quantized gradients, Wang et
    al. 2023, without their second level). A value is off by less than 1/63 of the largest that a rank had among the 256
    of its block, before the rounding of its own type, and by nothing on average. A block with inf or NaN is NaN on
    every rank.

    Args:
        state: The ranks.
        bucket: The gradients that DDP hands over, flat: [values], of any float type.

    Returns:
        The mean of all ranks, of the bucket's shape and type, once it is there: bit-equal on all of them.
    """
    return state.exchange(bucket)
