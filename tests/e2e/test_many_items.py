# SPDX-License-Identifier: Apache-2.0
"""Campaigns of tens of thousands of items, with names as long as names may be."""
import json

import pytest

from client.requester import spec
from crowdveil import Refused
from harness.commands import crowdveil

ITEMS, ROWS = 10_000, 2


def name(item):
    """255 bytes of UTF-8 for some, short ones for most."""
    text = f"Müsli {item:05}"
    return text if item % 1000 else (text + " · " + "lang " * 60).encode()[:254].decode(errors="ignore").rstrip() + "!"


def campaign_of(folder):
    names = [name(item) for item in range(ITEMS)]
    assert max(len(text.encode()) for text in names) == 255
    with open(folder / "scores.csv", "w", encoding="utf-8") as file:
        file.write("item,score\n")
        file.writelines(f'"{text}",{(at + row) % 10}\n' for at, text in enumerate(names) for row in range(ROWS))
    (folder / "campaign.yaml").write_text(
        "campaign: many\n"
        "items: {source: csv, path: scores.csv, item: item, score: score, scale: [0, 9], replacement: true}\n"
        "policy: {name: ppar, alpha: 0.1, tokens_per_round: 1}\n"
        "privacy: {mechanism: hybrid, epsilon: 1, tokens_per_worker: 1, share_names: true}\n"
        f"limits: {{tokens: {ITEMS * ROWS}, idle: 60s}}\n", encoding="utf-8")
    return names


def test_ten_thousand_items_with_long_names(tmp_path):
    names = campaign_of(tmp_path)
    done = crowdveil("up", tmp_path / "campaign.yaml", "--json", "--seed", 1, cwd=tmp_path, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    result = json.loads(done.stdout)
    listed = [text for group in result["classes"] for text in group] + result["undecided"]
    assert sorted(listed) == sorted(names), "expected each item once, by its whole name"
    assert ITEMS <= result["tokens"] <= ITEMS * ROWS and result["rounds"] > 1
    assert sum(result["item_tokens"].values()) == result["tokens"] and min(result["item_tokens"].values()) > 0
    assert f"... and {ITEMS - 1000} more of {ITEMS} items; " in done.stderr
    assert max(map(len, done.stderr.splitlines())) < 8000, "expected a line of names to be cut"


def test_an_operator_bounds_the_items(deployment):
    """The default permits 4,096 items, and frames of that many of the longest names."""
    deployment.up()
    with deployment.requester() as requester:
        with pytest.raises(Refused, match=r"4097 arms are over the broker's limit of 4096 \(limits.arms\)"):
            requester.submit(spec(4097))
        assert requester.submit(spec(4096, names=[f"{at:0255d}" for at in range(4096)])).campaign == 1
        with pytest.raises(ConnectionError, match="not a valid message"):
            long = spec(2, names=["a", "b"])
            long.names[1] = "b" * 256
            requester.submit(long)


def test_an_operator_permits_more_items(deployment):
    deployment.up(broker={"limits": {"arms": 10_000}}, thirdparty={"limits": {"arms": 9_999}})
    with deployment.requester() as requester:
        first = requester.submit(spec(9_999, policy_params={"alpha": 0})).campaign
        second = requester.submit(spec(10_000, policy_params={"alpha": 0})).campaign
    deployment.thirdparty.wait_for(f"campaign {first} .* is open: 9999 arms")
    deployment.broker.wait_for(f'campaign {second} .*: refused by the third-party: 10000 arms; expected at most 9999')
