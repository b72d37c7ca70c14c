"""Dates, times and timestamps of Parquet rows: Python's own where those can hold them, and never another value.

What has nanoseconds is pandas' Timestamp where pandas is installed, as pyarrow gives it; without pandas, and for times
of a day, it is a datetime or time with the attribute `nanosecond`. Years before 1 and after 9999 are text as in ISO
8601, `+012345-01-31` or `-000043-03-15`: DuckDB's and PostgreSQL's `infinity` is such a date.
"""

from __future__ import annotations

import datetime
import struct
from typing import Any

DATE, TIME, TIMESTAMP = 2, 3, 4
_UNITS_PER_SECOND = (10**3, 10**6, 10**9)
_UTC_FLAG = 4
_EPOCH = datetime.datetime(1970, 1, 1)
_EPOCH_DAY = _EPOCH.toordinal()
_INSTANT = struct.Struct(">Bq")


class NanosecondDatetime(datetime.datetime):
    """A datetime with nanoseconds, 0 to 999, which comparisons leave out."""

    nanosecond = 0


class NanosecondTime(datetime.time):
    """A time with nanoseconds, 0 to 999, which comparisons leave out."""

    nanosecond = 0


def read_moment(code: int, data: bytes) -> Any:
    """The value of an extension of rows: DATE, TIME or TIMESTAMP.

    Args:
        code: of the extension.
        data: its bytes, as src/samples/rows/row-extensions.ts says.

    Raises:
        struct.error: `data` has another length.
    """
    if code == DATE:
        (days,) = struct.unpack(">i", data)
        ordinal = _EPOCH_DAY + days
        if 1 <= ordinal <= datetime.date.max.toordinal():
            return datetime.date.fromordinal(ordinal)
        return _format_day(days)
    flags, value = _INSTANT.unpack(data)
    nanoseconds = value * (10**9 // _UNITS_PER_SECOND[flags & 3])
    if code == TIME:
        return _read_time(nanoseconds)
    return _read_timestamp(nanoseconds, datetime.timezone.utc if flags & _UTC_FLAG else None)


def _read_time(nanoseconds: int) -> datetime.time:
    time = (datetime.datetime.min + datetime.timedelta(microseconds=nanoseconds // 1000)).time()
    rest = nanoseconds % 1000
    if rest == 0:
        return time
    finer = NanosecondTime(time.hour, time.minute, time.second, time.microsecond)
    finer.nanosecond = rest
    return finer


def _read_timestamp(nanoseconds: int, zone: datetime.timezone | None) -> Any:
    if nanoseconds % 1000 != 0:
        return _with_nanoseconds(nanoseconds, zone)
    try:
        return (_EPOCH + datetime.timedelta(microseconds=nanoseconds // 1000)).replace(tzinfo=zone)
    except OverflowError:
        days, rest = divmod(nanoseconds, 86_400 * 10**9)
        time = (datetime.datetime.min + datetime.timedelta(microseconds=rest // 1000)).time()
        return f"{_format_day(days)}T{time.isoformat()}{'Z' if zone else ''}"


def _with_nanoseconds(nanoseconds: int, zone: datetime.timezone | None) -> datetime.datetime:
    try:
        from pandas import Timestamp  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        base = _EPOCH + datetime.timedelta(microseconds=nanoseconds // 1000)
        finer = NanosecondDatetime.fromisoformat(base.replace(tzinfo=zone).isoformat())
        finer.nanosecond = nanoseconds % 1000
        return finer
    moment: datetime.datetime = Timestamp(nanoseconds, unit="ns", tz="UTC" if zone else None)
    return moment


def _format_day(days: int) -> str:
    """Days since 1970 as year, month and day: by a year with the same calendar, since that repeats in 400 years."""
    cycles, rest = divmod(_EPOCH_DAY + days - 1, 146_097)
    day = datetime.date.fromordinal(rest + 1)
    year = day.year + 400 * cycles
    name = f"{year:04}" if 0 <= year <= 9999 else f"{'-' if year < 0 else '+'}{abs(year):06}"
    return f"{name}-{day.month:02}-{day.day:02}"
