"""Plays an overlay's pods and checks what a cluster's operator relies on.

usage: play.py MANIFESTS [--bin FOLDER] [--root FOLDER]

1. pods come up, and farkvctl in the worker's pod sees all of them;
2. a generation runs across them: it reads cold rows of every node;
3. a node that is drained and ends costs no request, nor does its successor;
4. a node that is killed costs none either: its rows are computed again.

While pods go and come, requests run without a pause, and every answer must
equal the first one token by token. Exits with 1, and says what is NOT SHOWN,
otherwise. Removes everything that it made.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import yaml

import cluster as cluster_module
from cluster import PlayError, await_that, require
from load import CLIENTS, METRICS, Load, Worker, metric

ADMIN = 7402


def say(text):
    print(f"== {text}", flush=True)


def come_up(play, worker):
    say("pods come up")
    for name in [*play.stateful(), worker.name]:
        play.start(name)
        await_that(f"{name} is ready", lambda n=name: play.ready(n))
        print(f"{name} is ready at {play.address(name)}")
    nodes = ",".join(f"{play.service_name(n)}:{ADMIN}" for n in play.stateful())
    for noun, count in (("nodes", len(play.stateful())), ("workers", 1)):
        items = worker.ask("get", noun, "--nodes", nodes)["items"]
        require(len(items) == count and
                all(i["state"] == "ready" for i in items),
                f"farkvctl get {noun} shows {items}")
        print(f"farkvctl get {noun}: "
              f"{', '.join(i['id'] for i in items)}")


def generate_across(play, worker):
    say("a generation runs across them")
    answer = worker.generate()
    tiers = answer["tiers"]
    print(f"{answer['usage']['completionTokens']} tokens, "
          f"{tiers['t1Tokens']} of them in T1 at the end; "
          f"{tiers['coldRowsRead']} cold rows read")
    require(tiers["coldRowsRead"] > 0, "the generation read no cold row")
    require(tiers["recomputedTokens"] == 0, "it lost rows")
    for name in play.stateful():
        read = (metric(play, name, "farkv_node_fetch_requests_total") +
                metric(play, name, "farkv_node_attend_requests_total"))
        require(read > 0, f"no cold row was read on {name}")
    return answer["tokenIds"]


def await_rows(play, load, name):
    """Until requests have rows on a node, so that its end hurts."""
    def stored():
        load.check()
        return metric(play, name, 'farkv_node_pages{state="stored"}') > 0
    await_that(f"requests have rows on {name}", stored)


def successor(play, worker, load, name, epoch):
    """The controller's part: a new pod of the same name, which is used."""
    play.start(name)
    began = time.monotonic()
    await_that(f"{name} is ready again", lambda: play.ready(name))

    def seen():
        load.check()
        healthy, now = worker.peers().get(name, (False, epoch))
        return healthy and now != epoch
    await_that(f"the worker has found {name} at its new address", seen, 120)
    found = time.monotonic() - began
    await_rows(play, load, name)
    load.await_more(CLIENTS, "with the new pod")
    print(f"{name} is back at {play.address(name)}, found by the worker within "
          f"{found:.0f} s, and used")


def drain(play, worker, load, name):
    say(f"{name} drains and ends while requests run")
    await_rows(play, load, name)
    _, epoch = worker.peers()[name]
    seen, ended = set(), threading.Event()

    def watch():
        while not ended.wait(0.2):
            seen.add(play.get(name, "/readyz", METRICS)[0])
    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        code = play.stop(name)
    finally:
        ended.set()
        watcher.join()
    require(code == 0, f"{name} ended with {code}")
    require(503 in seen, f"{name} was never seen draining: {seen}")
    load.await_more(CLIENTS, f"without {name}")
    print(f"{name} has left with exit code 0, no request has failed")
    successor(play, worker, load, name, epoch)


def kill(play, worker, load, name):
    say(f"{name} is killed while requests run")
    await_rows(play, load, name)
    _, epoch = worker.peers()[name]
    before = load.recomputed()
    play.kill(name)
    load.await_more(CLIENTS, f"without {name}")
    require(load.recomputed() > before,
            f"no running request had rows on {name}: nothing was shown")
    print(f"{name} is gone, {load.recomputed() - before} tokens were computed "
          "again, no request has failed")
    successor(play, worker, load, name, epoch)


def end(play, worker):
    say("everything ends")
    for name in [worker.name, *play.stateful()]:
        code = play.stop(name)
        require(code == 0, f"{name} ended with {code}")
        print(f"{name} has ended with exit code 0")


def fresh_images(bin_dir, folder):
    """Images with the programs of `bin_dir` over those that are there:
    {image: image in its place}."""
    made = {}
    for name, program in (("farkv-memory-node", "farkv-memory-node"),
                          ("farkv-worker", "farkv-worker")):
        image = f"localhost/{name}"
        context = os.path.join(folder, name)
        os.mkdir(context)
        for file in (program, "farkvctl"):
            shutil.copy(os.path.join(bin_dir, file), context)
        with open(os.path.join(context, "Dockerfile"), "w",
                  encoding="utf-8") as file:
            file.write(f"FROM {image}\nCOPY {program} farkvctl /usr/bin/\n")
        cluster_module.podman("build", "--quiet", "--layers=false", "--tag",
                              f"{image}:play", context)
        made[image] = f"{image}:play"
    return made


def first_prompt(root):
    path = os.path.join(root, "models", "reasoner", "heldout.jsonl")
    with open(path, encoding="utf-8") as file:
        return json.loads(file.readline())["prompt"]


def play_all(play, worker):
    come_up(play, worker)
    expected = generate_across(play, worker)
    first, *_, last = play.stateful()
    load = Load(worker, expected)
    try:
        load.await_more(CLIENTS, "before anything happens")
        drain(play, worker, load, last)
        kill(play, worker, load, first)
    finally:
        load.close()
    load.check()
    say(f"{len(load.answers)} requests ended, all alike, none failed")
    end(play, worker)


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser()
    parser.add_argument("manifests")
    parser.add_argument("--bin")
    parser.add_argument("--root", default=os.path.join(here, "..", ".."))
    arguments = parser.parse_args()
    with open(arguments.manifests, encoding="utf-8") as file:
        objects = [o for o in yaml.safe_load_all(file) if o]
    # As an interrupt: what was made is removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    images = {}
    try:
        if arguments.bin:
            with tempfile.TemporaryDirectory() as folder:
                images = fresh_images(arguments.bin, folder)
        with cluster_module.Cluster(objects, images) as play:
            stateless = [n for n in play.names if n not in play.stateful()]
            worker = Worker(play, stateless[0], first_prompt(arguments.root))
            try:
                play_all(play, worker)
            except BaseException:
                for name in play.running():
                    print(f"-- the log of {name}:\n{play.logs(name)}",
                          file=sys.stderr)
                raise
    except (PlayError, subprocess.SubprocessError) as error:
        print(f"NOT SHOWN: {error}", file=sys.stderr)
        return 1
    finally:
        for image in images.values():
            cluster_module.podman("rmi", image, check=False)
    say("shown: pods up, a generation across them, a drain, a kill")
    return 0


if __name__ == "__main__":
    sys.exit(main())
