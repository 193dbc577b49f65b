#!/usr/bin/env python3
"""Makes tests/deploy/kubernetes_fields.json: the fields of the Kubernetes
objects that deploy/k8s uses, and their types, out of published JSON schemas.

usage: kubernetes_fields.py SCHEMAS > tests/deploy/kubernetes_fields.json

SCHEMAS is a folder of strict schemas of one release, _definitions.json among
them, as the package kubernetes-validate has them:

    pip download --no-deps kubernetes-validate
    unzip kubernetes_validate-*.whl '*/v1.32.0-local-strict/*'

One line per type: {"fields": {name: type}, "required": [name]}. A type is
"string", "integer", "number", "boolean", "any", several of them with "|"
between, "[]TYPE", "{}TYPE" (a map) or the name of another line.
"""

import json
import os
import sys

OBJECTS = (
    "api.core.v1.Namespace", "api.core.v1.Service", "api.core.v1.ConfigMap",
    "api.core.v1.Secret", "api.core.v1.ServiceAccount", "api.core.v1.Pod",
    "api.apps.v1.StatefulSet", "api.apps.v1.Deployment",
    "api.policy.v1.PodDisruptionBudget", "api.networking.v1.NetworkPolicy",
    "api.scheduling.v1.PriorityClass")
PREFIX = "io.k8s."
# Written by the server.
LEFT_OUT = {"status", "managedFields"}


def name_of(reference):
    return reference.rpartition("/")[2].removeprefix(PREFIX)


def kinds_of(schema):
    kinds = schema.get("type", "any")
    kinds = [kinds] if isinstance(kinds, str) else kinds
    return [kind for kind in kinds if kind != "null"]


def type_of(schema):
    """The word for a schema, and the names that it refers to."""
    if "$ref" in schema:
        name = name_of(schema["$ref"])
        return name, {name}
    if "oneOf" in schema:
        words = [type_of(one)[0] for one in schema["oneOf"]]
        return "|".join(dict.fromkeys(words)), set()
    kinds = kinds_of(schema)
    if kinds == ["array"]:
        word, names = type_of(schema["items"])
        return "[]" + word, names
    if kinds == ["object"]:
        values = schema.get("additionalProperties")
        word, names = type_of(values) if values else ("any", set())
        return "{}" + word, names
    return "|".join(kinds), set()


def entry_of(schema):
    """The line of a type, and the names that it refers to."""
    if "properties" not in schema:
        word, names = type_of(schema)
        return {"is": word}, names
    fields, wanted = {}, set()
    for name, field in sorted(schema["properties"].items()):
        if name in LEFT_OUT:
            continue
        fields[name], names = type_of(field)
        wanted |= names
    entry = {"fields": fields}
    if schema.get("required"):
        entry["required"] = sorted(set(schema["required"]) - LEFT_OUT)
    return entry, wanted


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    path = os.path.join(sys.argv[1], "_definitions.json")
    with open(path, encoding="utf-8") as file:
        definitions = json.load(file)["$defs"]
    table, waiting = {}, set(OBJECTS)
    while waiting:
        name = waiting.pop()
        table[name], names = entry_of(definitions[PREFIX + name])
        waiting |= names - set(table)
    lines = [f"{json.dumps(name)}: {json.dumps(table[name])}"
             for name in sorted(table)]
    print("{\n" + ",\n".join(lines) + "\n}")


if __name__ == "__main__":
    main()
