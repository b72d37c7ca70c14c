"""Samples of tar shards as other programs write them: pax, GNU and ustar headers, long names, sparse members."""

import io
import shutil
import subprocess
import tarfile

import pytest

import dsc
from dsc.feed.members import split_members

LONG = "/".join(["a-folder-with-a-long-name"] * 4 + ["sample-000"])  # over 100 bytes
assert len(LONG) > 100
FORMATS = {"pax": tarfile.PAX_FORMAT, "gnu": tarfile.GNU_FORMAT, "ustar": tarfile.USTAR_FORMAT}


@pytest.mark.parametrize("name", ["000", "dir/000.x/000", LONG])
@pytest.mark.parametrize("kind", FORMATS)
def test_members_of_pythons_tars_are_all_there(kind, name):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=FORMATS[kind]) as archive:
        add(archive, f"{name}.jpg", b"image" * 200)
        add(archive, f"{name}.cls", b"7")
        add(archive, f"{name}.seg.png", b"")
    assert members(file.getvalue()) == {"jpg": b"image" * 200, "cls": b"7", "seg.png": b""}


def test_names_beyond_ascii_and_sizes_in_pax_headers_are_read():
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as archive:
        add(archive, "übung.jpg", b"image", {"size": "5"})
        add(archive, "übung.Größe", b"7")
    written = file.getvalue()
    at = 2 * 512  # the header of the first member, behind its pax header: a size it cannot hold is left 0 there
    assert written[at + 124 : at + 136] == b"00000000005\0"
    header = bytearray(written[at : at + 512])
    header[124:136] = b"00000000000\0"
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    assert members(written[:at] + bytes(header) + written[at + 512 :]) == {"jpg": b"image", "größe": b"7"}


def test_members_of_webdataset_are_all_there(tmp_path):
    webdataset = pytest.importorskip("webdataset")
    path = str(tmp_path / "shard.tar")
    with webdataset.TarWriter(path) as writer:
        writer.write({"__key__": LONG, "txt": "hello", "cls": 7, "json": {"a": 1}})
    found = members((tmp_path / "shard.tar").read_bytes())
    assert found["txt"] == b"hello" and found["cls"] == b"7" and set(found) == {"txt", "cls", "json"}


@pytest.mark.parametrize("program", ["tar", "bsdtar"])
@pytest.mark.parametrize("kind", ["ustar", "gnutar", "pax"])
def test_members_of_tar_programs_are_all_there(program, kind, tmp_path):
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    (tmp_path / LONG).parent.mkdir(parents=True)
    for extension, data in (("jpg", b"image"), ("cls", b"7")):
        (tmp_path / f"{LONG}.{extension}").write_bytes(data)
    format = "gnu" if kind == "gnutar" and program == "tar" else kind
    subprocess.run(
        [program, "-c", f"--format={format}", "-f", "shard.tar", f"{LONG}.jpg", f"{LONG}.cls"], cwd=tmp_path, check=True
    )
    assert members((tmp_path / "shard.tar").read_bytes()) == {"jpg": b"image", "cls": b"7"}


@pytest.mark.parametrize("options", [["--format=gnu"], ["--format=pax"], ["--format=pax", "--sparse-version=0.1"]])
def test_sparse_members_of_gnu_tar_have_their_holes(options, tmp_path):
    expected = bytearray(3 << 20)
    expected[1 << 20 : (1 << 20) + 5] = b"image"
    expected[-1] = 1
    with open(tmp_path / "000.bin", "wb") as file:
        file.truncate(len(expected))
        file.seek(1 << 20)
        file.write(b"image")
        file.seek(len(expected) - 1)
        file.write(b"\1")
    (tmp_path / "000.cls").write_bytes(b"7")
    subprocess.run(["tar", "-cS", *options, "-f", "shard.tar", "000.bin", "000.cls"], cwd=tmp_path, check=True)
    written = (tmp_path / "shard.tar").read_bytes()
    assert len(written) < 1 << 20, "the member is sparse, else this proves nothing"
    assert members(written) == {"bin": bytes(expected), "cls": b"7"}


def test_members_are_views_and_damage_is_told():
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        add(archive, "000.jpg", b"image")
    whole = memoryview(file.getvalue())
    assert split_members(whole)["jpg"].obj is whole.obj
    for length in (100, 512 + 3):
        with pytest.raises(tarfile.TarError):
            split_members(whole[:length])


def add(archive, name, data, pax_headers=None):
    member = tarfile.TarInfo(name)
    member.size = len(data)
    member.pax_headers = pax_headers or {}
    archive.addfile(member, io.BytesIO(data))


def members(archive):
    """Those of the slice that a feed makes of the archive: up to the last byte of the last member."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as file:
        last = file.getmembers()[-1]
    slice = memoryview(archive)[: last.offset_data + last.size]
    return {name: bytes(view) for name, view in split_members(slice).items()}


def test_a_feed_of_shards_gives_the_members(dataset, tmp_path):
    webdataset = pytest.importorskip("webdataset")
    folder = tmp_path / "shards"
    folder.mkdir()
    for shard in range(2):
        with webdataset.TarWriter(str(folder / f"{shard}.tar")) as writer:
            for index in range(8):
                key = f"{LONG}-{shard}-{index}"
                writer.write({"__key__": key, "txt": f"text {shard} {index}", "cls": index})
    batches = dsc.FeedDataset(folder, batch_size=4)
    found = sorted((bytes(s.fields()["txt"]), bytes(s.fields()["cls"])) for batch in batches for s in batch)
    assert found == sorted((b"text %d %d" % (s, i), b"%d" % i) for s in range(2) for i in range(8))


def test_samples_of_one_member_have_fields_like_others(dataset, tmp_path):
    folder = tmp_path / "shards"
    folder.mkdir()
    with tarfile.open(folder / "0.tar", "w") as archive:
        for index in range(4):
            add(archive, f"v1.0/{index}.Seg.png", b"%d" % index)
    (batch,) = dsc.FeedDataset(folder, batch_size=4, order="sequential")
    expected = [{"seg.png": b"%d" % index} for index in range(4)]
    for found in ([sample.fields() for sample in batch], [sample.row() for sample in batch], batch.rows()):
        assert found == expected
    assert [bytes(sample.data) for sample in batch] == [b"0", b"1", b"2", b"3"]


READ_ALIKE = {
    "macos": ["./._0.cls", "./0.cls", "./._0.jpg", "./0.jpg"],
    "passed-over": ["README", "dir/LICENSE", "__info__", "__meta__/0.json", "0.jpg", "0.cls"],
    "case": ["0.JPG", "0.cls", "1.jpg", "1.CLS"],
    "folders": ["v1.0/0.seg.png", "v1.0/0.cls", "v1.1/0.png", "v1.1/0.cls"],
    "empty-extension": ["0.", "0.cls"],
    "symbolic-links": ["0.jpg", "0.cls", "1.jpg -> 0.jpg", "1.cls"],
}
REFUSED = {
    "apart": (["0.cls", "1.cls", "0.jpg", "1.jpg"], "--sort=name"),
    "twice": (["0.jpg", "0.cls", "0.jpg"], "one member of each extension"),
    "case-twice": (["0.jpg", "0.JPG"], "one member of each extension"),
    "hard-links": (["0.jpg", "0.cls", "1.jpg => 0.jpg", "1.cls"], "--hard-dereference"),
}


def write_shard(path, names):
    with tarfile.open(path, "w") as archive:
        for at, name in enumerate(names):
            name, arrow, target = name.partition(" -> ") if " -> " in name else name.partition(" => ")
            if arrow:
                link = tarfile.TarInfo(name)
                link.type, link.linkname = (tarfile.SYMTYPE if "-" in arrow else tarfile.LNKTYPE), target
                archive.addfile(link)
            else:
                add(archive, name, b"%d of the members" % at)


def test_shards_are_read_as_webdataset_reads_them(dataset):
    """Each shard of the table, member by member, beside the library."""
    webdataset = pytest.importorskip("webdataset")
    folder = dataset.parent / "shards"
    folder.mkdir()
    for name, members_ in READ_ALIKE.items():
        write_shard(folder / f"{name}.tar", members_)
    data = dsc.FeedDataset(folder, batch_size=1, order="sequential")
    found = [(sample.name, {k: bytes(v) for k, v in sample.row().items()}) for batch in data for sample in batch]
    shards = [str(path) for path in sorted(folder.glob("*.tar"))]
    expected = [
        (sample["__key__"], {k: v for k, v in sample.items() if not k.startswith("__")})
        for sample in webdataset.WebDataset(shards, shardshuffle=False)
    ]
    assert found == expected and len(found) == 9


@pytest.mark.parametrize("name", REFUSED)
def test_shards_that_webdataset_reads_with_parts_missing_are_refused(dataset, name):
    names, remedy = REFUSED[name]
    folder = dataset.parent / "shards"
    folder.mkdir()
    write_shard(folder / "a.tar", names)
    with pytest.raises(dsc.FeedError, match=remedy) as refusal:
        next(iter(dsc.FeedDataset(folder, batch_size=1)))
    assert refusal.value.code == "USAGE"
