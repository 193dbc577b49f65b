"""Checks objects against the fields that Kubernetes knows."""

import json
import os

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                     "kubernetes_fields.json")
# Groups of operators, whose schemas come with them.
OPERATORS = ("cert-manager.io/", "monitoring.coreos.com/")
META = "apimachinery.pkg.apis.meta.v1.ObjectMeta"


def table():
    with open(TABLE, encoding="utf-8") as file:
        return json.load(file)


def type_name(o):
    """"api.apps.v1.StatefulSet" of apps/v1 and StatefulSet."""
    group, _, version = o["apiVersion"].rpartition("/")
    return f"api.{group.split('.')[0] or 'core'}.{version}.{o['kind']}"


def is_a(value, word):
    if word == "any":
        return True
    if isinstance(value, bool):
        return word == "boolean"
    return isinstance(value, {"string": str, "integer": int, "boolean": bool,
                              "number": (int, float)}[word])


def check_value(value, word, types, path):
    """What is wrong with a value of a type as the table names it."""
    if word.startswith("[]") or word.startswith("{}"):
        kind = list if word.startswith("[]") else dict
        if not isinstance(value, kind):
            yield f"{path}: {value!r} is no {kind.__name__}"
            return
        items = enumerate(value) if kind is list else value.items()
        for key, item in items:
            yield from check_value(item, word[2:], types, f"{path}.{key}")
        return
    entry = types.get(word, {"is": word})
    if "is" in entry:
        if not any(is_a(value, one) for one in entry["is"].split("|")):
            yield f"{path}: {value!r} is no {entry['is']}"
        return
    if not isinstance(value, dict):
        yield f"{path}: {value!r} is no {word.rpartition('.')[2]}"
        return
    for name in entry.get("required", []):
        if name not in value:
            yield f"{path}: {name} is missing"
    for name, item in value.items():
        if name not in entry["fields"]:
            yield f"{path}: {word.rpartition('.')[2]} has no field {name}"
        else:
            yield from check_value(item, entry["fields"][name], types,
                                   f"{path}.{name}")


def check_fields(objects):
    types = table()
    for o in objects:
        where = f"{o.get('kind', '?')} {o['metadata']['name']}"
        if o.get("apiVersion", "").startswith(OPERATORS):
            yield from check_value(o["metadata"], META, types,
                                   f"{where}.metadata")
        elif "apiVersion" not in o or type_name(o) not in types:
            yield f"{where}: no {o.get('apiVersion')} {o.get('kind')} is known"
        else:
            yield from check_value(o, type_name(o), types, where)
