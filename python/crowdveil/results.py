# SPDX-License-Identifier: Apache-2.0
"""Results as numpy arrays: of crowdveil-lab (its database or CSV), and of campaigns. numpy is needed at the call."""
from __future__ import annotations

import csv
import io
import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, Union

from .errors import Damaged, Error
from .model import Choice, End, Export, NoiseGroup, Plan, Progress, Release, Spec, Standing, Want

Table = dict[str, Any]  # column: array
LAB_ID = 0x43564c42  # SQLite's application_id of a file of crowdveil-lab
TRIALS = ("series", "x", "metric", "replicate", "value")
SUMMARY = ("preset", "series", "x", "metric", "mean", "se", "n")
TEXT, WHOLE = ("preset", "series", "metric"), ("replicate", "n")
HELD = {"boundary": 1, "used up": 2, "undecided": 3}


def _numpy() -> Any:
    try:
        import numpy
    except ImportError:
        raise Error("numpy is not installed; expected it for arrays (Debian: python3-numpy)") from None
    return numpy


def _table(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> Table:
    np = _numpy()
    columns = list(zip(*rows)) or [()] * len(names)
    kinds = {name: str if name in TEXT else np.int64 if name in WHOLE else float for name in names}
    return {name: np.array([None if value in (None, "") and kinds[name] is float else value for value in column],
                           dtype=kinds[name]) for name, column in zip(names, columns)}


def _read(path: Union[str, Path]) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise Error(f"{path}: {error.strerror}; expected a file of results") from None


def read_lab(path: Union[str, Path]) -> Table:
    """
    The numbers of an experiment, one row each: series, x (nan: none), metric, replicate, value. From the database of
    `crowdveil-lab run --out`, or from `crowdveil-lab export --trials`; the summary that `export` prints has preset,
    series, x, metric, mean, se, n.
    """
    is_database = _read(path)[:16] == b"SQLite format 3\0"
    return _read_database(path) if is_database else _read_csv(path)


def _read_database(path: Union[str, Path]) -> Table:
    db = sqlite3.connect(f"{Path(path).resolve().as_uri()}?mode=ro", uri=True)
    try:
        if db.execute("PRAGMA application_id").fetchone() != (LAB_ID,):
            raise Damaged(f"{path}: another program's database; expected one of crowdveil-lab run --out")
        return _table(TRIALS, db.execute(f"SELECT {', '.join(TRIALS)} FROM result WHERE value IS NOT NULL"
                                         " ORDER BY series, metric, x, replicate").fetchall())
    except sqlite3.Error as error:
        raise Damaged(f"{path}: {error}; expected a database of crowdveil-lab run --out") from None
    finally:
        db.close()


def _read_csv(path: Union[str, Path]) -> Table:
    try:
        names, *rows = csv.reader(io.StringIO(_read(path).decode(), newline=""))
        if tuple(names) not in (TRIALS, SUMMARY) or any(len(row) != len(names) for row in rows):
            raise ValueError("other columns")
        return _table(names, rows)
    except (ValueError, csv.Error) as error:
        raise Damaged(f"{path}: {error}; expected a database or a CSV file of crowdveil-lab") from None


def curve(table: Table, series: str, metric: str) -> tuple[Any, Any, Any]:
    """x in ascending order, and at each the mean of the replicates and its standard error, from `read_lab`."""
    np = _numpy()
    chosen = (table["series"] == series) & (table["metric"] == metric)
    if not chosen.any():
        pairs = sorted(set(zip(table["series"].tolist(), table["metric"].tolist())))
        raise Error(f"no metric {metric} of series {series}; expected one of " +
                    ", ".join(f"{metric} of {series}" for series, metric in pairs))
    x = table["x"][chosen]
    if "mean" in table:
        order = np.argsort(x, kind="stable")
        return x[order], table["mean"][chosen][order], table["se"][chosen][order]
    at, which = np.unique(x, return_inverse=True)
    values = [table["value"][chosen][which == i] for i in range(len(at))]
    spread = [v.std(ddof=1) / len(v) ** .5 if len(v) > 1 else np.nan for v in values]
    return at, np.array([v.mean() for v in values]), np.array(spread)


def columns(rows: Sequence[Any]) -> Table:
    """The numbers of releases, standings or accounts, a column each: `columns(export.releases)`."""
    np = _numpy()
    if not rows or not is_dataclass(rows[0]):
        return {}
    names = [each.name for each in fields(rows[0]) if isinstance(getattr(rows[0], each.name), (int, float))]
    return {name: np.array([getattr(row, name) for row in rows]) for name in names}


# --- campaign exports


def _spec(found: Mapping[str, Any]) -> Spec:
    choices = {name: Choice(found[name]["name"], found[name]["params"])
               for name in ("policy", "mechanism", "privatizer")}
    known = {each.name for each in fields(Spec)}
    plain = {name: tuple(value) if isinstance(value, list) else value for name, value in found.items() if name in known}
    return Spec(**{**plain, **choices, "epsilon": found["epsilon_micro"] / 1e6,
                   "edges": tuple(tuple(edge) for edge in found.get("edges", ()))})


def _some(cls: type[Any], found: Mapping[str, Any], **more: Any) -> Any:
    return cls(**{each.name: found[each.name] for each in fields(cls) if each.name in found and each.name not in more},
               **more)


def read_export(path: Union[str, Path]) -> Export:
    """What `crowdveil export` has written, as `Requester.export` returns it."""
    try:
        found = json.loads(_read(path))
        if found["format"] != "crowdveil-export/2":
            raise ValueError(f"format {found['format']}")
        spec, told = _spec(found["spec"]), found["progress"]
        progress = Progress(**{**{each.name: 0 for each in fields(Progress)}, "campaign": found["campaign"],
                               "name": spec.name, "tokens_limit": spec.tokens, "arms": spec.arms, "waits_for": "",
                               "why": "",
                               "thirdparty_connected": False,
                               **{name: told[name] for name in told if name not in ("end", "ended")
                                  and name in {each.name for each in fields(Progress)}}, "end": End(told["end"])})
        return Export(
            found["campaign"], spec, int(found["seed"]).to_bytes(8, "little"), progress,
            tuple(Plan(plan["number"], tuple(_some(Want, want) for want in plan["wants"]))
                  for plan in found["plans"]),
            tuple(_some(Release, each, noise=tuple(_some(NoiseGroup, group) for group in each["noise"]))
                  for each in found["releases"]),
            tuple(_some(Standing, each, rank_class=each["class"], rank_last=each.get("class_last", 0),
                        held=HELD.get(each.get("held", ""), 0)) for each in found["standings"]))
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise Damaged(f"{path}: {type(error).__name__} {error}; expected JSON of crowdveil export") from None
