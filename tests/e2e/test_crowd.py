# SPDX-License-Identifier: Apache-2.0
"""Campaigns with real workers: data files, many processes, gateways and workers together."""
import pytest

from client.requester import classes, end_name, spec
from client.worker import Session, work
from crowdveil.wire import grid
from harness.campaign import NOISE
from harness.truth import csv_means, true_classes

pytestmark = pytest.mark.usefixtures("worker_program")


def campaign_file(folder, items, alpha, tau, epsilon, tokens, tokens_per_worker=1, name="test"):
    path = folder / "campaign.yaml"
    path.write_text(f"campaign: {name}\n"
                    f"items: {items}\n"
                    f"policy: {{name: ppar, alpha: {alpha}, delta: 0.1, tokens_per_round: {tau}}}\n"
                    f"privacy: {{epsilon: {epsilon}, tokens_per_worker: {tokens_per_worker}, repeat: true}}\n"
                    f"limits: {{tokens: {tokens}, idle: 60s}}\n")
    return path


def given(means):
    return "{list: [" + ", ".join(f"{{name: i{n}, mean: {mean}}}" for n, mean in enumerate(means)) + "]}"


def submit(requester, arms, alpha, tau, epsilon, tokens, tokens_per_worker=1):
    return requester.submit(spec(arms, epsilon=epsilon, tokens=tokens, tokens_per_worker=tokens_per_worker, repeat=True,
                                 idle_ms=60_000, policy_params={"alpha": alpha, "delta": .1, "tokens_per_round": tau})
                            ).campaign


def found_classes(finished):
    ranked, undecided = classes(finished)
    return [set(ranked[number]) for number in sorted(ranked)], undecided


def run_data(deployment, tmp_path, items, arms, alpha, tau, epsilon, tokens):
    """A campaign over a data file with one gateway of many workers; the Finished message. Scores and noise are seeded:
    the end is always the same."""
    per_worker = 20
    path = campaign_file(tmp_path, items, alpha, tau, epsilon, tokens, per_worker)
    deployment.up(broker={"limits": {"worker_epsilon": 1000}, **NOISE})
    with deployment.requester() as requester:
        campaign = submit(requester, arms, alpha, tau, epsilon, tokens, per_worker)
        gateway = deployment.start_worker(f"gateway/1-{tokens // per_worker + 1000}", path, {"seed": 1})
        finished = requester.watch(campaign)
    assert gateway.wait() == 0
    return finished


def obd_items(data):
    path = data("obd/slim_bts_men.csv")
    names, means = csv_means(path, "item_id", "propensity_score", 0, 1)
    return names, means, (f"{{source: csv, path: {path}, item: item_id, score: propensity_score, scale: [0, 1], "
                          f"replacement: true}}")


def test_open_bandit_rows_fall_into_two_classes(deployment, tmp_path, data):
    names, means, items = obd_items(data)
    assert len(names) == 34
    truth = true_classes(means, .135)
    assert len(truth) == 2
    finished = run_data(deployment, tmp_path, items, 34, .135, 6000, 1, 6_000_000)
    assert end_name(finished.progress.end) == "complete"
    assert found_classes(finished) == (truth, [])


def test_open_bandit_rows_too_close_to_call_are_named(deployment, tmp_path, data):
    """At alpha .1 items are within .001 of a boundary: the tokens run out, and the settled classes are still right."""
    names, means, items = obd_items(data)
    truth = true_classes(means, .1)
    finished = run_data(deployment, tmp_path, items, 34, .1, 6000, 1, 3_000_000)
    assert end_name(finished.progress.end) == "tokens"
    assert finished.progress.tokens <= 3_000_000
    found, undecided = found_classes(finished)
    assert found[0] == truth[0], "the best class is far from any boundary"
    assert 0 < len(undecided) < 34 - len(truth[0])
    for number, arms in enumerate(found):
        assert arms <= truth[number], f"class {number + 1}"
    boundary = max(means[arm] for arm in truth[1]) - .1
    closest = min(range(34), key=lambda arm: abs(means[arm] - boundary))
    assert closest in undecided, f"item {names[closest]} is {abs(means[closest] - boundary):.5f} from the boundary"


def test_ratings_of_lectures_rank_the_departments(deployment, tmp_path, data):
    path = data("ratings/insteval_lme4.csv")
    names, means = csv_means(path, "dept", "score", 1, 5)
    assert len(names) == 14
    truth = true_classes(means, .084)
    items = f"{{source: csv, path: {path}, item: dept, score: score, scale: [1, 5], replacement: true}}"
    finished = run_data(deployment, tmp_path, items, 14, .084, 30_000, 1, 20_000_000)
    assert end_name(finished.progress.end) == "complete"
    assert found_classes(finished) == (truth, [])


MEANS = [.05, .5, .95, .52, .93]


def accepted_by(worker):
    return int(worker.wait_for(r"(\d+) tokens accepted").group(1))


def test_fifty_workers_each_with_a_process_and_a_certificate(deployment, tmp_path):
    """Items that are all equal, ranked until the tokens run out: every one of the fifty workers is needed."""
    tau, tokens = 800, 2 * 5 * 800
    tokens_each = tokens // 49
    path = campaign_file(tmp_path, given([.5] * 5), .001, tau, .5, tokens, tokens_each)
    deployment.up(broker={"limits": {"worker_epsilon": 1000}, **NOISE})  # scores and noise are seeded
    workers = [deployment.start_worker(f"worker/{number}", path, {"seed": 1}) for number in range(1, 51)]
    for worker in workers:
        worker.wait_for(r"broker/\w+: connected to")
    with deployment.requester() as requester:
        finished = requester.watch(submit(requester, 5, .001, tau, .5, tokens, tokens_each))
    assert [worker.wait() for worker in workers] == [0] * 50
    assert end_name(finished.progress.end) == "tokens"
    assert found_classes(finished) == ([], [0, 1, 2, 3, 4])
    shares = [accepted_by(worker) for worker in workers]
    assert sum(shares) == finished.progress.tokens == tokens and max(shares) <= tokens_each
    assert min(shares) > 0, "a worker was left out"


@pytest.mark.quick
def test_gateways_and_single_workers_of_two_makes_in_one_campaign(deployment, tmp_path):
    """The first plan decides, and needs every worker."""
    tau, tokens = 10_000, 400_000
    path = campaign_file(tmp_path, given(MEANS), .2, tau, .5, tokens)
    deployment.up()
    daemons = [deployment.start_worker(identity, path)
               for identity in ("gateway/1-24998", "gateway/200001-224999", "worker/700001", "worker/700002")]
    for daemon in daemons:
        daemon.wait_for(r"broker/\w+: connected to")
    files = deployment.pki.issue("worker/700003")
    with Session(deployment.broker.address, files.ca, files.cert, files.key) as session:
        session.until("hello")
        with deployment.requester() as requester:
            campaign = submit(requester, len(MEANS), .2, tau, .5, tokens)
            verdicts, _ = work(session, [700003], lambda worker, arm, place: 1 << 19)
            finished = requester.watch(campaign)
    assert [daemon.wait() for daemon in daemons] == [0] * 4
    assert end_name(finished.progress.end) == "complete"
    assert found_classes(finished) == ([{2, 4}, {1, 3}, {0}], [])
    shares = [accepted_by(daemon) for daemon in daemons]
    assert verdicts == {"accepted": 1} and shares == [24998, 24999, 1, 1]
    assert finished.progress.tokens == len(MEANS) * tau


def test_a_worker_declines_terms_that_its_owner_does_not_accept(deployment, tmp_path):
    path = campaign_file(tmp_path, given(MEANS), .2, 100, 2, 10_000)
    deployment.up()
    with deployment.requester() as requester:
        campaign = submit(requester, len(MEANS), .2, 100, 2, 10_000)
        worker = deployment.start_worker("gateway/1-1000", path, {"accept": {"epsilon": .5}, "exit_when_done": False})
        deployment.broker.wait_for('campaign [0-9]+ "[a-z-]+" declined')
        worker.wait_for("epsilon")
        assert requester.status().campaigns[0].tokens == 0
        requester.cancel(campaign)
        assert end_name(requester.watch(campaign).progress.end) == "cancelled"
    assert worker.stop() == 0


def test_a_place_that_is_declined_is_given_again_at_once(deployment):
    """Only by its own worker: a lease of an hour is not waited for, and a peer cannot decline another one's place."""
    deployment.up(broker={"lease": "1h", "limits": {"release_tokens": 1}})
    with deployment.requester() as requester:
        requester.submit(spec(1, tokens=1, policy_params={"alpha": .2, "tokens_per_round": 1}))
        files = [deployment.pki.issue(identity) for identity in ("gateway/1-9", "gateway/10-19")]
        one, two = (Session(deployment.broker.address, each.ca, each.cert, each.key) for each in files)
        with one, two:
            one.arrive([1], 8)
            first = one.until("assign")
            two.arrive([10], 8)
            two.decline(0, "not mine to give back", first.ticket)
            two.decline(0, "made up", bytes(48))
            deployment.broker.wait_for("gateway/10-19: decline ignored: the ticket was not issued by this")
            assert requester.status().campaigns[0].tokens == 0
            one.decline(0, "I have to go", first.ticket)
            second = two.until("assign")
            assert second.worker == 10 and second.place == first.place
            one.token(first.ticket, [grid(.5)])      # the ticket is still valid, and so is the place
            assert one.verdict(one.ack(first.ticket)) == "accepted"
            two.token(second.ticket, [grid(.5)])
            assert two.verdict(two.ack(second.ticket)) == "expired"
            finished = requester.watch()
    assert finished.progress.tokens == 1


def test_a_crowd_that_leaves_ends_the_campaign_by_idleness(deployment, tmp_path):
    path = campaign_file(tmp_path, given(MEANS), .2, 1000, 1, 100_000)
    deployment.clock.rate = 10
    deployment.up()
    with deployment.requester() as requester:
        worker = deployment.start_worker("gateway/1-100", path)
        worker.wait_for(r"broker/\w+: connected to")
        campaign = requester.submit(spec(len(MEANS), epsilon=1, tokens=100_000, idle_ms=8000,
                                         policy_params={"alpha": .2, "tokens_per_round": 1000})).campaign
        finished = requester.watch(campaign)
    assert end_name(finished.progress.end) == "idle"
    assert finished.progress.tokens == 100 and finished.progress.releases == 0
    assert sorted(arm for _, arms in classes(finished)[0].items() for arm in arms) == []
    assert worker.wait() == 0
