# SPDX-License-Identifier: Apache-2.0
"""Whatever a text of somebody else holds, it turns no line, hides nothing and controls no terminal."""
import csv
import io
import json
import os
import re
import shutil

import pytest

from harness.commands import as_requester, crowdveil
from harness.daemon import ROOT

FIRST = ROOT / "deploy/campaigns/first.yaml"
EVIL = "a\u202eb\u2066c\u200bd\x1b[31me\x9bf\u00adg"
# overrides, isolates, zero width, controls; but for the isolates in which a name is shown
RAW = re.compile("[\u202a-\u202e\u2066-\u2069\u200b\u2060\ufeff\u00ad\x00-\x09\x0b-\x1f\x7f-\x9f]")


def is_harmless(*texts):
    return not any(RAW.search(text) for text in texts)


def test_paths_are_shown_cleaned(tmp_path):
    path = tmp_path / f"{EVIL}.yaml"
    shutil.copy(FIRST, path)
    for words in (("check", path), ("check", "--json", path), ("check", tmp_path / f"no{EVIL}.yaml"),
                  ("up", path, "--state", tmp_path / "state"), ("up", tmp_path / f"{EVIL}2.yaml"),
                  ("pki", "ca", "--dir", tmp_path / f"p\u202e{words_of()}"), ("doctor", path), ("verify", path),
                  ("compare", path, path), ("replay", path), ("audit", path)):
        done = crowdveil(*words)
        assert is_harmless(done.stdout, done.stderr), (words[0], done.stdout, done.stderr)
    assert json.loads(crowdveil("check", "--json", path).stdout)["file"] == str(path)


def words_of():
    return "\u2067q\u2068"


@pytest.mark.parametrize("content", [
    f"campaign: {EVIL}\n", f"campaign: x\n{EVIL}: 1\n", f"campaign: x\nitems: {{list: [{{name: '{EVIL}'}}]}}\n",
    f"campaign: x\npolicy: {{name: '{EVIL}'}}\n", f"campaign: x\npolicy: {{name: ppar, '{EVIL}': 1}}\n",
    f"campaign: [{EVIL}\n", f"{EVIL}\n", f"campaign: x\nprivacy: {{mechanism: '{EVIL}'}}\n",
    f"campaign: x\nitems: {{source: csv, path: '{EVIL}', item: '{EVIL}', score: '{EVIL}'}}\n",
    f"campaign: x\nlimits: {{idle: '{EVIL}'}}\n"], ids=range(10))
def test_a_campaign_file_is_quoted_cleaned(tmp_path, content):
    path = tmp_path / "c.yaml"
    for text in (content, content.replace("\x1b", "").replace("\x9b", "")):
        path.write_text(text, encoding="utf-8")
        for more in ((), ("--json",)):
            done = crowdveil("check", path, *more)
            assert done.returncode == 2 and is_harmless(done.stdout, done.stderr), done.stderr


def test_a_data_file_is_quoted_cleaned(tmp_path):
    campaign = ("campaign: t\nitems: {source: csv, path: d.csv, item: item, score: score, scale: [0, 1],"
                " replacement: true}\npolicy: {name: ppar, alpha: 0.1}\nprivacy: {epsilon: 1}\n")
    (tmp_path / "t.yaml").write_text(campaign)
    for data in (f"item,{EVIL}\na,1\n", f"item,score\n{EVIL},1\nb,0\n", f"item,score\na,{EVIL}\n",
                 f"item,score\na,1,{EVIL}\n", f"item,score\na\u2067b,1\n", "item,score\na,1\u202e\n"):
        (tmp_path / "d.csv").write_text(data, encoding="utf-8")
        done = crowdveil("check", "t.yaml", cwd=tmp_path)
        assert done.returncode == 2 and is_harmless(done.stdout, done.stderr), done.stderr


def test_names_of_a_foreign_result_are_shown_cleaned(tmp_path):
    """A file of a result comes from anybody; its names are kept in JSON, as escapes."""
    done = crowdveil("up", FIRST, "--json")
    result = json.loads(done.stdout)
    old = result["classes"][0][0]
    text = json.dumps(result).replace(json.dumps(old), json.dumps(f"x\u202e\u2066{old}\u200b"))
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text(text)
    done = crowdveil("compare", "a.json", "b.json", cwd=tmp_path)
    assert done.returncode == 0 and is_harmless(done.stdout, done.stderr), done.stderr
    assert f"x??????{old}???" in done.stdout
    done = crowdveil("compare", "a.json", "b.json", "--json", cwd=tmp_path)
    assert is_harmless(done.stdout) and f"x\u202e\u2066{old}\u200b" in json.dumps(json.loads(done.stdout),
                                                                                 ensure_ascii=False)


NAMES = ["=1+1", "-Foo", "@x", "+49 30", "'quoted", "'=2", "Roma", "a,\"b\""]


def test_an_exported_name_is_no_formula_and_is_read_back(deployment, tmp_path):
    """Of a campaign in which the broker knows the names; the export's items are a data file's again."""
    rows = "".join(f"{json.dumps(name)},{place / 8}\n".replace('\\"', '""') for place, name in enumerate(NAMES))
    (tmp_path / "d.csv").write_text("item,score\n" + rows.replace('"\'=2"', '"\'\'=2"'))
    (tmp_path / "t.yaml").write_text(
        "campaign: t\nitems: {source: csv, path: d.csv, item: item, score: score, scale: [0, 1], replacement: true}\n"
        "policy: {name: ppar, alpha: 0.2, tokens_per_round: 50}\nprivacy: {epsilon: 2, share_names: true}\n"
        "limits: {tokens: 20000}\n")
    deployment.up()
    gateway = deployment.start_worker("gateway/1-20000", tmp_path / "t.yaml")
    options = as_requester(deployment)
    assert crowdveil("submit", "t.yaml", "--watch", *options, cwd=tmp_path).returncode == 0
    gateway.wait()
    told = crowdveil("export", "--format", "csv", "--what", "result", *options)
    assert told.returncode == 0, told.stderr
    table = list(csv.DictReader(io.StringIO(told.stdout)))
    cells = [row["item"] for row in table]
    assert not any(re.match(r"[-=+@\t\r]", cell) for cell in cells) and "'=1+1" in cells and "'quoted" in cells
    assert all(re.fullmatch(r"-?[0-9.e+-]*", row["mean"]) for row in table), "numbers stay numbers"
    again = tmp_path / "again"
    again.mkdir()
    with (again / "d.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("item", "score"), *((cell, .5) for cell in cells)])
    text = (tmp_path / "t.yaml").read_text().replace("tokens: 20000", "tokens: 400")
    (again / "t.yaml").write_text(text)
    done = crowdveil("up", "t.yaml", "--json", cwd=again)
    result = json.loads(done.stdout)
    assert sorted(result["item_tokens"]) == sorted(NAMES), done.stderr


SECRET = "root:$y$j9T$abc:19000"
SHADOWS = [f"{SECRET}\nx\n", f"item,score\n{SECRET},1\nb,{SECRET}\n", f"item,score\na,1,{SECRET}\n",
           f"left,right,score\na,b,{SECRET}\n"]


@pytest.mark.parametrize("data", SHADOWS, ids=range(4))
@pytest.mark.parametrize("name", ["d.csv", "d.jsonl"])
def test_a_data_file_is_quoted_to_its_owner_only(tmp_path, data, name):
    """Whoever writes a campaign names its path; who runs it with more rights is not to tell what is in it."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    source = "jsonl" if name.endswith("jsonl") else "csv"
    (tmp_path / "t.yaml").write_text(
        f"campaign: t\nitems: {{source: {source}, path: {name}, item: item, score: score, scale: [0, 1],"
        f" replacement: true}}\npolicy: {{name: ppar, alpha: 0.1}}\nprivacy: {{epsilon: 1}}\n")
    path = tmp_path / name
    path.write_text(data if source == "csv" else json.dumps({"item": "a", "score": SECRET, SECRET: 1}) + "\n")
    for owners, sudo, shown in (((0, 0), None, True), ((1234, 0), None, False), ((0, 1234), None, False),
                                ((1234, 1234), None, False), ((0, 0), "1234", False), ((1234, 1234), "1234", True)):
        os.chown(path, owners[0], -1)
        os.chown(tmp_path / "t.yaml", owners[1], -1)
        env = {**os.environ, **({} if sudo is None else {"SUDO_UID": sudo})}
        for words in (("check", "t.yaml"), ("check", "t.yaml", "--json"), ("plan", "t.yaml"), ("up", "t.yaml")):
            done = crowdveil(*words, cwd=tmp_path, env=env)
            assert done.returncode == 2
            told = done.stdout + done.stderr
            assert "root" not in told or shown, told
            assert name in told and (shown or "only the file's owner is told what is in it" in told), told
