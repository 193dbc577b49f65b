"""Checks of what operators read: monitors of Prometheus, keys of cert-manager."""

import manifests

FILES = {"--tls-ca": "ca.crt", "--tls-cert": "tls.crt", "--tls-key": "tls.key"}


def check_monitors(objects):
    """A monitor selects somebody, who has a port of the name."""
    services = [({**o["metadata"].get("labels", {})},
                 {p["name"] for p in o["spec"]["ports"]})
                for o in objects if o["kind"] == "Service"]
    pods = [(o["spec"]["template"]["metadata"]["labels"],
             {p["name"] for c in o["spec"]["template"]["spec"]["containers"]
              for p in c.get("ports", [])})
            for o in objects if o["kind"] in manifests.WORKLOADS]
    for kind, key, candidates in (
            ("ServiceMonitor", "endpoints", services),
            ("PodMonitor", "podMetricsEndpoints", pods)):
        for name, o in manifests.named(objects, kind).items():
            wanted = o["spec"]["selector"]["matchLabels"].items()
            found = [ports for labels, ports in candidates
                     if wanted <= labels.items()]
            if not found:
                yield f"{kind} {name} selects nobody: {dict(wanted)}"
            for endpoint in o["spec"][key]:
                for ports in found:
                    if endpoint["port"] not in ports:
                        yield (f"{kind} {name}: {endpoint['port']} is none of "
                               f"the ports {sorted(ports)}")


def mounted_secret(pod, container, path):
    """The Secret that holds a file of the container, or None."""
    for mount in container.get("volumeMounts", []):
        if path.startswith(mount["mountPath"] + "/"):
            for volume in pod.get("volumes", []):
                if volume["name"] == mount["name"]:
                    return volume.get("secret", {}).get("secretName")
    return None


def names_of_servers(objects):
    """{workload: names that its clients use}."""
    names = {}
    for name, s in manifests.named(objects, "StatefulSet").items():
        names[name] = {f"{name}-{i}.{s['spec']['serviceName']}"
                       for i in range(s["spec"]["replicas"])}
    for name, service in manifests.named(objects, "Service").items():
        for o in manifests.named(objects, "Deployment").values():
            labels = o["spec"]["template"]["metadata"]["labels"]
            if service["spec"]["selector"].items() <= labels.items():
                names.setdefault(o["metadata"]["name"], set()).add(name)
    return names


def check_keys(objects):
    """Key pairs lie in a mounted Secret that a Certificate fills, which has
    the names of the process; all processes have one, or none."""
    certificates = {o["spec"]["secretName"]: o["spec"] for o in
                    manifests.named(objects, "Certificate").values()}
    wanted = names_of_servers(objects)
    without = set()
    for o in objects:
        if o["kind"] not in manifests.WORKLOADS:
            continue
        name = o["metadata"]["name"]
        pod = o["spec"]["template"]["spec"]
        for container in pod["containers"]:
            settings = manifests.settings_of(container, objects)
            if not any(flag in settings for flag in FILES):
                without.add(container["name"])
                continue
            for flag, file in FILES.items():
                path = settings.get(flag, "")
                secret = mounted_secret(pod, container, path)
                if secret is None or not path.endswith("/" + file):
                    yield f"{name} {flag}={path} is in no Secret"
                    continue
                has = certificates.get(secret, {})
                names = {*has.get("dnsNames", []), *has.get("ipAddresses", [])}
                # farkvctl in the pod asks 127.0.0.1.
                for lacks in sorted({"127.0.0.1", *wanted.get(name, ())} - names):
                    yield f"{name} {flag}: the Certificate lacks {lacks}"
    if certificates and without:
        yield f"no --tls-ca for {sorted(without)}, whose peers want TLS"


def check_operators(objects):
    yield from check_monitors(objects)
    yield from check_keys(objects)
