# SPDX-License-Identifier: Apache-2.0
"""
The compose files use only what docker compose v2 and podman-compose 1.0.3 both honour, agree with each other where they
must, and need nothing outside the tree.
"""
import subprocess

import pytest
import yaml

import engine

SERVICE = {"image", "build", "command", "networks", "depends_on", "volumes", "healthcheck", "read_only", "cap_drop",
           "security_opt", "restart", "tmpfs", "hostname"}
HEALTHCHECK = {"test", "interval", "timeout", "retries", "start_period"}
DAEMONS = {"thirdparty", "broker", "cobroker"}


def load(name):
    return yaml.safe_load((engine.COMPOSE / f"{name}.yaml").read_text())


def unheard(document):
    """Every key or form that one of the two engines ignores."""
    for key in document:
        if key not in ("services", "networks", "volumes") and not key.startswith("x-"):
            yield f"{key}: at the top"
    for name, network in document["networks"].items():
        if network != {"internal": True}:
            yield f"network {name}: {network}"
    for name, volume in document["volumes"].items():
        if volume is not None:
            yield f"volume {name}: {volume}"
    for name, service in document["services"].items():
        yield from (f"{name}: {key}" for key in set(service) - SERVICE)
        check = service.get("healthcheck", {"test": ""})
        if set(check) - HEALTHCHECK or not isinstance(check["test"], str):
            yield f"{name}: healthcheck {check}"
        if not isinstance(service.get("networks"), list):
            yield f"{name}: networks {service.get('networks')}; without any it would be on a network with a way out"
        if any(how != {"condition": "service_started"} for how in service.get("depends_on", {}).values()):
            yield f"{name}: depends_on {service['depends_on']}"
        if not all(isinstance(volume, str) for volume in service.get("volumes", [])):
            yield f"{name}: volumes {service['volumes']}"


def test_the_page_is_published_on_this_machine_alone():
    """The file that is added for the page touches nothing but the third-party, on a network that no other party has."""
    page = yaml.safe_load((engine.COMPOSE / "page.yaml").read_text())
    assert set(page) == {"services", "networks"} and set(page["networks"]) == {"page"}
    assert set(page["services"]) == {"thirdparty"}
    thirdparty = page["services"]["thirdparty"]
    assert thirdparty["networks"] == ["page"] and set(thirdparty) == {"networks", "ports", "command"}
    assert all(port.startswith("127.0.0.1:") for port in thirdparty["ports"])
    for name in engine.ALL:
        assert "page" not in load(name)["networks"] and "command" not in load(name)["services"]["thirdparty"]


def test_what_one_engine_passes_over_is_found():
    planted = load("rank")
    planted["services"]["broker"].update(pids_limit=9, networks={"crowd": {}},
                                         healthcheck={"test": ["CMD", "true"]})
    planted["networks"]["crowd"] = {"internal": True, "driver": "bridge"}
    planted["name"] = "x"
    assert len(list(unheard(planted))) == 5


@pytest.mark.parametrize("name", engine.ALL)
def test_both_engines_honour_every_key(name):
    assert list(unheard(load(name))) == []


@pytest.mark.parametrize("name", engine.ALL)
def test_docker_compose_parses_it(name):
    done = engine.run("docker-compose", "-f", engine.COMPOSE / f"{name}.yaml", "config", stderr=subprocess.PIPE)
    parsed = yaml.safe_load(done.stdout)
    assert set(parsed["services"]) == set(load(name)["services"])
    assert parsed["services"]["thirdparty"]["build"]["context"] == str(engine.ROOT)


def plain(document, name):
    """The service without what differs between files: its volumes' prefix, the commands, and a worker's own volumes."""
    text = yaml.safe_dump(document["services"]).replace(f"{name}-", "")
    services = yaml.safe_load(text)
    for service in services.values():
        service.pop("command", None)
    workers = {key: services.pop(key) for key in list(services) if key.startswith("worker-")}
    for service in services.values():
        service["volumes"] = [volume for volume in service["volumes"] if "worker-" not in volume and
                              "FOLDER" not in volume]
        service["depends_on"] = {key: how for key, how in service.get("depends_on", {}).items()
                                 if key not in (*workers, "cobroker")}
    services.pop("cobroker", None)
    certificates = services["certificates"]
    certificates["volumes"] = [volume for volume in certificates["volumes"] if "cobroker" not in volume]
    return services


@pytest.mark.parametrize("name", [name for name in engine.FILES if name != "rank"])
def test_the_parties_are_alike_in_all_files(name):
    assert plain(load(name), name) == plain(load("rank"), "rank")


@pytest.mark.parametrize("name", engine.FILES)
def test_each_party_is_confined_and_has_its_own_certificate(name):
    services, given = load(name)["services"], {}
    for service, of in services.items():
        assert of["read_only"] and of["cap_drop"] == ["ALL"] and of["security_opt"] == ["no-new-privileges"], service
        assert ("restart" in of) == (service in DAEMONS or service.startswith("worker-")), service
        certificates = [volume for volume in of["volumes"] if volume.endswith(":/etc/crowdveil/tls:ro")]
        if service != "certificates":
            assert len(certificates) == 1 and given.setdefault(certificates[0], service) == service, given
        assert ("healthcheck" in of) == ("restart" in of), service
        assert (f"{name}-ca:/certificates/ca" in of["volumes"]) == (service == "certificates"), service
    workers = [service for service in services if service.startswith("worker-")]
    assert len(workers) >= 3
    assert set(services["requester"]["depends_on"]) == {*(DAEMONS & set(services)), *workers}
    for service in services:
        assert ("ranking" in services[service]["networks"]) == (service in ("broker", "thirdparty")), service
        assert ("crowd" in services[service]["networks"]) == (service != "thirdparty"), service
