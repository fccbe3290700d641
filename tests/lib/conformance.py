# SPDX-License-Identifier: MIT
"""Runs MCP's official conformance suite against a server and counts checks, not ticks.

The suite ticks a scenario in which nothing failed, also one that checked nothing, and it adds a
check of its own (the schema of what went over the wire) to each. So a scenario counts as passed
here when at least one check that belongs to it succeeded, none failed, and none gave a warning.
"""

import json
import os
import re
import subprocess
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CLIENTS = ROOT / "build/clients/node_modules"
NODE = CLIENTS / ".bin/node"
SUITE = CLIENTS / "@modelcontextprotocol/conformance"
WIRE = ("wire-schema-valid", "wire-schema-harness-error")

CALLS = """tools-list tools-call-simple-text tools-call-image tools-call-audio
    tools-call-embedded-resource tools-call-mixed-content tools-call-error
    tools-call-with-progress completion-complete server-sse-multiple-streams resources-list
    resources-read-text resources-read-binary resources-templates-read prompts-list
    prompts-get-simple prompts-get-with-args prompts-get-embedded-resource prompts-get-with-image
    dns-rebinding-protection""".split()
INPUT_REQUIRED = """basic-elicitation basic-sampling basic-list-roots request-state
    multiple-input-requests multi-round missing-input-response non-tool-request result-type
    unsupported-methods tampered-state capability-check ignore-extra-params
    validate-input""".split()
REQUIRED = {
    "2025-11-25": CALLS + """server-initialize logging-set-level ping tools-call-with-logging
        tools-call-sampling tools-call-elicitation elicitation-sep1034-defaults
        elicitation-sep1330-enums resources-subscribe resources-unsubscribe""".split(),
    "2026-07-28": CALLS + ["server-stateless", "sep-2164-resource-not-found", "caching"]
    + [f"input-required-result-{name}" for name in INPUT_REQUIRED],
}


@dataclass
class Scenario:
    """What the suite found in one scenario; each check is (id, status, what was wrong)."""

    checks: list = field(default_factory=list)

    @property
    def own(self):
        """Return the checks that are the scenario's own."""
        return [check for check in self.checks if check[0] not in WIRE]

    def count(self, status):
        """Count the checks of a status."""
        return Counter(check[1] for check in self.checks)[status]

    @property
    def problems(self):
        """Return what keeps it from having passed."""
        found = [f"{name}: {status}: {why}" for name, status, why in self.checks
                 if status in ("FAILURE", "WARNING")]
        if not any(status == "SUCCESS" for _, status, _ in self.own):
            found.append("no check of its own succeeded")
        return found


def _message(check):
    return check.get("errorMessage") or json.dumps(check.get("details", {}))[:600]


def run(revision, url, directory):
    """Run all that a revision requires; return ({scenario: Scenario}, status, what it printed)."""
    done = subprocess.run(
        [NODE, SUITE / "dist/index.js", "server", "--url", url, "--requirements", revision,
         "-o", directory],
        capture_output=True, text=True, timeout=600, check=False,
        env=os.environ | {"NO_COLOR": "1"})
    scenarios = {}
    for path in sorted(Path(directory).glob("server-*/checks.json")):
        name = re.fullmatch(r"server-(.+)-\d{4}-\d\d-\d\dT[-\dZ]+", path.parent.name).group(1)
        scenario = scenarios.setdefault(name, Scenario())
        scenario.checks += [(check["id"], check["status"], _message(check))
                            for check in json.loads(path.read_text())]
    return scenarios, done.returncode, done.stdout + done.stderr


def suite_version():
    """Return the version of the suite that is installed."""
    return json.loads((SUITE / "package.json").read_text())["version"]


def table(revision, scenarios):
    """Return the required scenarios of a revision as a Markdown table, and then the others."""
    def row(name):
        scenario = scenarios.get(name, Scenario())
        counts = [scenario.count(status) for status in ("SUCCESS", "FAILURE", "WARNING",
                                                        "SKIPPED", "INFO")]
        bad = scenario.count("FAILURE") + scenario.count("WARNING")
        verdict = "FAILED" if bad else "nothing checked" if scenario.problems else "passed"
        return f"| {name} | {' | '.join(map(str, counts))} | {verdict} |"

    head = ["| scenario | checks passed | failed | warned | skipped | told | |",
            "|---|--:|--:|--:|--:|--:|---|"]
    required = REQUIRED[revision]
    others = sorted(set(scenarios) - set(required))
    passed = sum(not scenarios.get(name, Scenario()).problems for name in required)
    lines = [f"Required: {passed} of {len(required)} scenarios passed.", "",
             *head, *map(row, required)]
    if others:
        reasons = {f"- {name}: {why}" for name in others
                   for _, status, why in scenarios[name].checks if status == "FAILURE"}
        lines += ["", "Run, but not required by the suite:", "", *head, *map(row, others)]
        lines += ["", "What failed there:", "", *sorted(reasons)] if reasons else []
    return "\n".join(lines) + "\n"
