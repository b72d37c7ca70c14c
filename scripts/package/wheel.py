"""Makes the wheels of the distribution dsc-data: one of the Python client alone, and one that carries the executable.

    python3 scripts/package/wheel.py <output folder> [<executable> <platform tag>]

The second is the first with one file more: pip puts it beside the interpreter as the command dsc. Every date in them is
the same, so that the same files give the same bytes.
"""

from __future__ import annotations

import base64
import hashlib
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATE = (1980, 1, 1, 0, 0, 0)


def main() -> None:
    output = pathlib.Path(sys.argv[1])
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        source = pathlib.Path(work) / "python"  # setuptools leaves a folder behind in what it builds
        shutil.copytree(ROOT / "src/python", source, ignore=shutil.ignore_patterns("__pycache__", "tests", "build"))
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet", "--no-deps"]
        subprocess.run([*pip, "--wheel-dir", work, source], check=True)
        (pure,) = pathlib.Path(work).glob("*.whl")
        with zipfile.ZipFile(pure) as wheel:
            files = {name: (wheel.read(name), 0o644) for name in wheel.namelist() if not name.endswith("/RECORD")}
    distribution = "-".join(pure.name.split("-")[:2])  # dsc_data-0.1.0
    write_wheel(output / pure.name, distribution, files)
    if len(sys.argv) > 2:
        executable, platform = sys.argv[2:]
        tag = f"py3-none-{platform}"
        files[f"{distribution}.data/scripts/dsc"] = (pathlib.Path(executable).read_bytes(), 0o755)
        about = f"{distribution}.dist-info/WHEEL"
        text = files[about][0].decode()
        text = re.sub(r"(?m)^Tag: .*$", f"Tag: {tag}", text).replace("Purelib: true", "Purelib: false")
        files[about] = (text.encode(), 0o644)
        write_wheel(output / f"{distribution}-{tag}.whl", distribution, files)


def write_wheel(path: pathlib.Path, distribution: str, files: dict[str, tuple[bytes, int]]) -> None:
    """Writes the files and the record of their digests."""
    record = f"{distribution}.dist-info/RECORD"
    rows = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, (content, mode) in sorted(files.items()):
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            rows.append(f"{name},sha256={digest},{len(content)}\n")
            add(wheel, name, content, mode)
        add(wheel, record, ("".join(rows) + f"{record},,\n").encode(), 0o644)
    print(path)


def add(wheel: zipfile.ZipFile, name: str, content: bytes, mode: int) -> None:
    entry = zipfile.ZipInfo(name, DATE)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = (0o100000 | mode) << 16
    wheel.writestr(entry, content)


if __name__ == "__main__":
    main()
