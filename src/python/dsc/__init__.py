"""Thin Python client of dsc. Importing it needs the standard library only; torch is loaded by the parts that use it."""

import importlib

__version__ = "0.1.0"

# Name → module that has it, loaded at first use; a module that is named after itself is the value.
_LAZY = {
    "memory": "dsc.memory",
    "offload": "dsc.memory",
    "params": "dsc.params",
}


def __getattr__(name):
    if name not in _LAZY:
        raise AttributeError(f"module 'dsc' has no attribute {name!r}")
    module = importlib.import_module(_LAZY[name])
    return module if _LAZY[name] == f"dsc.{name}" else getattr(module, name)
