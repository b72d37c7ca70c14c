"""Names of element types in profiles and plans."""

from __future__ import annotations

import torch

SHORT = {
    torch.float32: "f32",
    torch.float64: "f64",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.int64: "i64",
    torch.int32: "i32",
    torch.int16: "i16",
    torch.int8: "i8",
    torch.uint8: "u8",
    torch.bool: "b8",
    torch.complex64: "c64",
    torch.complex128: "c128",
}


def short_dtype(dtype: torch.dtype) -> str:
    """The name of an element type in profiles and plans, such as `f32`."""
    return SHORT.get(dtype, str(dtype).replace("torch.", ""))
