"""Thin Python client of dsc. Importing it needs the standard library only; torch is loaded by the parts that use it."""

__version__ = "0.1.0"
