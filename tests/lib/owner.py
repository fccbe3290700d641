# SPDX-License-Identifier: MIT
"""A process that owns sessions and can be killed: JSON commands on stdin, one line of answer each.

    {"do": "create", "language": "python"}          -> {"id": ...}
    {"do": "execute", "id": ..., "code": ...}       -> the result object
    {"do": "start", "id": ..., "code": ...}         -> {} (the run goes on)
    {"do": "list"}                                  -> {"sessions": [...]}
    {"do": "adopted", "id": ...}                    -> the result of the next adopted run, or null
    {"do": "close"}                                 -> {}

Arguments: instance name, and "keep" to leave the sessions at the end.
"""

import json
import sys

import sa

library = sa.Library(instance=sys.argv[1], keep_sessions="keep" in sys.argv[2:])
runs = []


def adopted(request):
    """The result of the next run of a former owner."""
    run = library.session(request["id"]).adopted()
    return run and run.result(timeout=60)


def start(request):
    """Start a run and leave it."""
    runs.append(
        library.session(request["id"]).run(
            request["code"], kind=request.get("kind", "code"), timeout=request.get("timeout", 60)
        )
    )
    return {}


COMMANDS = {
    "create": lambda q: {
        "id": library.create(q.get("language", "python"), **q.get("options", {})).id
    },
    "execute": lambda q: library.session(q["id"]).execute(q["code"], q.get("timeout", 60)),
    "start": start,
    "list": lambda q: {"sessions": library.list()},
    "adopted": adopted,
    "close": lambda q: library.close() or {},
}

print(json.dumps({"ready": True}), flush=True)
for line in sys.stdin:
    query = json.loads(line)
    try:
        answer = COMMANDS[query["do"]](query)
    except sa.Error as error:
        answer = {"failed": error.name, "text": str(error)}
    print(json.dumps(answer), flush=True)
