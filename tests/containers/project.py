# SPDX-License-Identifier: Apache-2.0
"""A compose file's containers under podman-compose, which tests examine and disturb."""
import os
import signal
import time

import yaml

import engine


def wait_until(holds, what, seconds=60):
    """Waits until `holds` returns something true, and returns it."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = holds()
        if found:
            return found
        time.sleep(.1)
    raise AssertionError(f"not within {seconds} s: {what}")


class Project:
    """`overrides`: further options for the commands of services, as in broker=["--lease=1s"]."""

    def __init__(self, name, folder, overrides):
        self.file, self.name = engine.COMPOSE / f"{name}.yaml", f"crowdveil-test-{name}"
        self.files = ["-f", self.file]
        if overrides:
            path = folder / f"{name}-override.yaml"
            path.write_text(yaml.safe_dump({"services": {service.replace("_", "-"): {"command": options}
                                                         for service, options in overrides.items()}}))
            self.files += ["-f", path]
        self.down()

    def compose(self, *args, **kwargs):
        return engine.run("podman-compose", "-p", self.name, *self.files, *args, **kwargs)

    def up(self, *services):
        """podman-compose ends with status 0 whatever podman returned, so each container is checked. It waits for two
        seconds after each that it starts, so all of a file are made by it and started by podman."""
        printed = self.compose("up", "-d" if services else "--no-start", "--no-build", *services).stdout
        for service in services or ("requester",):
            assert self.id(service), printed
        if not services:
            made = engine.output("ps", "-aq", "--sort", "created", "--filter", "status=created", "--filter",
                                 f"label=com.docker.compose.project={self.name}").split()
            engine.podman("start", *made)
        return self

    def down(self):
        """Stops all at once: their output is not needed any more."""
        for listed, remove in ((("ps", "-aq"), ("rm", "-f", "-t", "0")),
                               (("volume", "ls", "-q"), ("volume", "rm", "-f"))):
            found = engine.output(*listed, "--filter", f"label=com.docker.compose.project={self.name}").split()
            if found:
                engine.podman(*remove, *found, check=False)
        for network in ("crowd", "ranking", "storage", "page"):
            engine.podman("network", "rm", "-f", f"{self.name}_{network}", check=False)

    def id(self, service):
        return engine.output("ps", "-aq", "--filter", f"label=com.docker.compose.project={self.name}",
                             "--filter", f"label=com.docker.compose.service={service}")

    def inspect(self, service):
        return engine.inspect(self.id(service))

    def address(self, service, network):
        return self.inspect(service)["NetworkSettings"]["Networks"][f"{self.name}_{network}"]["IPAddress"]

    def log(self, service):
        return engine.podman("logs", self.id(service), check=False).stdout

    def volume(self, name):
        """The volume's folder on the host."""
        return engine.output("volume", "inspect", "--format", "{{.Mountpoint}}", f"{self.name}_{name}")

    def execute(self, service, *command, **kwargs):
        return engine.podman("exec", self.id(service), *command, check=False, **kwargs)

    def run(self, service, *command, **kwargs):
        """A container like the service's with another command, on the same networks and with the same volumes."""
        flags = []
        for network in self.inspect(service)["NetworkSettings"]["Networks"]:
            flags += ["--network", network]
        return engine.podman("run", "--rm", *flags, "--volumes-from", self.id(service), "--read-only", "--cap-drop",
                             "ALL", "--security-opt", "no-new-privileges", *command, check=False, **kwargs)

    def pid(self, service):
        """The program's process id on the host."""
        return self.inspect(service)["State"]["Pid"]

    def kill(self, service):
        """kill -9 from the host; returns once the restart policy has started it again."""
        before = self.pid(service)
        os.kill(before, signal.SIGKILL)
        wait_until(lambda: self.pid(service) not in (0, before), f"{service} restarted")

    def is_healthy(self, service):
        return engine.podman("healthcheck", "run", self.id(service), check=False).returncode == 0

    def wait_for_health(self, *services):
        for service in services:
            wait_until(lambda service=service: self.is_healthy(service), f"{service} healthy: {self.log(service)}")

    def wait(self, service="requester", seconds=180):
        """The exit status of a service that ends by itself."""
        state = wait_until(lambda: self.inspect(service)["State"]["Status"] == "exited" and
                           self.inspect(service)["State"], f"{service} ended", seconds)
        return state["ExitCode"]
