"""Pods out of rendered manifests, in the form that podman plays.

usage: kubectl kustomize deploy/k8s/overlays/cpu-demo |
       pods.py [--name-server IP] [POD=IP...]

prints the pods and their ConfigMaps. A Pod of a StatefulSet keeps its stable
name, NAME-0 and so on; one of a Deployment is called NAME-0 as well. Each
difference to what Kubernetes would run is a function of this file that says
why. Hooks and probes are not lost: hooks_of() gives them to whoever plays
kubelet.
"""

import argparse
import copy
import re
import sys

import yaml

WORKLOADS = ("StatefulSet", "Deployment")


def pod_names(workload):
    name = workload["metadata"]["name"]
    return [f"{name}-{i}" for i in range(workload["spec"]["replicas"])]


def workloads(objects):
    return [o for o in objects if o["kind"] in WORKLOADS]


def fill_fields(pod, ip):
    """What kubelet reads from the pod's own object. podman knows no podIP."""
    fields = {"metadata.name": pod["metadata"]["name"],
              "metadata.namespace": pod["metadata"].get("namespace", "default"),
              "status.podIP": ip}
    for container in pod["spec"]["containers"]:
        for variable in container.get("env", []):
            field = variable.pop("valueFrom", {}).get("fieldRef")
            if field is not None:
                variable["value"] = fields[field["fieldPath"]]


def expand_arguments(pod):
    """$(NAME) in arguments, which kubelet expands and podman leaves alone."""
    for container in pod["spec"]["containers"]:
        values = {v["name"]: v["value"] for v in container.get("env", [])}
        for key in ("command", "args"):
            if key in container:
                container[key] = [
                    re.sub(r"\$\((\w+)\)",
                           lambda m: values.get(m.group(1), m.group(0)), word)
                    for word in container[key]]


def without_probes_and_hooks(pod):
    """podman runs probes by systemd timers, which a plain machine lacks, and no
    lifecycle hooks: whoever plays the pods asks /readyz itself, and runs
    preStop itself."""
    for container in pod["spec"]["containers"]:
        for key in ("startupProbe", "livenessProbe", "readinessProbe",
                    "lifecycle"):
            container.pop(key, None)


def without_published_ports(pod):
    """podman publishes each containerPort on the host, where two pods of a set
    would collide; the pods' own addresses are enough."""
    for container in pod["spec"]["containers"]:
        container.pop("ports", None)


def own_volumes(pod):
    """podman 4 makes an emptyDir a volume of that name, which all pods would
    share."""
    own = {v["name"]: f"{pod['metadata']['name']}-{v['name']}"
           for v in pod["spec"].get("volumes", []) if "emptyDir" in v}
    places = [*pod["spec"].get("volumes", []),
              *(m for c in pod["spec"]["containers"]
                for m in c.get("volumeMounts", []))]
    for place in places:
        place["name"] = own.get(place["name"], place["name"])


def without_scheduling(pod):
    """There is one host, and nobody who schedules."""
    pod["spec"].pop("topologySpreadConstraints", None)


def with_name_server(pod, ip):
    """Cluster DNS: the same search list and ndots as kubelet writes, and a
    server that answers for the Services (name_server.py)."""
    namespace = pod["metadata"].get("namespace", "default")
    pod["spec"]["dnsPolicy"] = "None"
    pod["spec"]["dnsConfig"] = {
        "nameservers": [ip],
        "searches": [f"{namespace}.svc.cluster.local", "svc.cluster.local",
                     "cluster.local"],
        "options": [{"name": "ndots", "value": "5"}]}


def local_images(pod):
    """They were built here: no registry has them."""
    for container in pod["spec"]["containers"]:
        container["imagePullPolicy"] = "Never"
        if "/" not in container["image"]:
            container["image"] = "localhost/" + container["image"]


def make_pod(workload, name, ip, name_server=None):
    """The Pod that the controller of `workload` would create and kubelet run."""
    template = copy.deepcopy(workload["spec"]["template"])
    pod = {"apiVersion": "v1", "kind": "Pod",
           "metadata": {**template["metadata"], "name": name,
                        "namespace": workload["metadata"].get(
                            "namespace", "default")},
           # One at once that ends is replaced by a new pod, not restarted.
           "spec": {**template["spec"], "restartPolicy": "Never"}}
    if workload["kind"] == "StatefulSet":
        pod["spec"]["hostname"] = name
        pod["spec"]["subdomain"] = workload["spec"]["serviceName"]
    fill_fields(pod, ip)
    expand_arguments(pod)
    without_probes_and_hooks(pod)
    without_published_ports(pod)
    own_volumes(pod)
    without_scheduling(pod)
    local_images(pod)
    if name_server is not None:
        with_name_server(pod, name_server)
    return pod


def config_maps_of(pod, objects):
    """The ConfigMaps that a pod's containers take variables from."""
    names = {source["configMapRef"]["name"]
             for container in pod["spec"]["containers"]
             for source in container.get("envFrom", [])}
    found = [o for o in objects
             if o["kind"] == "ConfigMap" and o["metadata"]["name"] in names]
    missing = names - {o["metadata"]["name"] for o in found}
    if missing:
        raise ValueError(f"{pod['metadata']['name']}: no ConfigMap {missing}")
    return found


def hooks_of(workload):
    """{container: (command of preStop or None, path and port of readiness)}."""
    hooks = {}
    for container in workload["spec"]["template"]["spec"]["containers"]:
        ports = {p["name"]: p["containerPort"]
                 for p in container.get("ports", [])}
        ready = container["readinessProbe"]["httpGet"]
        stop = container.get("lifecycle", {}).get("preStop", {})
        hooks[container["name"]] = (stop.get("exec", {}).get("command"),
                                    (ready["path"], ports[ready["port"]]))
    return hooks


def service_names(objects):
    """{pod: name that the headless Service gives it, below the namespace}."""
    return {pod: f"{pod}.{w['spec']['serviceName']}"
            for w in workloads(objects) if w["kind"] == "StatefulSet"
            for pod in pod_names(w)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--name-server")
    parser.add_argument("addresses", nargs="*", metavar="POD=IP")
    arguments = parser.parse_args()
    addresses = dict(word.split("=", 1) for word in arguments.addresses)
    objects = [o for o in yaml.safe_load_all(sys.stdin) if o]
    documents = []
    for workload in workloads(objects):
        for name in pod_names(workload):
            pod = make_pod(workload, name, addresses.get(name, "127.0.0.1"),
                           arguments.name_server)
            documents += [*config_maps_of(pod, objects), pod]
    yaml.safe_dump_all(documents, sys.stdout, sort_keys=False)


if __name__ == "__main__":
    main()
