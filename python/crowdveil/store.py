# SPDX-License-Identifier: Apache-2.0
"""A third-party's campaigns in SQLite: one transaction has a release, the policy's state, decisions and next plan."""
from __future__ import annotations

import json
import os
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, Union

from google.protobuf.message import DecodeError

from .book import Book, failed
from .checks import Unfit
from .errors import Damaged, Error
from .judge import FAILURES, Broken, reason_of
from .model import End, Plan, Spec, Want
from .policy import Policy
from .schema import schema

VERSION = 1
TABLES = """
CREATE TABLE campaign (broker TEXT, id INTEGER, spec BLOB, seed BLOB, state TEXT, releases INTEGER, releases_hash BLOB,
  accepted INTEGER, plans_hash BLOB, plan INTEGER, open TEXT, done INTEGER, ended INTEGER, closed INTEGER,
  PRIMARY KEY (broker, id));
CREATE TABLE release (broker TEXT, campaign INTEGER, number INTEGER, plan INTEGER, arm INTEGER, tokens INTEGER,
  noisy_sum INTEGER, message BLOB, PRIMARY KEY (broker, campaign, number));
CREATE TABLE plan (broker TEXT, campaign INTEGER, number INTEGER, wants TEXT, PRIMARY KEY (broker, campaign, number));
CREATE TABLE decision (broker TEXT, campaign INTEGER, plan INTEGER, release INTEGER, arm INTEGER, rank_class INTEGER,
  tokens INTEGER, mean REAL, radius REAL);
"""


U64 = 1 << 64


def signed(number: int) -> int:
    """A number of 64 bits as SQLite stores it."""
    return number if number < U64 // 2 else number - U64


def open_database(path: Union[str, Path], tables: str, version: int) -> sqlite3.Connection:
    """A database for this process alone, readable by its user alone; Error if it cannot be used."""
    try:
        opened = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
        try:
            is_file = stat.S_ISREG(os.fstat(opened).st_mode)
            if is_file:
                os.fchmod(opened, 0o600)
        finally:
            os.close(opened)
    except OSError as error:
        raise Error(f"{path}: {error.strerror}; expected a file that this user can write") from None
    if not is_file:
        raise Error(f"{path}: not a regular file; expected a file that this user can write")
    db = sqlite3.connect(path, isolation_level=None, timeout=0, check_same_thread=False)
    try:
        db.execute("PRAGMA locking_mode = EXCLUSIVE")
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        found, = db.execute("PRAGMA user_version").fetchone()
        if found not in (0, version):
            raise Error(f"{path}: version {found} of the format; expected {version}")
        if found == 0:
            db.executescript(f"BEGIN; {tables} PRAGMA user_version = {version}; COMMIT;")
        db.execute("BEGIN IMMEDIATE")
        db.execute("COMMIT")
    except sqlite3.OperationalError as error:
        db.close()
        raise Error(f"{path}: {error}; expected a database that no other process uses") from None
    except sqlite3.DatabaseError as error:
        db.close()
        raise Damaged(f"{path}: {error}; expected a database of this program") from None
    except Error:
        db.close()
        raise
    return db


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")


class Store:
    """The database `thirdparty.db` of a state folder, which only its user can read."""

    def __init__(self, folder: Union[str, Path]) -> None:
        try:
            Path(folder).mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise Error(f"{folder}: {error.strerror}; expected a folder for the database") from None
        self.path = Path(folder) / "thirdparty.db"
        self.db = open_database(self.path, TABLES, VERSION)

    def close(self) -> None:
        self.db.close()

    def commit(self, changed: list[tuple[str, Book]]) -> None:
        """Stores what has changed in these (broker's name, book), all of it or nothing."""
        try:
            with transaction(self.db):
                for broker, book in changed:
                    self._put(broker, book)
        except sqlite3.Error as error:
            raise Error(f"{self.path}: {error}; expected a database with room; nothing that was acknowledged is lost"
                        ) from error

    def _put(self, broker: str, book: Book) -> None:
        fresh = book.take_fresh()
        if fresh is None:
            return
        key = (broker, signed(book.campaign))
        self.db.executemany("INSERT INTO release VALUES (?, ?, ?, ?, ?, ?, ?, ?)", [
            (*key, each.number, each.plan, each.arm, signed(each.tokens), each.noisy_sum, each.SerializeToString())
            for each in fresh.releases])
        self.db.executemany("INSERT OR REPLACE INTO plan VALUES (?, ?, ?, ?)", [
            (*key, plan.number, json.dumps([[want.arm, want.tokens, want.opponent] for want in plan.wants]))
            for plan in fresh.plans])
        self.db.executemany("INSERT INTO decision VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", [
            (*key, plan, release, each.arm, each.rank_class, signed(each.tokens), each.mean, each.radius)
            for plan, release, each in fresh.decisions])
        self.db.execute("INSERT OR REPLACE INTO campaign VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", (
            *key, book.message or book.spec.message().SerializeToString(), book.seed, fresh.state,
            book.releases, book.releases_hash, book.accepted, book.plans_hash, book.plan.number,
            json.dumps(sorted(book.left)), book.done, int(book.end), book.closed))

    def load(self, policy_of: Callable[[Spec, int], Policy],
             within: Callable[[], AbstractContextManager[Any]] = nullcontext) -> Iterator[tuple[str, Book]]:
        """(broker's name, book) of each campaign that is not closed. Error if `policy_of` knows no such policy."""
        for broker, campaign, *row in self.db.execute(
                "SELECT broker, id, spec, seed, state, releases, releases_hash, accepted, plans_hash, plan, open, done,"
                " ended FROM campaign WHERE NOT closed ORDER BY broker, id").fetchall():
            try:
                yield broker, self._book(broker, campaign, row, policy_of, within)
            except Unfit as error:
                raise Error(f"{self.path}: campaign {campaign % U64} of broker {broker}: {error}") from None
            except (ValueError, TypeError, KeyError, RecursionError, DecodeError) as error:
                raise Damaged(f"{self.path}: campaign {campaign % U64} of broker {broker}: {error}") from error

    def _book(self, broker: str, campaign: int, row: list[Any], policy_of: Callable[[Spec, int], Policy],
              within: Callable[[], AbstractContextManager[Any]]) -> Book:
        message, seed, stored, releases, releases_hash, accepted, plans_hash, plan, left, done, ended = row
        spec, state = Spec.of(schema("base").Spec.FromString(message)), json.loads(stored)
        book = self._restored(campaign % U64, spec, seed, state, policy_of, within)
        book.message = message
        book.releases, book.releases_hash = releases, releases_hash
        book.accepted, book.plans_hash = accepted, plans_hash
        book.left, book.done = set(json.loads(left)), bool(done)
        book.end = book.end or End(ended)
        if plan:
            wants, = self.db.execute("SELECT wants FROM plan WHERE broker = ? AND campaign = ? AND number = ?",
                                     (broker, campaign, plan)).fetchone()
            book.plan = Plan(plan, tuple(Want(*want) for want in json.loads(wants)))
        return book

    @staticmethod
    def _restored(campaign: int, spec: Spec, seed: bytes, state: Any, policy_of: Callable[[Spec, int], Policy],
                  within: Callable[[], AbstractContextManager[Any]]) -> Book:
        """With the policy's state; a policy that fails here ends its campaign, as it would later."""
        if Broken.KEY in state:
            return failed(campaign, Broken(spec), seed, state[Broken.KEY])
        try:
            with within():
                policy = policy_of(spec, int.from_bytes(seed, "little"))
                policy.restore(state)
        except Unfit:
            raise
        except FAILURES as error:
            book = failed(campaign, Broken(spec), seed, "")
            book.why, book.cause = reason_of(spec.policy.name, "load", error)
            book.changed = True
            return book
        book = Book(campaign, policy, seed, within=within)
        book.take_classes()
        return book

    def closed(self) -> set[tuple[str, int]]:
        """(broker's name, campaign) of each closed campaign."""
        return {(broker, campaign % U64)
                for broker, campaign in self.db.execute("SELECT broker, id FROM campaign WHERE closed")}
