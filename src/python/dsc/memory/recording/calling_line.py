"""The line of the model's own code that is running."""

from __future__ import annotations

import functools
import os
import sys
import sysconfig

import torch

_NOT_THE_MODEL = (os.path.dirname(torch.__file__) + os.sep, os.path.dirname(os.path.dirname(__file__)) + os.sep)


def calling_line() -> str:
    """The innermost running line outside of PyTorch and dsc, as "models/gpt.py:42"; empty where there is none."""
    frame = sys._getframe(1)
    while frame is not None:
        name = _short(frame.f_code.co_filename)
        if name:
            return f"{name}:{frame.f_lineno}"
        frame = frame.f_back  # type: ignore[assignment]
    return ""


@functools.cache
def _short(path: str) -> str:
    """A file as its library or project names it; empty for one that is not of the model."""
    if path.startswith(("<", *_NOT_THE_MODEL)):
        return ""
    for folder in (sysconfig.get_path("purelib"), sysconfig.get_path("stdlib"), os.getcwd()):
        if path.startswith(folder + os.sep):
            return path[len(folder) + 1 :]
    return path.rpartition("site-packages" + os.sep)[2]
