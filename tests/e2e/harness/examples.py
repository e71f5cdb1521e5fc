# SPDX-License-Identifier: Apache-2.0
"""An example campaign from its file to its end, and the checks of its records: running the policy again agrees with
it."""
import json
import re
import sqlite3

from harness.commands import crowdveil
from harness.daemon import PROGRAMS, ROOT, Daemon


def verify(export, exact):
    """`verify` agrees with the export, and not once a plan of it is changed; or it says in one line why it cannot
    check."""
    done = crowdveil("verify", export)
    if exact:
        assert done.returncode == 1 and done.stdout == "" and done.stderr.count("\n") == 1
        assert "trusted with exact sums, which a broker does not export" in done.stderr
        assert "crowdveil replay on the third-party's database" in done.stderr
        return
    assert done.returncode == 0, done.stdout + done.stderr
    parts = json.loads(export.read_text())
    parts["plans"][-1]["wants"][-1]["tokens"] += 1
    other = export.with_name("other.json")
    other.write_text(json.dumps(parts))
    done = crowdveil("verify", other)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "the third-party did not follow its policy" in done.stderr


COLUMNS = ["class", "pulls", "share", "noisy mean", "tokens", "truth", "cost", "paid", "still active"]


def without_the_file(text):
    """The output of `watch` without the items' names and what only the file's truth tells."""
    lines = text.strip().split("\n")
    if re.match(r"\d+ of \d+ items decided", lines[0]):  # a ranking's leads with how much is decided
        lines = lines[2:]
    heading, *lines = lines
    end = lines.index("")
    ended = next(at for at, line in enumerate(lines) if line.startswith("ended ") or at == len(lines) - 1)
    ended = ended if any("best effort" in line for line in lines) else end + 1
    columns = [name for name in COLUMNS if name in heading]
    rows = []
    for line in lines[:end]:
        cells = re.sub(r"(?<=\d) ± (?=\d)", "±", line).split()
        if columns[0] == "class":
            told = 0 if "truth" not in columns else 3 if heading.endswith("class") else 2
            cells = [cells[0]] + cells[:len(cells) - told][-4 if "lies safe" in heading else -2:]
        else:
            cells = [cell for name, cell in zip(columns, cells[-len(columns):]) if name != "truth"]
        rows.append(cells)
    sums = [re.sub(r", .+ is the best$", ", it is the best", line) for line in lines[ended:]
            if line.split()[0] not in ("reward", "regret", "accuracy", "bound")]
    return [name for name in columns if name != "truth"], rows, sums


def played(name, folder):
    """Runs the example to its end. Returns what up printed as JSON, the export, and the third-party's sums by arm.
    `watch` with the file prints what up prints, and without it all but names and truth. Verify and replay agree with
    the decisions, verify unless the export has no releases."""
    path = ROOT / f"deploy/campaigns/{name}.yaml"
    state, export = folder / "state", folder / "export.json"
    daemon = Daemon("up", [PROGRAMS["crowdveil"], "up", path, "--json", "--keep", "--state", state], folder / "up.log")
    try:
        daemon.wait_for("Try: crowdveil status .*", timeout=120)
        link = re.search("Try: crowdveil status (.*)", (folder / "up.log").read_text())[1].split()
        done = crowdveil("export", *link, "--output", export)
        assert done.returncode == 0, done.stderr
        watched = crowdveil("watch", *link, "--file", path)
        blind = crowdveil("watch", *link)
        assert watched.returncode == blind.returncode == 0, watched.stderr + blind.stderr
        assert without_the_file(watched.stdout) == without_the_file(blind.stdout), watched.stdout + blind.stdout
        assert "truth" not in blind.stdout
        assert daemon.stop() == 0
    finally:
        daemon.kill()
    database = next(state.glob("**/thirdparty.db"))
    parts = json.loads(export.read_text())
    exact = parts["spec"]["mechanism"]["name"] == "none" and parts["spec"]["privatizer"]["name"] == "none"
    assert bool(parts["releases"]) != exact, "exact sums are not exported"
    done = crowdveil("replay", database)
    assert done.returncode == 0, done.stdout + done.stderr
    verify(export, exact)
    with sqlite3.connect(database) as db:
        sums = dict(db.execute("SELECT arm, noisy_sum FROM release ORDER BY number"))
    lines = (folder / "up.log").read_text().strip().split("\n")
    told = re.findall(r"^(?:ended|reward|regret|accuracy|bound|undecided|paid|tokens) .*$", watched.stdout, re.M)
    assert len(told) >= 3 and set(told) <= set(lines), "up says otherwise"
    return json.loads(next(line for line in reversed(lines) if line.startswith("{"))), parts, sums
