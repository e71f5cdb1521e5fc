# SPDX-License-Identifier: Apache-2.0
"""Network namespaces: the crowd cannot reach the third-party, and a campaign runs nevertheless."""
from client.requester import classes, end_name, spec
from harness.namespaces import namespaces  # noqa: F401  (a fixture)

CONNECT = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 2)"


def test_the_crowd_cannot_reach_the_third_party(deployment, namespaces, tmp_path, worker_program):
    (tmp_path / "campaign.yaml").write_text(
        "campaign: test\nitems: {list: [{name: a, mean: 0.9}, {name: b, mean: 0.2}]}\n"
        "policy: {name: ppar, alpha: 0.2}\nprivacy: {epsilon: 1}\n")
    deployment.use_system_clock()
    deployment.start_thirdparty({"listen": "10.213.2.2:0"}, prefix=namespaces.inside("rank"))
    deployment.start_broker({"listen": "0.0.0.0:0"}, prefix=namespaces.inside("broker"))
    port = deployment.broker.address.rsplit(":", 1)[1]
    thirdparty_port = deployment.thirdparty.address.rsplit(":", 1)[1]

    reach = namespaces.run("crowd", "/usr/bin/python3", "-c", CONNECT, "10.213.1.1", port)
    assert reach.returncode == 0, f"the crowd must reach the broker: {reach.stderr}"
    reach = namespaces.run("broker", "/usr/bin/python3", "-c", CONNECT, "10.213.2.2", thirdparty_port)
    assert reach.returncode == 0, f"the broker must reach the third-party: {reach.stderr}"
    reach = namespaces.run("crowd", "/usr/bin/python3", "-c", CONNECT, "10.213.2.2", thirdparty_port)
    assert reach.returncode != 0 and "rror" in reach.stderr, "the crowd must not reach the third-party"

    with deployment.requester(address=f"10.213.3.1:{port}") as requester:
        campaign = requester.submit(
            spec(2, tokens=20_000, policy_params={"alpha": .2, "tokens_per_round": 500})).campaign
        worker = deployment.start_worker("gateway/1-20000", tmp_path / "campaign.yaml",
                                         {"broker": f"10.213.1.1:{port}"}, prefix=namespaces.inside("crowd"))
        finished = requester.watch(campaign)
    assert end_name(finished.progress.end) == "complete"
    assert classes(finished) == ({1: [0], 2: [1]}, [])
    assert worker.wait() == 0
