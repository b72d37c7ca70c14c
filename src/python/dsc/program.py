"""Where the program ``dsc`` is, which feeds and plans."""

from __future__ import annotations

import os
import shlex
import shutil
import sysconfig


def find_program() -> list[str] | None:
    """The words that run dsc here, or None where it is not installed.

    ``DSC_BIN`` wins; then the program that came with this package, which lies beside the interpreter whether or not
    its environment is activated; then ``PATH``.
    """
    given = os.environ.get("DSC_BIN")
    if given:
        return shlex.split(given)
    found = shutil.which("dsc", path=sysconfig.get_path("scripts")) or shutil.which("dsc")
    return [found] if found else None
