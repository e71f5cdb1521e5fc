# SPDX-License-Identifier: Apache-2.0
"""What the daemons expose to a monitoring system, and that dashboard, alerts and documentation speak of the same."""
import json
import re
import signal
import ssl
import subprocess
import time

import pytest
import yaml

from client.requester import spec
from harness import exposition
from harness.admin import get, metrics
from harness.daemon import ROOT, wait_until
from harness.standstill import stopped

pytestmark = pytest.mark.usefixtures("worker_program")

CAMPAIGN = """campaign: test
items: {list: [{name: a, mean: 0.9}, {name: b, mean: 0.899}]}
policy: {name: ppar, alpha: 0.2}
privacy: {epsilon: 1}
limits: {tokens: 1000000}
"""
PROGRAMS = {"broker": "broker", "cobroker": "co-broker", "thirdparty": "third-party", "worker": "worker"}
OTHERS = {"up", "job", "instance"}  # of Prometheus itself


def exposed(folder, program):
    status, text = get(folder / f"{program}.sock", "/metrics")
    assert status == 200
    return exposition.read(text)


@pytest.fixture
def running(deployment, tmp_path):
    """All daemons while a campaign with two brokers runs; yields the requester, too."""
    file = tmp_path / "campaign.yaml"
    file.write_text(CAMPAIGN.replace("epsilon: 1", "epsilon: 1, brokers: 2"))
    deployment.up(broker={"limits": {"submits": 1000, "campaigns": 1000}}, cobroker={})
    worker = deployment.start_worker("gateway/1-500", file,
                                     {"admin": str(tmp_path / "worker.sock"), "exit_when_done": False})
    worker.wait_for("connected as")
    with deployment.requester() as requester:
        rules = {"alpha": .001, "tokens_per_round": 100}
        requester.submit(spec(2, two=True, epsilon=1, tokens=1000000, policy_params=rules))
        wait_until(lambda: metrics(tmp_path / "worker.sock")["crowdveil_worker_tokens_accepted_total"] > 0, "tokens")
        yield deployment, requester


def test_every_daemon_keeps_the_rules_of_the_format_and_of_naming(running, tmp_path):
    for program in PROGRAMS:
        families = exposed(tmp_path, program)
        assert families["crowdveil_commit_duration_seconds"].type == "histogram"
        assert dict(next(iter(families["crowdveil_build_info"].samples))[1])["program"] == f"crowdveil-{program}"


def documented():
    """The names in the first column of the table, by program."""
    names = {program: set() for program in PROGRAMS}
    text = (ROOT / "docs/operations.md").read_text().split("### Every metric")[1].split("### ")[0]
    for first, programs, _ in re.findall(r"^\| (`[^|]+) \| ([^|]+) \| (.+) \|$", text, re.M):
        for program, title in PROGRAMS.items():
            if programs in ("all", title):
                names[program] |= set(re.findall(r"`([a-z_]+)`", first))
    return names


def test_the_documentation_lists_exactly_what_is_exposed(running, tmp_path):
    assert {program: set(exposed(tmp_path, program)) for program in PROGRAMS} == documented()


def words(expression):
    """The names of metrics in an expression, without what is quoted, grouped or a function."""
    bare = re.sub(r'"[^"]*"|\b(by|on|without|ignoring) \([^)]*\)|\{[^}]*\}|\[[^\]]*\]', " ", expression)
    return set(re.findall(r"\b(?:crowdveil|process)_\w+\b", bare)), set(
        re.findall(r"\b[a-z_]+\b(?! *\()", bare)) - {"and", "offset", "by", "d", "m", "h"}


def check_expression(expression, names):
    of_ours, all_words = words(expression)
    assert of_ours <= names, f"{expression}: {of_ours - names}"
    assert all_words - of_ours <= OTHERS, f"{expression}: {all_words - of_ours}"
    assert expression.count("(") == expression.count(")") and expression.count("{") == expression.count("}"), expression


def test_dashboard_and_alerts_use_only_what_is_exposed(running, tmp_path):
    names = set().union(*(exposition.names(exposed(tmp_path, program)) for program in PROGRAMS))
    dashboard = json.loads((ROOT / "deploy/grafana/crowdveil.json").read_text())
    panels = [panel for panel in dashboard["panels"] if panel["type"] != "row"]
    expressions = [target["expr"] for panel in panels for target in panel["targets"]]
    for expression in expressions:
        check_expression(expression, names)
    rules = [rule for group in yaml.safe_load((ROOT / "deploy/prometheus/alerts.yaml").read_text())["groups"]
             for rule in group["rules"]]
    for rule in rules:
        check_expression(rule["expr"], names)
    assert len(expressions) > 20 and len(rules) > 10


def test_the_dashboard_is_one_that_grafana_can_draw():
    """No panel covers another, and every query goes to the data source that was chosen."""
    dashboard = json.loads((ROOT / "deploy/grafana/crowdveil.json").read_text())
    assert dashboard["uid"] == "crowdveil" and dashboard["schemaVersion"] >= 36
    variables = {variable["name"]: variable for variable in dashboard["templating"]["list"]}
    assert variables["datasource"]["type"] == "datasource" and variables["datasource"]["query"] == "prometheus"
    source = {"type": "prometheus", "uid": "${datasource}"}
    ids, cells = set(), set()
    for panel in dashboard["panels"]:
        assert panel["id"] not in ids and panel["title"]
        ids.add(panel["id"])
        place = panel["gridPos"]
        assert place["x"] >= 0 and place["x"] + place["w"] <= 24
        own = {(x, y) for x in range(place["x"], place["x"] + place["w"])
               for y in range(place["y"], place["y"] + place["h"])}
        assert not own & cells, panel["title"]
        cells |= own
        if panel["type"] == "row":
            continue
        assert panel["type"] in ("stat", "table", "timeseries") and panel["datasource"] == source
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])
        for target in panel["targets"]:
            assert target["datasource"] == source and "$instance" in target["expr"]


def test_every_alert_says_what_is_wrong_and_where():
    rules = [rule for group in yaml.safe_load((ROOT / "deploy/prometheus/alerts.yaml").read_text())["groups"]
             for rule in group["rules"]]
    assert len({rule["alert"] for rule in rules}) == len(rules)
    for rule in rules:
        assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}, rule["alert"]
        assert rule["labels"]["severity"] in ("critical", "warning", "info"), rule["alert"]
        assert "{{ $labels.instance }}" in rule["annotations"]["summary"], rule["alert"]
        assert rule["annotations"]["description"].endswith("."), rule["alert"]
        assert re.fullmatch(r"\d+m", rule.get("for", "1m")), rule["alert"]


def end_of(certificate):
    return ssl.cert_time_to_seconds(subprocess.run(
        ["openssl", "x509", "-in", certificate, "-noout", "-enddate"], check=True, capture_output=True,
        text=True).stdout.strip().removeprefix("notAfter="))


def test_certificates_and_their_reloads(running, tmp_path):
    deployment, _ = running
    own = 'crowdveil_certificate_expiry_timestamp_seconds{certificate="own"}'
    for program, identity in {"broker": "broker/main", "worker": "gateway/1-500"}.items():
        now = metrics(tmp_path / f"{program}.sock")
        assert now[own] == end_of(deployment.pki.issue(identity).cert)
        assert now[own.replace("own", "ca")] == end_of(deployment.pki.ca)
    reloads = 'crowdveil_reloads_total{outcome="%s"}'
    deployment.broker.signal(signal.SIGHUP)
    wait_until(lambda: metrics(tmp_path / "broker.sock")[reloads % "ok"] == 1, "a reload")
    assert metrics(tmp_path / "broker.sock")[reloads % "failed"] == 0


def test_what_campaigns_and_peers_do_is_counted(running, tmp_path):
    deployment, requester = running
    began = time.time()
    now = metrics(tmp_path / "broker.sock")
    assert now['crowdveil_campaigns_open{phase="running"}'] == 1
    assert now['crowdveil_connections{role="gateway"}'] == now['crowdveil_connections{role="thirdparty"}'] == 1
    assert now['crowdveil_campaign_tokens_limit{campaign="1"}'] == 1000000
    assert 0 < now['crowdveil_campaign_tokens_left{campaign="1"}'] < 1000000
    assert now['crowdveil_campaign_epsilon_limit{campaign="1"}'] == 1
    assert now["crowdveil_state_bytes"] >= (tmp_path / "broker-state/broker.db").stat().st_size > 4096
    assert now["crowdveil_commit_duration_seconds_count"] > 1 and now["crowdveil_commit_duration_seconds_sum"] > 0
    assert began - 60 < now["crowdveil_last_commit_timestamp_seconds"] <= time.time()
    assert began - 120 < now["process_start_time_seconds"] < began
    assert now["process_resident_memory_bytes"] > 1 << 20
    requester.cancel(1)
    ended = 'crowdveil_campaigns_ended_total{end="cancelled"}'
    wait_until(lambda: metrics(tmp_path / "broker.sock")[ended] == 1, "the end")
    after = metrics(tmp_path / "broker.sock")
    assert 'crowdveil_campaign_tokens_left{campaign="1"}' not in after
    assert sum(value for name, value in after.items() if name.startswith("crowdveil_campaigns_open")) == 0


def test_the_number_of_series_is_bounded(deployment, tmp_path):
    """A requester chooses number and names of campaigns: neither may fill a monitoring system."""
    deployment.up(broker={"limits": {"submits": 1000, "campaigns": 1000}})
    with deployment.requester() as requester:
        for i in range(130):
            requester.submit(spec(2, name=f'"}} 1 {i}', policy_params={"alpha": .1}))
        families = exposed(tmp_path, "broker")
    listed = [dict(labels)["campaign"] for _, labels in families["crowdveil_campaign_tokens_left"].samples]
    assert listed == [str(number) for number in range(1, 101)]
    assert families["crowdveil_campaigns_unlisted"].samples[("crowdveil_campaigns_unlisted", ())] == 30
    assert sum(len(family.samples) for family in families.values()) < 600


def test_ready_and_healthy_are_two_things(deployment, tmp_path):
    """Without its third-party a broker takes campaigns and tokens, but they lead to nothing."""
    deployment.launch_broker().address
    socket = tmp_path / "broker.sock"
    assert get(socket, "/readyz") == (200, "ok\n")
    assert get(socket, "/health") == (503, "the third-party is not connected\n")
    now = metrics(socket)
    assert now["crowdveil_ready"] == 1 and now["crowdveil_healthy"] == 0
    deployment.start_thirdparty()
    assert get(tmp_path / "thirdparty.sock", "/readyz") == (200, "ok\n")


def test_a_daemon_that_drains_is_neither(deployment, tmp_path):
    """While it waits for the answers of a worker that does not give them."""
    file = tmp_path / "campaign.yaml"
    file.write_text(CAMPAIGN)
    deployment.up(broker={"lease": "20s"})
    worker = deployment.start_worker("gateway/1-900000", file)  # more than it can give before it is stopped
    socket = tmp_path / "broker.sock"
    with deployment.requester() as requester:
        requester.submit(spec(2, epsilon=1, tokens=1000000, policy_params={"alpha": .001, "tokens_per_round": 400000}))
        wait_until(lambda: metrics(socket)["crowdveil_tokens_total"] > 500, "tokens")
        with stopped(worker):
            deployment.broker.signal(signal.SIGTERM)
            deployment.broker.wait_for("draining on signal")
            assert get(socket, "/readyz") == get(socket, "/health") == (503, "draining\n")
            assert metrics(socket)["crowdveil_ready"] == 0
    deployment.broker.signal(signal.SIGTERM)  # it does not wait for the rest
    assert deployment.broker.wait() == 0


CA_CONFIG = """[ca]
default_ca = ca
[ca]
database = ended.txt
new_certs_dir = .
rand_serial = yes
default_md = sha256
policy = any
copy_extensions = copy
[any]
commonName = supplied
"""


def issue_until(pki, identity, seconds):
    """A certificate that ends so soon."""
    files = pki.issue(identity, name="ends-soon")
    folder = pki.folder / "ends-soon"
    (folder / "ca.cnf").write_text(CA_CONFIG)
    (folder / "ended.txt").write_text("")
    end = time.strftime("%Y%m%d%H%M%SZ", time.gmtime(time.time() + seconds))
    subprocess.run(["openssl", "ca", "-batch", "-notext", "-config", "ca.cnf", "-cert", "../ca.pem", "-keyfile",
                    "../ca.key", "-in", "ends-soon.csr", "-out", "ends-soon.pem", "-enddate", end], cwd=folder,
                   check=True, capture_output=True)
    return files


def test_a_daemon_whose_certificate_has_ended_is_not_ready(deployment, tmp_path):
    deployment.launch_broker({"tls": issue_until(deployment.pki, "broker/main", 10).config()}).address
    socket = tmp_path / "broker.sock"
    assert get(socket, "/readyz") == (200, "ok\n")
    deployment.clock.advance(11_000)
    assert get(socket, "/readyz") == (503, "the certificate has expired\n")
    assert metrics(socket)["crowdveil_ready"] == 0
