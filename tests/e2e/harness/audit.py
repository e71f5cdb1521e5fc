# SPDX-License-Identifier: Apache-2.0
"""
An audit of both databases of a campaign that has ended, by code that is independent of the programs: sqlite3, hashlib
and the documented layouts. Every deviation is a line; `audit` fails with all of them.
"""
import hashlib
import shutil
import sqlite3
import struct
import subprocess
import tempfile
from collections import defaultdict
from pathlib import Path

from harness.daemon import PROGRAMS

GRID = 1 << 20


class Reader:
    """Reads little-endian numbers from a stored image."""

    def __init__(self, image):
        self.image, self.at = image, 0

    def take(self, layout):
        values = struct.unpack_from("<" + layout, self.image, self.at)
        self.at += struct.calcsize("<" + layout)
        return values

    def is_done(self):
        return self.at == len(self.image)


# --- the mechanisms' formulas, from their papers

def hybrid_noise(n):
    """Chan, Shi, Song 2010: one Lap(2) for each power of two up to n, one Lap(2 m) for each one-bit of what follows
    the last."""
    power = n.bit_length() - 1
    past = n - (1 << power)
    groups = [(2.0, power + 1)]
    if past:
        groups.append((2.0 * power, bin(past).count("1")))
    return groups


def hybrid_least_spent(n, epsilon_micro):
    """Item 3, at n = 4, is the first that is in more than the logarithmic half."""
    return epsilon_micro // 2 if n < 4 else epsilon_micro


NOISE = {"hybrid": hybrid_noise, "none": lambda n: []}
LEAST_SPENT = {"hybrid": hybrid_least_spent, "none": lambda n, epsilon_micro: 0}


# --- chains, as docs/protocol.md defines them

def release_record(number, plan, arm, tokens, noisy_sum, noise):
    return struct.pack("<QQIQqI", number, plan, arm, tokens, noisy_sum, len(noise)) + b"".join(
        struct.pack("<dI", scale, count) for scale, count in noise)


def plan_record(number, wants):
    return struct.pack("<QI", number, len(wants)) + b"".join(struct.pack("<II", *want) for want in wants)


def chain(records):
    link = bytes(32)
    for record in records:
        link = hashlib.sha256(link + record).digest()
    return link


# --- the two parties' records

class Broker:
    def __init__(self, path, campaign):
        self.db = sqlite3.connect(path)
        one = (campaign,)
        self.plans = {}
        for number, image in self.db.execute("SELECT number, image FROM plan WHERE campaign = ? ORDER BY number", one):
            reader = Reader(image)
            wants, = reader.take("I")
            self.plans[number] = [reader.take("II") for _ in range(wants)]
        self.releases, self.nth = {}, {}
        self.spent = {}  # by arm, and how much of it a recovery charged
        for arm, image in self.db.execute("SELECT arm, image FROM ledger WHERE campaign = ?", one):
            _, *self.spent[arm] = Reader(image).take("IQQ")
        for number, image in self.db.execute(
                "SELECT number, image FROM release WHERE campaign = ? ORDER BY number", one):
            plan, arm, self.nth[number], tokens, noisy_sum = Reader(image).take("QIIQq")
            self.releases[number] = (plan, arm, tokens, noisy_sum)
        state, standings = self.db.execute("SELECT state, standings FROM campaign WHERE id = ?", one).fetchone()
        reader = Reader(state)
        _, self.end, _, self.seed, self.tokens, _ = reader.take("IIBQQQ")
        reader = Reader(standings)
        arms, = reader.take("I")
        self.standings = [(arm, *reader.take("IQddIB")[:4]) for arm in range(arms)]
        assert reader.is_done()
        self.left = {table: self.db.execute(f"SELECT count(*) FROM {table} WHERE campaign = ?", one).fetchone()[0]
                     for table in ("journal", "chunk")}
        self.commit = self.db.execute("SELECT last_commit, last_hash FROM meta").fetchone()


class Thirdparty:
    def __init__(self, path, campaign):
        self.db = sqlite3.connect(path)
        self.db.row_factory = sqlite3.Row
        self.row = self.db.execute("SELECT * FROM campaign WHERE number = ?", (campaign,)).fetchone()
        one = (self.row["id"],)
        self.seed = self.row["seed"] % (1 << 64)
        self.releases = {row["number"]: (row["plan"], row["arm"], row["tokens"], row["noisy_sum"]) for row in
                         self.db.execute("SELECT * FROM release WHERE campaign = ? ORDER BY number", one)}
        self.means = dict(self.db.execute("SELECT number, mean FROM release WHERE campaign = ?", one).fetchall())
        self.noise = defaultdict(list)
        for row in self.db.execute("SELECT * FROM release_noise WHERE campaign = ? ORDER BY release, position", one):
            self.noise[row["release"]].append((row["scale"], row["count"]))
        self.plans = {row["number"]: [] for row in
                      self.db.execute("SELECT number FROM plan WHERE campaign = ? ORDER BY number", one)}
        for row in self.db.execute("SELECT * FROM plan_want WHERE campaign = ? ORDER BY plan, position", one):
            self.plans[row["plan"]].append((row["arm"], row["tokens"]))
        self.standings = [tuple(row) for row in self.db.execute(
            "SELECT arm, class, tokens, mean, radius FROM standing WHERE campaign = ? ORDER BY arm", one)]
        self.decisions = [row["number"] for row in
                          self.db.execute("SELECT number FROM decision WHERE campaign = ? ORDER BY number", one)]


def numbered(what, numbers):
    if sorted(numbers) != list(range(1, len(numbers) + 1)):
        yield f"{what} are numbered {sorted(numbers)[:20]}..., expected 1 to {len(numbers)} without a gap"


def of_database(name, db):
    for found, in db.execute("PRAGMA integrity_check"):
        if found != "ok":
            yield f"{name}: integrity_check: {found}"
    for broken in db.execute("PRAGMA foreign_key_check"):
        yield f"{name}: foreign key of {tuple(broken)}"


def of_epochs(broker, mechanism, epsilon_micro):
    """Every want has one release, which adds exactly its tokens; the ledger covers the noise."""
    wanted = {(plan, arm): tokens for plan, wants in broker.plans.items() for arm, tokens in wants}
    total, count, seen = defaultdict(int), defaultdict(int), set()
    for number, (plan, arm, tokens, _) in sorted(broker.releases.items()):
        if (plan, arm) in seen or (plan, arm) not in wanted:
            yield f"release {number}: arm {arm} of plan {plan} was released before or never planned"
            continue
        seen.add((plan, arm))
        if tokens != total[arm] + wanted[plan, arm]:
            yield f"release {number}: {tokens} tokens; expected {total[arm]} and {wanted[plan, arm]} more"
        total[arm], count[arm] = tokens, count[arm] + 1
        if broker.nth[number] != count[arm]:
            yield f"release {number}: number {broker.nth[number]} of arm {arm}; expected {count[arm]}"
    for arm, releases in count.items():
        spent, lost = broker.spent.get(arm, (0, 0))
        least = LEAST_SPENT[mechanism](releases, epsilon_micro)
        if not least <= spent <= epsilon_micro or lost != 0:
            yield (f"arm {arm}: {spent} micro-epsilon spent, {lost} of it lost; expected at least {least}, at most "
                   f"{epsilon_micro}, and none lost")
    unfinished = wanted.keys() - seen
    open_tokens = sum(wanted[place] for place in unfinished)
    if not sum(total.values()) <= broker.tokens < sum(total.values()) + max(open_tokens, 1):
        yield (f"{broker.tokens} tokens were accepted; {sum(total.values())} are released, "
               f"{open_tokens} were planned and not released")


def of_copies(broker, thirdparty, mechanism, brokers):
    """Both parties have the same bytes, and the chains over them are those that the third-party reports."""
    if broker.releases != thirdparty.releases:
        different = {number for number in broker.releases.keys() | thirdparty.releases.keys()
                     if broker.releases.get(number) != thirdparty.releases.get(number)}
        yield f"releases {sorted(different)[:20]} differ between the two databases"
    if broker.plans != {number: wants for number, wants in thirdparty.plans.items() if number in broker.plans}:
        yield "plans differ between the two databases"
    if broker.seed != thirdparty.seed:
        yield f"the policy's seed is {broker.seed} at the broker, {thirdparty.seed} at the third-party"
    noise = {number: [(scale, brokers * count) for scale, count in NOISE[mechanism](nth)]
             for number, nth in broker.nth.items()}
    if noise != {number: thirdparty.noise[number] for number in thirdparty.releases}:
        yield "the noise at the third-party is not the mechanism's"
    for number, (_, _, tokens, noisy_sum) in thirdparty.releases.items():
        if abs(thirdparty.means[number] - noisy_sum / tokens / GRID) > 1e-12:
            yield f"release {number}: mean {thirdparty.means[number]} of {noisy_sum} over {tokens} tokens"
    releases = chain(release_record(number, *row, noise[number]) for number, row in sorted(broker.releases.items()))
    plans = chain(plan_record(number, wants) for number, wants in sorted(broker.plans.items()))
    row = thirdparty.row
    if (row["releases"], row["releases_hash"]) != (len(broker.releases), releases):
        yield f"the chain over {row['releases']} releases does not end in the third-party's hash"
    if (row["plans_accepted"], row["plans_hash"]) != (len(broker.plans), plans):
        yield f"the chain over {row['plans_accepted']} plans does not end in the third-party's hash"


def of_answers(broker, thirdparty, export, finished, mechanism):
    """The requester received what is stored."""
    told = {r.number: (r.plan, r.arm, r.tokens, r.noisy_sum) for part in export for r in part.releases}
    if mechanism != "none" and told != broker.releases:
        yield "the export's releases are not the stored ones"
    if {p.number: [(w.arm, w.tokens) for w in p.wants] for part in export for p in part.plans} != broker.plans:
        yield "the export's plans are not the stored ones"
    rows = [(s.arm, s.rank_class, s.tokens, s.mean, s.radius) for part in export for s in part.standings]
    shown = [(s.arm, s.rank_class, s.tokens, s.mean, s.radius) for s in finished.standings]
    if not sorted(rows) == sorted(shown) == sorted(broker.standings) == sorted(thirdparty.standings):
        yield "the standings of the export, the watcher, the broker and the third-party are not the same"
    if finished.progress.tokens != broker.tokens:
        yield f"{finished.progress.tokens} tokens were told, {broker.tokens} are stored"


def of_anchor(broker, path):
    _, _, _, commit, digest, *_ = path.read_text().split()
    if (int(commit), bytes.fromhex(digest)) != tuple(broker.commit):
        yield f"the anchor is at commit {int(commit)}, the database at {broker.commit[0]}, or their hashes differ"


def of_replay(path):
    done = subprocess.run([str(PROGRAMS["crowdveil"]), "replay", str(path)], capture_output=True, text=True)
    if done.returncode != 0:
        yield f"crowdveil replay: {done.stderr.strip() or done.stdout.strip()}"


def findings(deployment, campaign, export, finished):
    folders = {name: Path(deployment.state(f"{name}-state")) for name in ("broker", "thirdparty")}
    for name, folder in folders.items():
        log = folder / f"{name}.db-wal"
        if log.exists() and log.stat().st_size > 0:
            yield f"{log} was left behind by an orderly stop"
    with tempfile.TemporaryDirectory() as copies:
        paths = {name: Path(shutil.copytree(folder, Path(copies) / name)) / f"{name}.db"
                 for name, folder in folders.items()}
        mechanism, epsilon_micro = export[0].spec.mechanism.name, export[0].spec.epsilon_micro
        broker, thirdparty = Broker(paths["broker"], campaign), Thirdparty(paths["thirdparty"], campaign)
        yield from of_database("broker.db", broker.db)
        yield from of_database("thirdparty.db", thirdparty.db)
        yield from numbered("releases", broker.releases)
        yield from numbered("plans", broker.plans)
        yield from numbered("decisions", thirdparty.decisions)
        for table, rows in broker.left.items():
            if rows:
                yield f"{rows} rows of the ended campaign are left in {table}"
        yield from of_epochs(broker, mechanism, epsilon_micro)
        yield from of_copies(broker, thirdparty, mechanism, max(export[0].spec.brokers, 1))
        yield from of_answers(broker, thirdparty, export, finished, mechanism)
        yield from of_anchor(broker, Path(deployment.anchor))
        broker.db.close()
        thirdparty.db.close()
        yield from of_replay(paths["thirdparty"])


def audit(deployment, campaign, export, finished):
    """Both daemons have stopped, the campaign has ended. `export`: its parts, `finished`: the last message."""
    found = list(findings(deployment, campaign, export, finished))
    assert not found, "\n".join(found)
