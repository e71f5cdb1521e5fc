# SPDX-License-Identifier: Apache-2.0
"""Scores of programs for two brokers: the worker splits what the program says."""
from client.requester import end_name, spec
from harness.admin import metrics
from harness.daemon import wait_until

ITEMS = """campaign: two
items: {list: [{name: a}, {name: b}]}
policy: {name: ppar, alpha: 0.2, tokens_per_round: 300}
privacy: {epsilon: 4, brokers: 2, tokens_per_worker: 1}
limits: {tokens: 4000, idle: 30s}
"""
PROGRAM = """import json, sys
for line in sys.stdin:
    print(0.9 if json.loads(line)["item"] == 1 else 0.1, flush=True)
"""


def test_a_program_gives_the_scores(deployment, tmp_path):
    (tmp_path / "two.yaml").write_text(ITEMS)
    (tmp_path / "score.py").write_text(PROGRAM)
    deployment.up(cobroker={})
    with deployment.requester() as requester:
        number = requester.submit(spec(2, name="two", two=True, epsilon=4, tokens=4_000, idle_ms=20_000, policy_params={
            "alpha": .2, "tokens_per_round": 300})).campaign
        worker = deployment.start_worker("gateway/1-4000", tmp_path / "two.yaml", {
            "exec": f"python3 {tmp_path / 'score.py'}", "exec_ahead": 32, "accept": {"epsilon": 4},
            "exit_when_done": False, "admin": str(tmp_path / "worker.sock")})
        finished = requester.watch(number)
    assert end_name(finished.progress.end) == "complete", worker.text()
    assert finished.progress.tokens > 0

    def numbers(name):
        return metrics(tmp_path / "worker.sock")[f"crowdveil_worker_{name}"]
    wait_until(lambda: numbers("tokens_accepted_total") >= finished.progress.tokens, "the worker hears of its tokens")
    assert numbers("sessions") == 1 and numbers("sessions_missed_total") == 0
