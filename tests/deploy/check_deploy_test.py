"""Each check of check_deploy.py finds what it is there for.

usage: check_deploy_test.py --bin-dir DIR
"""

import argparse
import copy
import os
import shutil
import sys
import unittest

import check_deploy
import fields
import manifests
import programs as programs_module

ROOT = os.path.normpath(
    os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
PROGRAMS = None
TABLE = check_deploy.metric_table(ROOT)


def base_objects():
    """The base with its ConfigMaps, put together without kubectl."""
    folder = os.path.join(ROOT, "deploy", "k8s", "base")
    top = check_deploy.documents(
        check_deploy.read(folder, "kustomization.yaml"))[0]
    objects = []
    for name in top["resources"]:
        objects += check_deploy.documents(check_deploy.read(folder, name))
    for made in top["configMapGenerator"]:
        data = dict(item.split("=", 1) for item in made["literals"])
        objects.append({"apiVersion": "v1", "kind": "ConfigMap",
                        "metadata": {"name": made["name"]}, "data": data})
    return objects


class ManifestTest(unittest.TestCase):
    def setUp(self):
        self.objects = copy.deepcopy(base_objects())
        self.node = manifests.named(self.objects, "StatefulSet")[
            "farkv-memory-node"]
        self.pod = self.node["spec"]["template"]["spec"]
        self.container = self.pod["containers"][0]

    def expect(self, *words):
        found = list(manifests.check_objects(self.objects, PROGRAMS))
        self.assertTrue(
            any(all(w in line for w in words) for line in found),
            f"{words} is not in {found}")

    def test_the_base_is_good(self):
        self.assertEqual(
            list(manifests.check_objects(self.objects, PROGRAMS)), [])

    def test_fields_that_kubernetes_does_not_know(self):
        self.assertEqual(list(fields.check_fields(self.objects)), [])
        self.pod["securityContext"]["runAsNotRoot"] = True
        self.container["ports"][0]["containerPort"] = "7401"
        self.container["readinessProbe"]["httpGet"].pop("port")
        self.pod["volumes"][0]["emptyDir"] = "yes"
        self.pod["tolerations"] = {"key": "gpu"}
        self.node["spec"]["replicas"] = True
        self.objects.append({"apiVersion": "apps/v2", "kind": "Deployment",
                             "metadata": {"name": "late"}})
        found = "\n".join(fields.check_fields(self.objects))
        for words in ("PodSecurityContext has no field runAsNotRoot",
                      "ports.0.containerPort: '7401' is no integer",
                      "httpGet: port is missing",
                      "emptyDir: 'yes' is no EmptyDirVolumeSource",
                      "tolerations: {'key': 'gpu'} is no list",
                      "replicas: True is no integer",
                      "no apps/v2 Deployment is known"):
            self.assertIn(words, found)

    def test_a_flag_that_is_not_there(self):
        self.container["args"].append("--t9-bytes=1GiB")
        self.expect("no flag --t9-bytes")

    def test_a_variable_that_is_no_flag(self):
        manifests.named(self.objects, "ConfigMap")["farkv-worker"]["data"][
            "FARKV_WARMTH"] = "1"
        self.expect("farkv-worker has no flag --warmth")

    def test_a_port_other_than_the_default(self):
        self.container["args"] = [
            a.replace(":7402", ":7409") for a in self.container["args"]]
        self.expect("--admin-listen=0.0.0.0:7409", "7402 everywhere")
        self.expect("no container port is 7409")

    def test_a_worker_that_the_whole_cluster_may_drain(self):
        worker = manifests.named(self.objects, "Deployment")["farkv-worker"]
        args = worker["spec"]["template"]["spec"]["containers"][0]["args"]
        args[:] = [a.replace("127.0.0.1:7502", "0.0.0.0:7502") for a in args]
        self.expect("--admin-listen=0.0.0.0:7502", "may drain the worker")

    def test_a_probe_at_a_port_without_a_name(self):
        self.container["readinessProbe"]["httpGet"]["port"] = "http"
        self.expect("readinessProbe asks port http")

    def test_a_probe_of_the_wrong_path(self):
        self.container["livenessProbe"]["httpGet"]["path"] = "/readyz"
        self.expect("livenessProbe asks /readyz")

    def test_a_grace_period_that_is_too_short(self):
        self.pod["terminationGracePeriodSeconds"] = 74
        self.expect("74 s is shorter", "60", "10")

    def test_a_pre_stop_that_cannot_run(self):
        command = self.container["lifecycle"]["preStop"]["exec"]["command"]
        command[3] = "--now"
        self.expect("farkvctl drain has no flag --now")
        command[1] = "empty"
        self.expect("farkvctl empty", "no whole command")

    def test_a_limit_that_the_pool_fills(self):
        for kind in ("requests", "limits"):
            self.container["resources"][kind]["memory"] = "1Gi"
        self.expect("memory limit of 1073741824")

    def test_requests_below_limits(self):
        self.container["resources"]["requests"]["cpu"] = "1"
        self.expect("differ from limits")

    def test_huge_pages_that_the_pool_exceeds(self):
        for kind in ("requests", "limits"):
            self.container["resources"][kind]["hugepages-2Mi"] = "512Mi"
        self.expect("huge pages are less")

    def test_whoever_may_be_root_or_write(self):
        self.pod["securityContext"]["runAsNonRoot"] = False
        self.container["securityContext"] = {"privileged": True}
        for words in ("root", "privileged", "image", "capabilities",
                      "gain privileges"):
            self.expect(words)

    def test_service_links(self):
        self.pod["enableServiceLinks"] = True
        self.expect("look like flags")

    def test_selectors_that_select_nobody(self):
        template = self.node["spec"]["template"]["metadata"]
        template["labels"] = {"app.kubernetes.io/name": "other"}
        self.expect("misses its own pods")
        self.expect("Service farkv-memory-nodes selects nobody")
        self.expect("PodDisruptionBudget farkv-memory-node selects nobody")
        self.expect("NetworkPolicy farkv-memory-node selects nobody")

    def test_a_service_port_that_leads_elsewhere(self):
        service = manifests.named(self.objects, "Service")["farkv-worker"]
        service["spec"]["ports"][0]["port"] = 80
        self.expect("Service farkv-worker", "port 80", "7501")

    def test_a_set_without_its_headless_service(self):
        service = manifests.named(self.objects, "Service")["farkv-memory-nodes"]
        service["spec"]["clusterIP"] = "10.0.0.1"
        self.expect("no headless Service")

    def test_workers_that_miss_a_node(self):
        self.node["spec"]["replicas"] = 3
        self.expect("--memory-nodes", "farkv-memory-node-2")


class TextTest(unittest.TestCase):
    def expect(self, found, *words):
        found = list(found)
        self.assertTrue(any(all(w in line for w in words) for line in found),
                        f"{words} is not in {found}")

    def test_a_metric_that_is_not_exported(self):
        self.assertEqual(list(check_deploy.check_metrics(
            "farkv_node_pages farkv_worker_token_seconds_bucket", TABLE)), [])
        self.expect(check_deploy.check_metrics("farkv_node_leaves", TABLE),
                    "no metric farkv_node_leaves")
        self.expect(check_deploy.check_metrics(
            "farkv_worker_token_seconds > 1", TABLE), "is a histogram")

    def test_a_counter_without_a_rate(self):
        self.expect(check_deploy.check_counters(
            "sum(farkv_worker_steps_total)", TABLE), "no rate")
        self.assertEqual(list(check_deploy.check_counters(
            "sum(rate(farkv_worker_steps_total[5m]))", TABLE)), [])

    def test_a_rule_without_severity_or_words(self):
        rules = ("groups: [{name: g, rules: [{alert: A, "
                 "expr: farkv_node_pressure == 1}]}]")
        self.expect(check_deploy.check_rules(rules, TABLE), "severity")
        self.expect(check_deploy.check_rules(rules, TABLE), "no summary")

    def test_a_dashboard_with_an_empty_panel(self):
        text = ('{"panels": [{"id": 1, "type": "timeseries", "title": "T"},'
                '{"id": 1, "type": "row", "title": "R"}]}')
        self.expect(check_deploy.check_dashboard(text, TABLE), "shows nothing")
        self.expect(check_deploy.check_dashboard(text, TABLE), "one id")

    def test_an_image_that_runs_as_root_or_lacks_a_port(self):
        text = check_deploy.read(ROOT, "deploy/images/node.Dockerfile")
        self.assertEqual(
            list(check_deploy.check_dockerfile(text, PROGRAMS)), [])
        self.expect(check_deploy.check_dockerfile(
            text.replace("USER 65532", "USER 0"), PROGRAMS), "root")
        self.expect(check_deploy.check_dockerfile(
            text.replace("7403 ", ""), PROGRAMS), "7403")
        self.expect(check_deploy.check_dockerfile(
            text.replace("farkv-memory-node farkvctl ", "farkv-memory-node "),
            PROGRAMS), "lacks farkvctl")
        self.expect(check_deploy.check_dockerfile(
            text.replace(" /out/farkvctl ", " "), PROGRAMS),
            "builds farkvctl and leaves it behind")
        self.expect(check_deploy.check_dockerfile(
            text.replace("/image farkv-memory-node farkvctl",
                         "/image farkvctl"), PROGRAMS),
            "does not collect farkv-memory-node farkvctl")

    def test_an_image_that_lacks_a_library(self):
        text = check_deploy.read(ROOT, "deploy/images/worker-cpu.Dockerfile")
        if not shutil.which("dpkg-query") or not shutil.which("readelf"):
            self.skipTest("no dpkg-query or readelf")
        self.expect(check_deploy.check_dockerfile(
            text.replace(" libutf8proc2", ""), PROGRAMS),
            "farkv-worker needs libutf8proc", "libutf8proc2")

    def test_a_command_or_flag_that_docs_made_up(self):
        def check(text):
            return check_deploy.check_docs(text, PROGRAMS, TABLE)
        self.assertEqual(list(check(
            "```\nbuild/bin/farkvctl get nodes -o json | less\n```\n"
            "`farkvctl drain 127.0.0.1:7402 --yes`, `--cold=map`")), [])
        self.assertEqual(list(check(
            "```\nkubectl exec deploy/farkv-worker -- farkvctl get workers\n"
            "build/bin/farkv-worker --model=m \\\n  --cold=map\n```")), [])
        self.expect(check("```\nfarkvctl get nodules\n```"), "get nodules")
        self.expect(check("```\nfarkv-worker --model=m \\\n  --hot=1\n```"),
                    "farkv-worker has no flag --hot")
        self.expect(check("```\nb/farkv-memory-node --cold=map\n```"),
                    "farkv-memory-node has no flag --cold")
        self.expect(check("`farkvctl get nodes --wide`"), "--wide")
        self.expect(check("`--cold-mode`"), "--cold-mode")
        self.assertEqual(list(check("`--mmdebstrap` of a script")), [])
        self.expect(check("`--debootstrap`"), "--debootstrap")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin-dir", required=True)
    PROGRAMS = programs_module.Programs(parser.parse_args().bin_dir)
    unittest.main(argv=sys.argv[:1])
