"""The pods that deploy/pods plays are those that the manifests describe.

Runs on the rendered overlay, or, without kubectl, says so and is skipped.
"""

import copy
import os
import shutil
import socket
import struct
import subprocess
import sys
import unittest

try:
    import yaml
except ImportError:
    print("skipped: no Python module yaml (Debian: python3-yaml)")
    sys.exit(77)

ROOT = os.path.normpath(
    os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
PODS = os.path.join(ROOT, "deploy", "pods")
OVERLAY = os.path.join(ROOT, "deploy", "k8s", "overlays", "cpu-demo")
sys.path.insert(0, PODS)

import name_server
import pods


def render():
    answer = subprocess.run(["kubectl", "kustomize", OVERLAY], check=True,
                            capture_output=True, text=True, timeout=120)
    return [o for o in yaml.safe_load_all(answer.stdout) if o]


class PodsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.rendered = render()

    def setUp(self):
        self.objects = copy.deepcopy(self.rendered)
        self.workloads = {w["metadata"]["name"]: w
                          for w in pods.workloads(self.objects)}
        self.node = self.workloads["farkv-memory-node"]

    def pod(self, name="farkv-memory-node-1"):
        return pods.make_pod(self.node, name, "10.1.2.3", "10.1.2.1")

    def test_a_pod_for_each_replica_by_its_stable_name(self):
        self.assertEqual(pods.pod_names(self.node),
                         ["farkv-memory-node-0", "farkv-memory-node-1"])
        self.node["spec"]["replicas"] = 3
        self.assertEqual(len(pods.pod_names(self.node)), 3)

    def test_names_of_the_service_are_those_that_the_worker_asks_for(self):
        worker = pods.make_pod(self.workloads["farkv-worker"], "w", "10.1.2.9")
        data = pods.config_maps_of(worker, self.objects)[0]["data"]
        asked = {a.partition(":")[0]
                 for a in data["FARKV_MEMORY_NODES"].split(",")}
        self.assertEqual(asked, set(pods.service_names(self.objects).values()))

    def test_arguments_carry_the_name_and_the_address_of_the_pod(self):
        arguments = self.pod()["spec"]["containers"][0]["args"]
        self.assertIn("--node-id=farkv-memory-node-1", arguments)
        self.assertIn("--data-advertise=10.1.2.3", arguments)
        self.assertFalse([a for a in arguments if "$(" in a])

    def test_a_field_that_nobody_can_fill_is_an_error(self):
        container = self.node["spec"]["template"]["spec"]["containers"][0]
        container["env"].append({"name": "HOST", "valueFrom": {
            "fieldRef": {"fieldPath": "spec.nodeName"}}})
        with self.assertRaises(KeyError):
            self.pod()

    def test_security_and_resources_stay_as_they_are(self):
        template = self.node["spec"]["template"]["spec"]
        spec = self.pod()["spec"]
        self.assertEqual(spec["securityContext"], template["securityContext"])
        for key in ("securityContext", "resources", "envFrom", "command"):
            self.assertEqual(spec["containers"][0][key],
                             template["containers"][0][key])

    def test_what_podman_cannot_do_is_left_to_whoever_plays(self):
        container = self.pod()["spec"]["containers"][0]
        for key in ("livenessProbe", "readinessProbe", "startupProbe",
                    "lifecycle", "ports"):
            self.assertNotIn(key, container)
        command, ready = pods.hooks_of(self.node)["memory-node"]
        self.assertEqual(command[:3], ["farkvctl", "drain", "127.0.0.1:7402"])
        self.assertEqual(ready, ("/readyz", 7403))

    def test_no_two_pods_share_an_empty_dir(self):
        volumes = {name: {v["name"] for v in self.pod(name)["spec"]["volumes"]}
                   for name in pods.pod_names(self.node)}
        first, second = volumes.values()
        self.assertTrue(first and second)
        self.assertFalse(first & second)
        mounts = self.pod()["spec"]["containers"][0]["volumeMounts"]
        self.assertLessEqual({m["name"] for m in mounts}, second)

    def test_a_config_map_that_is_missing_is_an_error(self):
        objects = [o for o in self.objects if o["kind"] != "ConfigMap"]
        with self.assertRaisesRegex(ValueError, "no ConfigMap"):
            pods.config_maps_of(self.pod(), objects)

    def test_the_manifests_stay_as_they_were(self):
        self.pod()
        self.assertEqual(self.objects, self.rendered)

    def test_the_program_prints_every_pod_with_its_config_maps(self):
        answer = subprocess.run(
            [sys.executable, os.path.join(PODS, "pods.py"),
             "farkv-memory-node-1=10.1.2.3"],
            input=yaml.safe_dump_all(self.objects), capture_output=True,
            text=True, timeout=60, check=True)
        kinds = [o["kind"] for o in yaml.safe_load_all(answer.stdout)]
        self.assertEqual(kinds, ["ConfigMap", "Pod"] * 3)
        self.assertIn("--data-advertise=10.1.2.3", answer.stdout)


def query(name, kind=name_server.A):
    labels = b"".join(bytes([len(part)]) + part.encode()
                      for part in name.split("."))
    return (b"\x12\x34" + struct.pack("!HHHHH", 0x0100, 1, 0, 0, 0) + labels +
            b"\0" + struct.pack("!HH", kind, name_server.IN))


def outcome(reply):
    """(code, number of answers, last four bytes)."""
    flags, _, answers = struct.unpack_from("!HHH", reply, 2)
    return flags & 15, answers, reply[-4:]


class NameServerTest(unittest.TestCase):
    TABLE = {"node-0.nodes.farkv.svc.cluster.local": "10.1.2.3"}

    def answer(self, name, kind=name_server.A):
        return name_server.answer_to(query(name, kind), self.TABLE)

    def test_a_name_of_the_table(self):
        reply = self.answer("Node-0.nodes.farkv.svc.cluster.local")
        self.assertEqual(outcome(reply), (0, 1, bytes([10, 1, 2, 3])))
        self.assertEqual(reply[:2], b"\x12\x34")
        self.assertTrue(reply[2] & 0x80)

    def test_another_type_of_a_name_that_is_there_is_no_error(self):
        code, answers, _ = outcome(
            self.answer("node-0.nodes.farkv.svc.cluster.local",
                        name_server.AAAA))
        self.assertEqual((code, answers), (0, 0))

    def test_a_name_that_is_not_there(self):
        for name in ("node-1.nodes.farkv.svc.cluster.local", "node-0.nodes"):
            code, answers, _ = outcome(self.answer(name))
            self.assertEqual((code, answers), (name_server.NAME_ERROR, 0))

    def test_a_change_is_served_at_once_and_rubbish_is_passed_over(self):
        server = name_server.NameServer("127.0.0.1", 0)
        client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        client.settimeout(20)
        try:
            for address in ("10.0.0.1", "10.0.0.2"):
                server.set("node-0.nodes", address)
                client.sendto(b"\x01", ("127.0.0.1", server.port))
                client.sendto(query("node-0.nodes"), ("127.0.0.1", server.port))
                self.assertEqual(outcome(client.recv(512)),
                                 (0, 1, socket.inet_aton(address)))
            server.set("node-0.nodes", None)
            client.sendto(query("node-0.nodes"), ("127.0.0.1", server.port))
            self.assertEqual(outcome(client.recv(512))[0],
                             name_server.NAME_ERROR)
        finally:
            client.close()
            server.stop()


if __name__ == "__main__":
    if shutil.which("kubectl") is None:
        print("skipped: no kubectl, so that there are no rendered manifests")
        sys.exit(77)
    unittest.main()
