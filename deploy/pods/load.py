"""Requests to the worker's pod, one by one or without a pause."""

import json
import subprocess
import threading

from cluster import PlayError, await_that, require

METRICS = 7403
NEW_TOKENS = 900
CLIENTS = 2


def metric(play, name, metric_name):
    """Sum of a metric's samples of one pod; 0 where nobody answers. With labels:
    of one sample."""
    _, text = play.get(name, "/metrics", METRICS)
    return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines()
               if line.startswith((metric_name + " ", metric_name + "{")))


class Worker:
    """The worker's pod, asked by the farkvctl in it."""

    def __init__(self, play, name, prompt):
        self.play, self.name, self._prompt = play, name, prompt

    def ask(self, *words):
        answer = self.play.exec(self.name, "farkvctl", *words, "-o", "json")
        require(answer.returncode == 0,
                f"farkvctl {' '.join(words)}: {answer.stderr.strip()}")
        return json.loads(answer.stdout)

    def generate(self):
        return self.ask("generate", "--prompt", self._prompt, "--ignore-eos",
                        "--hbm-ratio", "0",
                        "--max-new-tokens", str(NEW_TOKENS))

    def peers(self):
        """{node: (healthy, epoch)} as the worker has them."""
        items = self.ask("get", "peers", "--nodes", "none")["items"]
        return {p["id"]: (p["healthy"], p["epoch"]) for p in items}


class Load:
    """Requests without a pause by CLIENTS threads, until close()."""

    def __init__(self, worker, expected):
        self._worker, self._expected = worker, expected
        self._mutex, self._stop = threading.Lock(), threading.Event()
        self.answers, self.failures = [], []
        self._threads = [threading.Thread(target=self._run)
                         for _ in range(CLIENTS)]
        for thread in self._threads:
            thread.start()

    def _run(self):
        while not self._stop.is_set():
            try:
                answer = self._worker.generate()
                require(answer["tokenIds"] == self._expected,
                        "an answer differs from the first one")
            except (PlayError, OSError, ValueError, KeyError,
                    subprocess.SubprocessError) as error:
                with self._mutex:
                    self.failures.append(str(error))
                return
            with self._mutex:
                self.answers.append(answer)

    def check(self):
        with self._mutex:
            require(not self.failures, f"a request failed: {self.failures}")

    def await_more(self, count, what):
        """Until `count` more requests have ended since now."""
        goal = len(self.answers) + count

        def more():
            self.check()
            return len(self.answers) >= goal
        await_that(f"{count} more requests ended {what}", more, 120)

    def recomputed(self):
        return sum(a["tiers"]["recomputedTokens"] for a in self.answers)

    def close(self):
        self._stop.set()
        for thread in self._threads:
            thread.join()
