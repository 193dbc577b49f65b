#!/usr/bin/env python3
"""A client of the Generate API: streams the outputs of one request.

    apt-get install python3-grpcio python3-protobuf protobuf-compiler-grpc
    scripts/python_stubs.sh /tmp/stubs
    PYTHONPATH=/tmp/stubs docs/examples/generate.py --prompt 'a3;b4;|'

With --chat the prompt is a user's message to the model's chat template. What
the model has thought is told apart by the ids of the marks around it.
"""

import argparse
import math
import sys

import grpc
from farkv.worker.v1 import generation_pb2 as api
from farkv.worker.v1 import generation_service_pb2_grpc as services

REASONS = {
    api.FINISH_REASON_STOP: "stop",
    api.FINISH_REASON_LENGTH: "length",
    api.FINISH_REASON_CANCELLED: "cancelled",
    api.FINISH_REASON_DEADLINE: "deadline",
}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--worker", default="127.0.0.1:7501")
    parser.add_argument("--prompt", required=True)
    parser.add_argument("--chat", action="store_true")
    parser.add_argument("--max-new-tokens", type=int, default=64)
    parser.add_argument("--temperature", type=float, default=0.0)
    parser.add_argument("--n", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--timeout", type=float, default=60.0)
    return parser.parse_args()


def request_of(args):
    request = api.GenerateRequest(logprobs=True, top_logprobs=2)
    if args.chat:
        request.chat.messages.add(role="user", content=args.prompt)
    else:
        request.text = args.prompt
    sampling = request.sampling
    sampling.temperature = args.temperature
    sampling.n = args.n
    sampling.seed = args.seed
    sampling.repetition_penalty = 1.05
    request.stopping.max_new_tokens = args.max_new_tokens
    return request


class Output:
    def __init__(self):
        self.text, self.tokens, self.logprobs = "", [], []
        self.finished = None

    def take(self, delta):
        self.text += delta.text
        self.tokens += delta.token_ids
        self.logprobs += [entry.chosen.logprob for entry in delta.logprobs]

    def show(self, index, model):
        usage = self.finished.usage
        print(f"--- output {index}: {REASONS[self.finished.reason]},"
              f" {usage.completion_tokens} tokens of which"
              f" {usage.reasoning_tokens} are thoughts, seed {usage.seed}")
        print(self.text)
        if self.logprobs:
            mean = sum(self.logprobs) / len(self.logprobs)
            print(f"perplexity {math.exp(-mean):.3f}")
        if model.HasField("reasoning_end_token_id"):
            end = model.reasoning_end_token_id
            if end in self.tokens:
                print("answer:", self.tokens[self.tokens.index(end) + 1:])


def main():
    args = arguments()
    with grpc.insecure_channel(args.worker) as channel:
        stub = services.GenerationServiceStub(channel)
        outputs = {}
        try:
            model = stub.GetModel(api.GetModelRequest(), timeout=args.timeout)
            for response in stub.Generate(request_of(args),
                                          timeout=args.timeout):
                event = response.WhichOneof("event")
                if event == "error":
                    sys.exit(f"error: {response.error.message}")
                part = getattr(response, event)
                output = outputs.setdefault(part.output_index, Output())
                if event == "delta":
                    output.take(part)
                else:
                    output.finished = part
        except grpc.RpcError as error:
            sys.exit(f"error: {error.code().name}: {error.details()}")
    for index in sorted(outputs):
        outputs[index].show(index, model)


if __name__ == "__main__":
    main()
