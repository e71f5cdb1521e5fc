# SPDX-License-Identifier: Apache-2.0
"""Checks for `crowdveil check`: what is wrong with a campaign file, and the reference of its keys."""
import json
import subprocess
import sys

import pytest

from harness.commands import crowdveil
from harness.daemon import PROGRAMS, ROOT

FILE = """campaign: restaurants
items: {ladder: {count: 4, mean: 0.9, distance: 0.2}}
policy: {name: ppar, alpha: 0.1}
privacy: {mechanism: segments, epsilon: 0.5}
"""

WRONG = {
    "an unknown section": (FILE + "nonsense: 1\n",
                           'campaign.yaml:5:1: unknown key "nonsense"; expected campaign, items'),
    "an unknown mechanism": (FILE.replace("segments", "gauss"),
                             'campaign.yaml:4: unknown mechanism "gauss"; expected one of hybrid, none'),
    "a wrong parameter of a mechanism": (FILE.replace("segments", "{name: kary, k: 4}"),
                                         "campaign.yaml:4: mechanism kary: k is 4; expected an odd number"),
    "an unknown privatizer": (FILE.replace("epsilon: 0.5", "epsilon: 0.5, privatizer: {name: coin}"),
                              'campaign.yaml:4: unknown privatizer "coin"; expected'),
    "two brokers without noise": (FILE.replace("segments, epsilon: 0.5", "none, brokers: 2"),
                                  "campaign.yaml:4:1: mechanism none with two brokers; expected one whose noise"),
    "two brokers and tokens beyond a score": (
        FILE.replace("epsilon: 0.5", "epsilon: 0.5, brokers: 2, privatizer: {name: laplace, epsilon: 1}"),
        "campaign.yaml:4:1: privatizer laplace with two brokers; expected one whose tokens lie from 0 to 1"),
    "two brokers and gold": (FILE.replace("epsilon: 0.5", "epsilon: 0.5, brokers: 2") +
                             "gold: {tolerance: 0.1, items: {item 1: 0.9}}\n",
                             "campaign.yaml:5:1: gold items in a campaign with two brokers, of which none sees an "
                             "answer; expected a campaign without it, or no gold items"),
    "bits for one broker": (FILE.replace("epsilon: 0.5", "epsilon: 0.5, score_bits: 1"),
                            "campaign.yaml:4:46: privacy.score_bits with one broker; expected privacy.brokers: 2"),
    "a wrong parameter of a policy": (FILE.replace("alpha: 0.1", "alpha: -1"),
                                      "campaign.yaml:3:29: alpha is -1; expected a number of at least 0"),
    "a missing data file": (FILE.replace("{ladder: {count: 4, mean: 0.9, distance: 0.2}}",
                                         "{source: csv, path: none.csv, item: i, score: s}"), "none.csv"),
    "no YAML": ("campaign: [\n", "campaign.yaml:"),
}


@pytest.fixture
def written(tmp_path):
    def write(text):
        (tmp_path / "campaign.yaml").write_text(text)
        return tmp_path

    return write


@pytest.mark.parametrize("what", WRONG)
@pytest.mark.parametrize("command", [("check",), ("up", "--check-config"), ("up",)], ids=" ".join)
def test_a_wrong_campaign_is_one_line_before_anything_starts(written, what, command):
    text, expected = WRONG[what]
    folder = written(text)
    done = crowdveil(*command, "campaign.yaml", cwd=folder)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.count("\n") == 1 and expected in done.stderr
    assert [path.name for path in folder.iterdir()] == ["campaign.yaml"]


@pytest.mark.parametrize("bits", [1, 15])
def test_a_campaign_with_two_brokers_is_described(written, bits):
    text = FILE.replace("epsilon: 0.5", "epsilon: 0.5, brokers: 2").replace(
        "distance: 0.2", f"distance: 0.2, rewards: {'bernoulli' if bits == 1 else 'beta'}")
    done = crowdveil("check", "campaign.yaml", cwd=written(text))
    assert done.returncode == 0 and done.stderr == ""
    assert f"epsilon 0.5 a score, two brokers with shares of {bits} bit" in done.stdout
    assert "only a broker that is configured with cobroker runs it\n" in done.stdout


def test_a_valid_campaign_is_described(written):
    folder = written(FILE)
    done = crowdveil("check", "campaign.yaml", cwd=folder)
    assert done.returncode == 0 and done.stderr == ""
    assert done.stdout == ("campaign.yaml: valid: campaign restaurants, 4 items, policy ppar, mechanism segments, "
                           "privatizer none, epsilon 0.5 a score\n")
    told = json.loads(crowdveil("check", "--json", "campaign.yaml", cwd=folder).stdout)
    assert told["valid"] and told["items"] == 4 and told["epsilon_micro"] == 500000 and told["broker_needs"] is None
    wrong = crowdveil("check", "--json", "campaign.yaml", cwd=written(FILE + "nonsense: 1\n"))
    told = json.loads(wrong.stdout)
    assert wrong.returncode == 2 and not told["valid"] and told["message"].startswith("campaign.yaml:5:1: unknown key")


def test_what_an_operator_has_to_permit_is_said(written):
    exact = FILE.replace("epsilon: 0.5", "third_party: trusted").replace("segments", "none")
    assert "limits.trusted_thirdparty: true" in crowdveil("check", "campaign.yaml", cwd=written(exact)).stdout
    unsound = FILE.replace("segments", "hybrid-printed")
    assert "unsafe_mechanisms" in crowdveil("check", "campaign.yaml", cwd=written(unsound)).stdout


def reference():
    return json.loads(crowdveil("check", "--keys", "--json").stdout)


def every_key(told):
    for group in told.values():
        for section in group:
            for key in section["keys"]:
                yield section["name"], key


def test_every_key_says_what_it_is_for_and_has_an_example():
    told = reference()
    assert {"items", "privacy", "limits", "gold", "graph", "workers"} <= {s["name"] for s in told["sections"]}
    mute = [f"{section}.{key['key']}" for section, key in every_key(told)
            if not key["help"] or not key["expected"] or (key["example"] is None and key["key"] != "experiment")]
    assert mute == []
    printed = crowdveil("check", "--keys").stdout
    assert all(key["help"] in " ".join(printed.split()) for _, key in every_key(told))


def test_the_reference_in_the_documents_is_the_programs(tmp_path):
    page = tmp_path / "campaign.md"
    subprocess.run([sys.executable, ROOT / "deploy/man/keys.py", page, PROGRAMS["crowdveil"]], check=True)
    assert page.read_text() == (ROOT / "docs/campaign.md").read_text(), \
        "expected docs/campaign.md as `deploy/man/keys.py docs/campaign.md build/deploy/launcher/crowdveil` writes it"


def test_files_and_keys_exclude_each_other():
    for words in ((), ("--keys", "campaign.yaml")):
        done = crowdveil("check", *words)
        assert done.returncode == 2 and done.stderr.count("\n") == 1


def test_a_gateway_checks_its_campaign_file(written, tmp_path):
    written(FILE + "nonsense: 1\n")
    for name in ("ca", "cert", "key"):
        (tmp_path / name).write_text("")
    settings = ["--campaign", "campaign.yaml", "--broker-name", "main", "--requesters", "any", "--state", "state",
                "--tls-ca", "ca", "--tls-cert", "cert", "--tls-key", "key"]
    done = subprocess.run([PROGRAMS["worker"], "--check-config", *settings], cwd=tmp_path, capture_output=True,
                          text=True, timeout=60, check=False)
    assert done.returncode == 2 and 'campaign.yaml:5:1: unknown key "nonsense"' in done.stderr
