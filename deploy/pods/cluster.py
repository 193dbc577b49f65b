"""The part of a cluster that pods notice, by podman: a network, addresses, DNS
of the headless Service, and pods that are made, stopped, killed and replaced.

Not thread-safe, but for exec().
"""

import os
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

import yaml

import name_server
import pods


class PlayError(Exception):
    """What was asked for did not happen."""


def require(holds, text):
    if not holds:
        raise PlayError(text)


def podman(*words, check=True, timeout=120):
    answer = subprocess.run(["podman", *words], capture_output=True, text=True,
                            timeout=timeout, check=False)
    if check and answer.returncode != 0:
        raise PlayError(f"podman {' '.join(words[:3])}: exit code "
                        f"{answer.returncode}: {answer.stderr.strip()}")
    return answer


def await_that(what, condition, seconds=60):
    """Polls; raises, naming `what`, when it has not come true."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise PlayError(f"after {seconds} s not: {what}")
        time.sleep(0.2)


class Cluster:
    """Owns its network and pods, and removes them in close()."""

    def __init__(self, objects, images=None):
        self.objects = objects
        self._images = images or {}
        self._pods, self._made, self._next = {}, set(), 10
        self._workload = {name: w for w in pods.workloads(objects)
                          for name in pods.pod_names(w)}
        self._names = pods.service_names(objects)
        self._dir = tempfile.TemporaryDirectory(prefix="farkv-play-")
        self._network = f"farkv-play-{os.getpid()}"
        self._server = None
        for name in self._workload:
            if podman("pod", "exists", name, check=False).returncode == 0:
                raise PlayError(f"there is a pod {name} already")

    def __enter__(self):
        podman("network", "create", self._network)
        try:
            gateway = podman("network", "inspect", self._network, "--format",
                             "{{(index .Subnets 0).Gateway}}").stdout.strip()
            self._server = name_server.NameServer(gateway)
        except BaseException:  # an interrupt, too
            podman("network", "rm", self._network, check=False)
            raise
        self._gateway = gateway
        return self

    def __exit__(self, *_):
        # Nothing that hangs, and no second signal, keeps the rest.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        removals = [("pod", "rm", "-f", "-t", "0", name) for name in self._pods]
        removals += [("volume", "rm", "-f", name) for name in self._made]
        removals.append(("network", "rm", "-f", self._network))
        for words in removals:
            try:
                podman(*words, check=False)
            except subprocess.TimeoutExpired:
                print(f"podman {' '.join(words)}: no end; left behind")
        self._server.stop()
        self._dir.cleanup()

    @property
    def names(self):
        return list(self._workload)

    def stateful(self):
        return list(self._names)

    def service_name(self, name):
        return self._names[name]

    def container(self, name):
        return f"{name}-{self._container_name(name)}"

    def _container_name(self, name):
        template = self._workload[name]["spec"]["template"]
        return template["spec"]["containers"][0]["name"]

    def start(self, name):
        """A new pod of that name, at an address that none has had: as with
        Kubernetes a replaced pod keeps its name alone."""
        address = f"{self._gateway.rpartition('.')[0]}.{self._next}"
        self._next += 1
        pod = pods.make_pod(self._workload[name], name, address, self._gateway)
        for container in pod["spec"]["containers"]:
            container["image"] = self._images.get(container["image"],
                                                  container["image"])
        self._made |= {v["name"] for v in pod["spec"].get("volumes", [])}
        path = os.path.join(self._dir.name, f"{name}.yaml")
        with open(path, "w", encoding="utf-8") as file:
            yaml.safe_dump_all(
                [*pods.config_maps_of(pod, self.objects), pod], file)
        self._pods[name] = address
        podman("kube", "play", "--quiet", "--network", self._network, "--ip",
               address, path)
        if name in self._names:
            self._server.set(self._full_name(name), address)

    def _full_name(self, name):
        namespace = self._workload[name]["metadata"].get("namespace", "default")
        return f"{self._names[name]}.{namespace}.svc.cluster.local"

    def running(self):
        return list(self._pods)

    def address(self, name):
        return self._pods[name]

    def get(self, name, path, port):
        """(status, text); status 0: nobody answers."""
        url = f"http://{self._pods[name]}:{port}{path}"
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except (OSError, urllib.error.URLError):
            return 0, ""

    def ready(self, name):
        """What the readiness probe of its container says."""
        _, (path, port) = self._hooks(name)
        return self.get(name, path, port)[0] == 200

    def _hooks(self, name):
        hooks = pods.hooks_of(self._workload[name])
        return hooks[self._container_name(name)]

    def exec(self, name, *words, timeout=180):
        """As `kubectl exec POD -- WORDS`."""
        return podman("exec", self.container(name), *words, check=False,
                      timeout=timeout)

    def stop(self, name):
        """As `kubectl delete pod`: preStop, SIGTERM, and SIGKILL at the end of
        the grace period. Returns the exit code of its program."""
        spec = self._workload[name]["spec"]["template"]["spec"]
        grace = spec["terminationGracePeriodSeconds"]
        began = time.monotonic()
        command, _ = self._hooks(name)
        if command:
            self.exec(name, *command, timeout=grace)
        left = max(1, int(grace - (time.monotonic() - began)))
        podman("stop", "-t", str(left), self.container(name), timeout=grace + 60)
        code = int(podman("inspect", "--format", "{{.State.ExitCode}}",
                          self.container(name)).stdout)
        self.remove(name)
        return code

    def kill(self, name):
        """Its host is gone: no hook, no signal that it could handle."""
        podman("kill", "--signal", "KILL", self.container(name))
        self.remove(name)

    def remove(self, name):
        if name in self._names:
            self._server.set(self._full_name(name), None)
        podman("pod", "rm", "-f", "-t", "0", name)
        del self._pods[name]

    def logs(self, name, lines=15):
        answer = podman("logs", "--tail", str(lines), self.container(name),
                        check=False)
        return answer.stdout + answer.stderr
