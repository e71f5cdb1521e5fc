# SPDX-License-Identifier: Apache-2.0
"""The contents of the images, their sizes, how fast they start, and their rights."""
import json
import statistics
import time

import pytest

import engine

MB = 10**6
LIMITS = {"thirdparty": 120, "broker": 120, "cobroker": 120, "worker": 120, "crowdveil": 120, "lab": 180,
          "broker-postgresql": 120, "database": 300}
PROGRAMS = {"thirdparty": "crowdveil-thirdparty", "broker": "crowdveil-broker", "cobroker": "crowdveil-cobroker",
            "worker": "crowdveil-worker", "crowdveil": "crowdveil", "lab": "crowdveil-lab",
            "broker-postgresql": "crowdveil-broker-postgresql"}
LIST = "dpkg-query -W -f '${Package}\\n'"


def in_image(target, script):
    return engine.output("run", "--rm", "--entrypoint", "sh", engine.TARGETS[target], "-c", script)


@pytest.mark.parametrize("target", PROGRAMS)
def test_it_is_small_and_holds_what_its_program_needs(target, say):
    base = set(engine.output("run", "--rm", engine.BASE, "sh", "-c", LIST).split())
    added = sorted(set(in_image(target, LIST).split()) - base)
    size, of_base = engine.unpacked(engine.TARGETS[target]), engine.unpacked(engine.BASE)
    assert size < LIMITS[target] * MB
    assert in_image(target, "cd /usr/bin; echo crowdveil*") == PROGRAMS[target], "one program and no other"
    assert not [name for name in added if name.endswith("-dev") or name in ("gcc", "meson", "python3", "ninja-build")]
    own = int(in_image(target, f"stat -c %s /usr/bin/{PROGRAMS[target]}"))
    say(f"image {target}: {size / MB:.0f} MB unpacked, of which the base {of_base / MB:.0f}, "
        f"the program {own / MB:.1f}, {len(added)} packages: {' '.join(added)}")


@pytest.mark.parametrize("target", PROGRAMS)
def test_it_says_what_it_is_and_runs_as_nobody_in_particular(target):
    config = json.loads(engine.output("image", "inspect", engine.TARGETS[target]))[0]
    version = in_image(target, f"{PROGRAMS[target]} --version").split()[-1]
    assert config["Labels"]["org.opencontainers.image.version"] == version
    assert config["Labels"]["org.opencontainers.image.licenses"] == "Apache-2.0"
    assert config["User"] == f"{engine.USER}:{engine.USER}"
    assert in_image(target, "id -u") == str(engine.USER)
    assert "Apache License" in in_image(target, "head -3 /usr/share/doc/crowdveil/copyright")
    assert "not found" not in in_image(target, f"ldd /usr/bin/{PROGRAMS[target]}")


@pytest.mark.parametrize("target", PROGRAMS)
def test_the_program_needs_no_shell(target, say):
    """Starts in an image whose shells are hidden; measures a start."""
    hidden = [flag for shell in ("bash", "dash") for flag in ("-v", f"/dev/null:/usr/bin/{shell}:ro")]
    took = []
    for _ in range(5):
        started = time.monotonic()
        done = engine.podman("run", "--rm", "--read-only", "--cap-drop", "ALL", *hidden, engine.TARGETS[target],
                             "--help")
        took.append(time.monotonic() - started)
        assert "Usage: crowdveil" in done.stdout
    say(f"image {target}: started, answered and removed in {statistics.median(took):.2f} s (median of 5)")


def test_the_laboratory_draws_a_figure():
    """Writes into a volume from a read-only root."""
    done = engine.podman("run", "--rm", "--read-only", "--cap-drop", "ALL", "--tmpfs", "/tmp", "-v",
                         "/var/lib/crowdveil", "--entrypoint", "sh", engine.TARGETS["lab"], "-c",
                         "crowdveil-lab run mechanisms --out figures --replicates 2 && ls figures")
    assert any(line.endswith(".svg") for line in done.stdout.split()), done.stdout
