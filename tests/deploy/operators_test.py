"""Each check of operators.py finds what it is there for.

Wants kubectl, which renders the overlay; skipped, and said so, without it.
"""

import copy
import os
import shutil
import sys
import unittest

import check_deploy
import manifests
import operators

OBJECTS = []


class OperatorsTest(unittest.TestCase):
    def setUp(self):
        self.objects = copy.deepcopy(OBJECTS)

    def expect(self, *words):
        found = list(operators.check_operators(self.objects))
        self.assertTrue(
            any(all(w in line for w in words) for line in found),
            f"{words} is not in {found}")

    def test_the_overlay_is_good(self):
        self.assertEqual(list(operators.check_operators(self.objects)), [])

    def test_a_monitor_of_nobody(self):
        monitor = manifests.named(self.objects, "ServiceMonitor")[
            "farkv-memory-node"]
        monitor["spec"]["selector"]["matchLabels"] = {"app": "node"}
        self.expect("ServiceMonitor farkv-memory-node selects nobody")

    def test_a_monitor_of_a_port_that_is_not_there(self):
        monitor = manifests.named(self.objects, "PodMonitor")["farkv-worker"]
        monitor["spec"]["podMetricsEndpoints"][0]["port"] = "http"
        self.expect("PodMonitor farkv-worker: http is none of the ports")

    def test_a_node_more_than_the_certificate_names(self):
        manifests.named(self.objects, "StatefulSet")["farkv-memory-node"][
            "spec"]["replicas"] = 3
        self.expect("lacks farkv-memory-node-2.farkv-memory-nodes")

    def test_a_certificate_that_the_pods_own_farkvctl_refuses(self):
        certificate = manifests.named(self.objects, "Certificate")[
            "farkv-worker"]
        certificate["spec"]["ipAddresses"] = []
        self.expect("farkv-worker", "lacks 127.0.0.1")

    def test_a_key_that_nobody_mounts(self):
        pod = manifests.named(self.objects, "StatefulSet")[
            "farkv-memory-node"]["spec"]["template"]["spec"]
        pod["volumes"] = [v for v in pod["volumes"] if v["name"] != "tls"]
        self.expect("--tls-key=/etc/farkv/tls/tls.key is in no Secret")

    def test_a_process_without_keys_among_others(self):
        data = manifests.named(self.objects, "ConfigMap")
        for name in [n for n in data if n.startswith("farkv-worker")]:
            for flag in ("CA", "CERT", "KEY"):
                data[name]["data"].pop("FARKV_TLS_" + flag)
        self.expect("no --tls-ca for ['worker']")


def main():
    if shutil.which("kubectl") is None:
        print("skipped: no kubectl, which renders the overlay")
        sys.exit(77)
    OBJECTS.extend(check_deploy.render(check_deploy.ROOT,
                                       os.path.join("overlays", "cpu-demo-tls")))
    unittest.main()


if __name__ == "__main__":
    main()
