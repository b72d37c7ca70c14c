"""Reads a bucket through a gateway with S3 clients that people use, each as it is, and compares every byte.

Usage: gateway-clients.py CLIENT ENDPOINT BUCKET FOLDER SCRATCH. FOLDER holds what the bucket has; SCRATCH is empty.
Exit status 0: equal. 77: the client is not installed.
"""

import filecmp
import os
import pathlib
import shutil
import subprocess
import sys

client, endpoint, bucket, folder, scratch = sys.argv[1:6]
expected = {
    str(path.relative_to(folder)): path.read_bytes() for path in pathlib.Path(folder).rglob("*") if path.is_file()
}
os.environ.pop("AWS_CA_BUNDLE", None)  # rclone cannot read it
os.environ.update(
    AWS_ENDPOINT_URL=endpoint,
    AWS_ACCESS_KEY_ID="any",
    AWS_SECRET_ACCESS_KEY="any",
    AWS_REGION="us-east-1",
    AWS_DEFAULT_REGION="us-east-1",
    AWS_CONFIG_FILE="/dev/null",
    AWS_SHARED_CREDENTIALS_FILE="/dev/null",
)


def command(name: str) -> str:
    """The program of a name, beside this Python or on PATH; ends the test where there is none."""
    beside = pathlib.Path(sys.executable).with_name(name)
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        sys.exit(77)
    return found


def run(*words: str) -> None:
    subprocess.run([command(words[0]), *words[1:]], check=True, stdout=subprocess.DEVNULL, timeout=250)


def fetched() -> dict[str, bytes]:
    return {str(path.relative_to(scratch)): path.read_bytes() for path in pathlib.Path(scratch).rglob("*") if path.is_file()}


def boto3() -> dict[str, bytes]:
    import boto3

    s3 = boto3.client("s3")
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, PaginationConfig={"PageSize": 7})
    keys = [item["Key"] for page in pages for item in page.get("Contents", [])]
    for key in keys:  # the transfer manager: parts side by side, and a HEAD before
        path = pathlib.Path(scratch, key)
        path.parent.mkdir(parents=True, exist_ok=True)
        s3.download_file(bucket, key, str(path))
    return fetched()


def aws() -> dict[str, bytes]:
    run("aws", "s3", "cp", "--recursive", "--quiet", f"s3://{bucket}/", scratch)
    before = {path: path.stat().st_mtime_ns for path in pathlib.Path(scratch).rglob("*")}
    run("aws", "s3", "sync", "--quiet", f"s3://{bucket}/", scratch)
    assert before == {path: path.stat().st_mtime_ns for path in pathlib.Path(scratch).rglob("*")}, "sync copied again"
    return fetched()


def s5cmd() -> dict[str, bytes]:
    run("s5cmd", "--endpoint-url", endpoint, "cp", f"s3://{bucket}/*", f"{scratch}/")
    return fetched()


def rclone() -> dict[str, bytes]:
    remote = f":s3,provider=Other,env_auth,endpoint='{endpoint}':{bucket}"
    run("rclone", "copy", "--config", "/dev/null", remote, scratch)
    run("rclone", "check", "--config", "/dev/null", "--download", remote, folder)
    return fetched()


def parquet(read):  # noqa: ANN001, ANN201
    import pyarrow.parquet

    for key in expected:
        if not key.endswith(".parquet"):
            continue
        want = pyarrow.parquet.read_table(pathlib.Path(folder, key)).to_pydict()
        assert read(key) == want, key
    return expected


def pyarrow() -> dict[str, bytes]:
    import pyarrow.fs
    import pyarrow.parquet

    host = endpoint.removeprefix("http://")
    files = pyarrow.fs.S3FileSystem(endpoint_override=host, scheme="http", access_key="any", secret_key="any")
    return parquet(lambda key: pyarrow.parquet.read_table(f"{bucket}/{key}", filesystem=files).to_pydict())


def duckdb() -> dict[str, bytes]:
    import duckdb
    import duckdb_extension_httpfs

    package = pathlib.Path(duckdb_extension_httpfs.__file__).parent
    connection = duckdb.connect()
    connection.execute(f"LOAD '{next(package.rglob('httpfs.duckdb_extension'))}'")
    host = endpoint.removeprefix("http://")
    connection.execute(
        f"CREATE SECRET (TYPE s3, KEY_ID 'any', SECRET 'any', ENDPOINT '{host}', URL_STYLE 'path', USE_SSL false)"
    )
    (rows,) = connection.sql(f"SELECT count(*) FROM read_parquet('s3://{bucket}/*.parquet')").fetchone()
    assert rows == PARQUET_ROWS, rows
    found = connection.sql(f"SELECT content FROM read_blob('s3://{bucket}/many/*')").fetchall()
    assert sorted(bytes(body) for (body,) in found) == sorted(
        body for key, body in expected.items() if key.startswith("many/")
    )
    return parquet(
        lambda key: connection.sql(f"SELECT * FROM read_parquet('s3://{bucket}/{key}')").to_arrow_table().to_pydict()
    )


def s3torch() -> dict[str, bytes]:
    from s3torchconnector import S3ClientConfig, S3MapDataset
    from torch.utils.data import DataLoader

    path_style = S3ClientConfig(force_path_style=True)
    data = S3MapDataset.from_prefix(
        f"s3://{bucket}/", region="us-east-1", endpoint=endpoint, transform=read_object, s3client_config=path_style
    )
    return dict(DataLoader(data, batch_size=None, num_workers=2, multiprocessing_context="spawn"))


def s3fs() -> dict[str, bytes]:
    from torch.utils.data import DataLoader

    data = S3fsFiles()
    return dict(DataLoader(data, batch_size=None, num_workers=2, multiprocessing_context="spawn"))


class S3fsFiles:
    """Every object of the bucket as fsspec's users read them: by a file that is opened, or all at once."""

    def __init__(self) -> None:
        self.keys = self.open().find(bucket)

    @staticmethod
    def open():  # noqa: ANN205
        import s3fs

        return s3fs.S3FileSystem()

    def __len__(self) -> int:
        return len(self.keys)

    def __getitem__(self, index: int) -> tuple[str, bytes]:
        files = self.open()  # of this worker
        path = self.keys[index]
        key = path.removeprefix(f"{bucket}/")
        if index % 2:
            return key, files.cat_file(path)
        with files.open(path, block_size=1 << 16) as file:  # ranges, read ahead
            middle = files.size(path) // 2
            file.seek(middle)
            behind = file.read()
            file.seek(0)
            return key, file.read(middle) + behind


def read_object(reader) -> tuple[str, bytes]:  # noqa: ANN001
    return reader.key, reader.read()


def mosaicml() -> dict[str, bytes]:
    from streaming import StreamingDataset

    os.environ["S3_ENDPOINT_URL"] = endpoint
    data = StreamingDataset(remote=f"s3://{bucket}/mds", local=f"{scratch}/mds", shuffle=False, batch_size=4)
    assert [data[i]["x"] for i in range(len(data))] == [sample(i) for i in range(ROWS)]
    return expected


def litdata() -> dict[str, bytes]:
    from litdata import StreamingDataset

    options = {"endpoint_url": endpoint}
    data = StreamingDataset(f"s3://{bucket}/lit", cache_dir=f"{scratch}/lit", shuffle=False, storage_options=options)
    assert [bytes(data[i]) for i in range(len(data))] == [sample(i) for i in range(ROWS)]
    return expected


def list_all() -> None:
    """Lists the bucket with each client that lists, and compares the keys with those of the folder."""
    import boto3
    import pyarrow.fs

    pages = boto3.client("s3").get_paginator("list_objects_v2").paginate(Bucket=bucket)
    host = endpoint.removeprefix("http://")
    files = pyarrow.fs.S3FileSystem(endpoint_override=host, scheme="http", access_key="any", secret_key="any")
    remote = f":s3,provider=Other,env_auth,endpoint='{endpoint}':{bucket}"
    found = {
        "boto3": [item["Key"] for page in pages for item in page["Contents"]],
        "aws": last_words("aws", "s3", "ls", "--recursive", f"s3://{bucket}/"),
        "s5cmd": last_words("s5cmd", "--endpoint-url", endpoint, "ls", f"s3://{bucket}/*"),
        "rclone": last_words("rclone", "lsf", "--recursive", "--files-only", "--config", "/dev/null", remote),
        "pyarrow": [
            info.path.removeprefix(f"{bucket}/")
            for info in files.get_file_info(pyarrow.fs.FileSelector(bucket, recursive=True))
            if info.is_file
        ],
    }
    wanted = pathlib.Path(folder, "keys").read_text().split()
    for name, keys in found.items():
        assert sorted(keys) == wanted, f"{name}: {len(keys)} keys, expected {len(wanted)}"


def read_huge() -> None:
    """Fetches the one object of the bucket by ranges, while it comes and when it is there, and compares it with FOLDER.bin."""
    import boto3

    there = pathlib.Path(scratch, "huge.bin")
    ways = {
        "s5cmd": lambda: run("s5cmd", "--endpoint-url", endpoint, "cp", f"s3://{bucket}/huge.bin", str(there)),
        "boto3": lambda: boto3.client("s3").download_file(bucket, "huge.bin", str(there)),
    }
    for name, fetch in ways.items():
        fetch()
        assert filecmp.cmp(f"{folder}.bin", there, shallow=False), f"{name}: other bytes"
        there.unlink()


def last_words(*words: str) -> list[str]:
    printed = subprocess.run([command(words[0]), *words[1:]], check=True, capture_output=True, text=True, timeout=120)
    return [line.split()[-1] for line in printed.stdout.splitlines()]


ROWS = 200
PARQUET_ROWS = 50_000


def sample(i: int) -> bytes:
    return bytes((i * 7 + k) % 251 for k in range(1000 + i))


def make_shards() -> None:
    """Shards as MosaicML Streaming and LitData write them; without these packages none."""
    try:
        from litdata import optimize
        from streaming import MDSWriter
    except ImportError:
        return
    with MDSWriter(out=f"{folder}/mds", columns={"x": "bytes"}, size_limit=1 << 16) as writer:
        for i in range(ROWS):
            writer.write({"x": sample(i)})
    optimize(sample, list(range(ROWS)), f"{folder}/lit", chunk_bytes="64KB", num_workers=1)


def main() -> None:
    if client == "make-shards":
        make_shards()
        sys.exit(0)
    if client == "list":
        list_all()
        sys.exit(0)
    if client == "huge":
        read_huge()
        sys.exit(0)
    if client == "make-parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        rows = range(PARQUET_ROWS)
        table = pa.table({"id": list(rows), "text": [f"row {i}" for i in rows]})
        pq.write_table(table, folder, row_group_size=10_000)
        sys.exit(0)
    read_all = globals()[client]
    try:
        actual = read_all()
    except ImportError:
        sys.exit(77)
    assert sorted(actual) == sorted(expected), f"expected {sorted(expected)}, found {sorted(actual)}"
    for key, body in expected.items():
        assert actual[key] == body, key


if __name__ == "__main__":  # workers of loaders read this file, too
    main()
