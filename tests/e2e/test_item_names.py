# SPDX-License-Identifier: Apache-2.0
"""Names that look alike are one, on every side; a name does not turn the line that it is shown in."""
import csv
import io
import json
import re
import unicodedata

import pytest

import crowdveil as package
from client.requester import spec
from crowdveil import Refused
from harness.commands import as_requester, crowdveil

NFC, NFD = "Caf\u00e9", "Cafe\u0301"
HEBREW, ARABIC = "\u05e9\u05dc\u05d5\u05dd 12", "\u0645\u0642\u0647\u0649"
FSI, PDI = "\u2068", "\u2069"
UNSEEN = {"override": "\u202e", "isolate": "\u2067", "zero-width": "\u200b", "soft hyphen": "\u00ad"}


def campaign(folder, items, share=False):
    (folder / "names.yaml").write_text(
        f"campaign: {NFD}\nitems: {items}\npolicy: {{name: ppar, alpha: 0.2, tokens_per_round: 500}}\n"
        f"privacy: {{epsilon: 2, share_names: {str(share).lower()}}}\nlimits: {{tokens: 200000}}\n", encoding="utf-8")
    return folder / "names.yaml"


def rows_of(folder, rows, name="r.csv"):
    """The section `items` for this file."""
    lines = [json.dumps({"film": film, "score": score}, ensure_ascii=False) if name.endswith("jsonl")
             else f"{film},{score}" for film, score in rows]
    head = [] if name.endswith("jsonl") else ["film,score"]
    (folder / name).write_text("".join(f"{line}\n" for line in head + lines), encoding="utf-8")
    source = "jsonl" if name.endswith("jsonl") else "csv"
    return f"{{source: {source}, path: {name}, item: film, score: score, scale: [0, 1], replacement: true}}"


@pytest.mark.parametrize("name", ["r.csv", "r.jsonl"])
def test_two_spellings_are_one_item_and_both_lines_are_said(tmp_path, name):
    first = 1 if name.endswith("jsonl") else 2
    campaign(tmp_path, rows_of(tmp_path, [(NFC, 1), ("Bar", 0), (NFD, 1), ("Bar\u00a0", 0)], name))
    done = crowdveil("up", "names.yaml", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["classes"] == [[NFC], ["Bar"]]
    assert f'{name}: "{NFC}" of line {first} and of line {first + 2} are one item, typed with other' in done.stderr
    assert f'{name}: "Bar" of line {first + 1} and of line {first + 3} are one item' in done.stderr
    notes = json.loads(crowdveil("check", "names.yaml", "--json", cwd=tmp_path).stdout)["notes"]
    assert sum("are one item" in note for note in notes) == 2


@pytest.mark.parametrize("what", UNSEEN)
def test_what_cannot_be_seen_is_refused_with_its_place(tmp_path, what):
    bad, code = f"Bar{UNSEEN[what]}fly", f"U+{ord(UNSEEN[what]):04X}"
    rows, listed = [("a", 1), (bad, 0)], f'{{list: [{{name: a, mean: 1}}, {{name: "{bad}", mean: 0}}]}}'
    for items, place in [(rows_of(tmp_path, rows), "r.csv:3: film "),
                         (rows_of(tmp_path, rows, "r.jsonl"), "r.jsonl:2: film "),
                         (listed, "names.yaml:2:43: items.list.name ")]:
        campaign(tmp_path, items)
        done = crowdveil("check", "names.yaml", cwd=tmp_path)
        assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1
        assert place in done.stderr and f"has {code}, which " in done.stderr
        assert "\u202e" not in done.stderr and "\u2067" not in done.stderr


def test_a_gateway_that_has_another_spelling_serves_the_same_items(deployment, tmp_path):
    """The arms are numbered by the names' bytes; in NFD the order would be another one."""
    means = {NFC: .9, "Cafeteria": .1, "Z": .5}
    for folder, form in (("ours", "NFC"), ("theirs", "NFD")):
        (tmp_path / folder).mkdir()
        rows = [(unicodedata.normalize(form, film), int(row < 100 * mean)) for film, mean in means.items()
                for row in range(100)]
        campaign(tmp_path / folder, rows_of(tmp_path / folder, rows))
    deployment.up()
    gateway = deployment.start_worker("gateway/1-200000", tmp_path / "theirs" / "names.yaml")
    done = crowdveil("submit", "names.yaml", "--watch", *as_requester(deployment), cwd=tmp_path / "ours")
    assert done.returncode == 0, done.stderr
    classes = [line.split()[:2] for line in (done.stdout + done.stderr).splitlines() if re.match(" +[123]  ", line)]
    assert classes == [["1", NFC], ["2", "Z"], ["3", "Cafeteria"]]
    assert gateway.wait() == 0


def test_the_broker_takes_normal_names_only(deployment):
    deployment.up()
    with deployment.requester() as requester:
        for place, name in (("name", NFD), ("name", "test "), ("names", NFD), ("names", f"a{UNSEEN['zero-width']}"),
                            ("names", f"a{UNSEEN['override']}b")):
            the_spec = spec(2, names=["a", "b"])
            if place == "name":
                the_spec.name = name
            else:
                the_spec.names[1] = name
            with pytest.raises(Refused, match="is not in its normal form; expected Unicode's NFC, no blanks at its"):
                requester.submit(the_spec)
    with deployment.requester() as requester:
        assert requester.submit(package.Spec(f" {NFD}", 2, names=[f"{NFD} ", ARABIC]).message()).campaign == 1
        description, _ = requester.describe(1)
        assert description.name == NFC and list(description.names) == [NFC, ARABIC]
    with pytest.raises(package.Error, match=re.escape("'a\\u202e' has U+202E, which turns the direction")):
        package.Spec("test", 1, names=["a\u202e"]).message()


def test_a_shown_name_does_not_turn_its_line(tmp_path):
    """Isolated for people if it runs from right to left, with each column in its place; alone for programs."""
    means = {HEBREW: .9, f"C++ {ARABIC}": .5, "\u6771\u4eac": .1, "Bar": .1}
    listed = ", ".join(f'{{name: "{name}", mean: {mean}}}' for name, mean in means.items())
    campaign(tmp_path, f"{{rewards: bernoulli, seed: 1, list: [{listed}]}}", share=True)
    done = crowdveil("up", "names.yaml", "--json", "--seed", 1, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert set(json.loads(done.stdout)["item_tokens"]) == set(means) and FSI not in done.stdout
    rows = [line for line in done.stderr.splitlines() if re.match(r" +\d  .* \u00b1 ", line)]
    for name in means:
        isolated = f"{FSI}{name}{PDI}" if name in (HEBREW, f"C++ {ARABIC}") else name
        assert sum(f"  {isolated} " in row for row in rows) == 1, (name, rows)
    plain = [re.sub(f"[{FSI}{PDI}]", "", row).replace("\u6771\u4eac", "abcd") for row in rows]
    assert len({row.index("\u00b1") for row in plain}) == 1, plain
    assert done.stderr.count(FSI) == done.stderr.count(PDI) > 0


def test_logs_status_and_exports_of_a_name_from_right_to_left(deployment, tmp_path):
    items = f'[{{name: "{HEBREW}", mean: .9}}, {{name: b, mean: .1}}]'
    campaign(tmp_path, f"{{rewards: bernoulli, seed: 1, list: {items}}}", share=True)
    text = (tmp_path / "names.yaml").read_text(encoding="utf-8").replace(NFD, HEBREW)
    (tmp_path / "names.yaml").write_text(text, encoding="utf-8")
    deployment.up()
    gateway = deployment.start_worker("gateway/1-200000", tmp_path / "names.yaml")
    assert crowdveil("submit", "names.yaml", "--watch", *as_requester(deployment), cwd=tmp_path).returncode == 0
    deployment.broker.wait_for(f'campaign 1 "{FSI}{HEBREW}{PDI}"')
    deployment.thirdparty.wait_for(f"campaign 1 .{FSI}{HEBREW}{PDI}. is open: 2 arms")
    told = crowdveil("status", *as_requester(deployment), cwd=tmp_path).stdout
    assert f"       1  {FSI}{HEBREW}{PDI}{' ' * 15}complete" in told
    assert json.loads(crowdveil("status", "--json", *as_requester(deployment)).stdout)["campaigns"][0]["name"] == HEBREW
    table = crowdveil("export", "1", "--format", "csv", *as_requester(deployment), cwd=tmp_path).stdout
    assert HEBREW in {field for row in csv.reader(io.StringIO(table)) for field in row}
    assert gateway.wait() == 0


def test_gold_items_and_comparisons_know_an_item_by_each_spelling(tmp_path):
    items = f'{{rewards: bernoulli, seed: 1, list: [{{name: "{NFC}", mean: .9}}, {{name: b, mean: .1}}]}}'
    for known, said in ((f'"{NFD}": 1, "b ": 0', "every item is gold; expected at least one item to score"),
                        (f'"{NFD}": 1, "{NFC}": 0', f'gold.items names "{NFC}" twice; expected each item once')):
        with open(campaign(tmp_path, items), "a", encoding="utf-8") as file:
            file.write(f"gold: {{tolerance: .1, items: {{{known}}}}}\n")
        done = crowdveil("check", "names.yaml", cwd=tmp_path)
        assert done.returncode == 2 and said in done.stderr, done.stderr
    (tmp_path / "duels.csv").write_text(f"a,b,won\n{NFC},Bar,1\nBar ,{NFD},0\n", encoding="utf-8")
    path = campaign(tmp_path, "{source: csv, path: duels.csv, item: a, versus: b, score: won, replacement: true}")
    text = path.read_text(encoding="utf-8").replace("{name: ppar, alpha: 0.2, tokens_per_round: 500}", "pair-sort")
    path.write_text(text.replace("privacy: {", "privacy: {mechanism: segments, "), encoding="utf-8")
    done = crowdveil("check", "names.yaml", cwd=tmp_path)
    assert done.returncode == 0 and "2 items" in done.stdout, done.stderr
    for name in (NFC, "Bar"):
        assert f'duels.csv: "{name}" of line 2 and of line 3 are one item, typed with other' in done.stdout
