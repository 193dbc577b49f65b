"""Checks of Kubernetes objects as they would be applied."""

import re

UNITS = {"": 1, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
WORKLOADS = ("Deployment", "StatefulSet", "DaemonSet")
# What a process needs beside its pool or T0.
MARGIN = 128 * 2**20


def size(text):
    """Bytes of "64Gi" or of a flag's "64GiB"."""
    match = re.fullmatch(r"(\d+)([KMGT]i)?B?", str(text))
    if not match:
        raise ValueError(f"cannot read the size {text!r}")
    return int(match.group(1)) * UNITS[match.group(2) or ""]


def seconds(text):
    match = re.fullmatch(r"(\d+)s", text)
    if not match:
        raise ValueError(f"cannot read the time {text!r}")
    return int(match.group(1))


def named(objects, kind):
    return {o["metadata"]["name"]: o for o in objects if o["kind"] == kind}


def program_of(container):
    return container.get("command", ["?"])[0]


def settings_of(container, objects):
    """{"--flag": value} of a container: its arguments over its ConfigMaps."""
    settings = {}
    maps = named(objects, "ConfigMap")
    for source in container.get("envFrom", []):
        data = maps.get(source["configMapRef"]["name"], {}).get("data", {})
        for name, value in data.items():
            flag = "--" + name.removeprefix("FARKV_").lower().replace("_", "-")
            settings[flag] = value
    for argument in container.get("args", []):
        flag, _, value = argument.partition("=")
        settings[flag] = value
    return settings


def check_flags(container, objects, programs):
    program = program_of(container)
    known = programs.flags.get(program)
    if known is None:
        yield f"{program}: is none of our programs"
        return
    settings = settings_of(container, objects)
    for flag in settings:
        if flag not in known:
            yield f"{program} has no flag {flag}"
    ports = {p["name"]: p["containerPort"] for p in container.get("ports", [])}
    for flag, value in settings.items():
        if not flag.endswith("listen"):
            continue
        host, _, port = value.rpartition(":")
        usual = (known.get(flag) or "").rpartition(":")[2]
        if usual not in ("", "0", port):
            yield f"{program} {flag}={value}: its port is {usual} everywhere else"
        if program == "farkv-worker" and flag == "--admin-listen" and (
                host != "127.0.0.1"):
            yield (f"{program} {flag}={value}: whoever reaches it may drain "
                   "the worker; must be on 127.0.0.1")
        if host != "127.0.0.1" and int(port) not in ports.values():
            yield f"{program} {flag}={value}: no container port is {port}"


def check_probes(container):
    ports = {p["name"] for p in container.get("ports", [])}
    for kind, path in (("startupProbe", "/healthz"),
                       ("livenessProbe", "/healthz"),
                       ("readinessProbe", "/readyz")):
        get = container.get(kind, {}).get("httpGet", {})
        if get.get("path") != path:
            yield f"{kind} asks {get.get('path')}, not {path}"
        if get.get("port") not in ports:
            yield f"{kind} asks port {get.get('port')}, not one of {sorted(ports)}"


def check_security(pod, container):
    inside = container.get("securityContext", {})
    outside = pod.get("securityContext", {})
    if outside.get("runAsNonRoot") is not True or not outside.get("runAsUser"):
        yield "may run as root"
    if inside.get("allowPrivilegeEscalation") is not False:
        yield "may gain privileges"
    if inside.get("privileged"):
        yield "is privileged"
    if inside.get("readOnlyRootFilesystem") is not True:
        yield "may write to its image"
    if inside.get("capabilities", {}).get("drop") != ["ALL"]:
        yield "keeps capabilities"
    if pod.get("enableServiceLinks") is not False:
        yield "gets variables of Services that look like flags"


def check_resources(container, objects):
    resources = container.get("resources", {})
    requests, limits = resources.get("requests", {}), resources.get("limits", {})
    if requests != limits:
        yield f"requests {requests} differ from limits {limits}"
    settings = settings_of(container, objects)
    held = sum(size(settings.get(flag, "0B"))
               for flag in ("--t0-bytes", "--t1-bytes", "--t2-bytes"))
    huge = size(limits.get("hugepages-2Mi", 0))
    room = size(limits.get("memory", 0))
    if huge and huge < held:
        yield f"{huge} bytes of huge pages are less than the pool's {held}"
    if room < (0 if huge else held) + MARGIN:
        yield f"a memory limit of {room} leaves no {MARGIN} beside {held}"
    if huge and "memory" not in limits:
        yield "huge pages need a limit of memory or cpu beside them"


def check_grace(pod, container, objects, programs):
    """preStop and drain must fit into the grace period."""
    hook = container.get("lifecycle", {}).get("preStop", {})
    command = hook.get("exec", {}).get("command", [])
    before = 0
    if command:
        if command[0] != "farkvctl":
            yield f"preStop runs {command[0]}, which the images lack"
            return
        yield from programs.check_command_line(command[1:])
        for word in command:
            if word.startswith("--timeout="):
                before = seconds(word.partition("=")[2])
    drain = seconds(settings_of(container, objects).get("--drain-grace", "0s"))
    grace = pod.get("terminationGracePeriodSeconds", 30)
    if grace < before + drain + 5:
        yield (f"a grace period of {grace} s is shorter than preStop ({before} "
               f"s), --drain-grace ({drain} s) and 5 s")


def check_selectors(objects):
    templates = [o["spec"]["template"]["metadata"]["labels"]
                 for o in objects if o["kind"] in WORKLOADS]

    def somebody(labels):
        return any(labels.items() <= t.items() for t in templates)

    for o in objects:
        name = f"{o['kind']} {o['metadata']['name']}"
        spec = o.get("spec", {})
        if o["kind"] in WORKLOADS:
            wanted = spec["selector"]["matchLabels"]
            if not wanted.items() <= spec["template"]["metadata"]["labels"].items():
                yield f"{name}: its selector {wanted} misses its own pods"
        elif o["kind"] == "Service":
            if not somebody(spec["selector"]):
                yield f"{name} selects nobody: {spec['selector']}"
        elif o["kind"] == "PodDisruptionBudget":
            if not somebody(spec["selector"]["matchLabels"]):
                yield f"{name} selects nobody"
        elif o["kind"] == "NetworkPolicy":
            peers = [f["podSelector"] for rule in spec["ingress"]
                     for f in rule.get("from", [])]
            for selector in [spec["podSelector"], *peers]:
                if not somebody(selector["matchLabels"]):
                    yield f"{name} selects nobody: {selector}"


def check_services(objects):
    for service in named(objects, "Service").values():
        name = service["metadata"]["name"]
        ports = {}
        for o in objects:
            if o["kind"] in WORKLOADS and (
                    service["spec"]["selector"].items()
                    <= o["spec"]["template"]["metadata"]["labels"].items()):
                for c in o["spec"]["template"]["spec"]["containers"]:
                    for p in c.get("ports", []):
                        ports[p["name"]] = p["containerPort"]
        for port in service["spec"]["ports"]:
            if ports.get(port["targetPort"]) != port["port"]:
                yield (f"Service {name}: port {port['port']} leads to "
                       f"{port['targetPort']}, which is "
                       f"{ports.get(port['targetPort'])}")
    services = named(objects, "Service")
    for o in named(objects, "StatefulSet").values():
        service = services.get(o["spec"]["serviceName"])
        if service is None or service["spec"].get("clusterIP") != "None":
            yield f"StatefulSet {o['metadata']['name']}: no headless Service"


def check_memory_nodes(objects):
    """Workers must name each pod of the StatefulSet, and no other."""
    sets = named(objects, "StatefulSet")
    pods = {f"{name}-{i}.{s['spec']['serviceName']}:7401"
            for name, s in sets.items() for i in range(s["spec"]["replicas"])}
    for o in named(objects, "Deployment").values():
        for c in o["spec"]["template"]["spec"]["containers"]:
            nodes = settings_of(c, objects).get("--memory-nodes")
            if nodes is None or nodes == "127.0.0.1:7401":
                continue
            if set(nodes.split(",")) != pods:
                yield f"--memory-nodes={nodes} differs from {sorted(pods)}"


def check_objects(objects, programs):
    """Violations of everything that one `kubectl apply` would bring."""
    for o in objects:
        if o["kind"] not in WORKLOADS:
            continue
        pod = o["spec"]["template"]["spec"]
        for container in pod["containers"]:
            where = f"{o['kind']} {o['metadata']['name']}, {container['name']}"
            for message in [*check_flags(container, objects, programs),
                            *check_probes(container),
                            *check_security(pod, container),
                            *check_resources(container, objects),
                            *check_grace(pod, container, objects, programs)]:
                yield f"{where}: {message}"
    yield from check_selectors(objects)
    yield from check_services(objects)
    yield from check_memory_nodes(objects)
