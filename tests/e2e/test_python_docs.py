# SPDX-License-Identifier: Apache-2.0
"""The programs of docs/python.md, run as they stand there, with the real broker, laboratory and requester's command."""
import os
import re
import subprocess

import pytest

from harness.commands import as_requester, crowdveil
from harness.daemon import PYTHON, ROOT
from harness.lab import lab

REQUESTER, GATEWAY, POLICY, RESULTS = re.findall(r"```python\n(.*?)```", (ROOT / "docs/python.md").read_text(), re.S)
ENV = dict(os.environ, PYTHONPATH=str(ROOT / "python"))
HOLDERS = {"alice": "requester/alice", "gateway": "gateway/1-50000", "rank": "thirdparty/ranker"}


@pytest.fixture
def program(deployment, tmp_path):
    """Writes one of the programs, with the addresses and certificates of this deployment; its command."""
    def write(name, text):
        files = {party: deployment.pki.issue(holder) for party, holder in HOLDERS.items()}
        text = re.sub(r'"(\w+)/(ca|cert|key)\.pem"', lambda match: repr(getattr(files[match[1]], match[2])), text)
        text = text.replace("127.0.0.1:7402", "127.0.0.1:0")
        if deployment.broker is not None:
            text = text.replace("broker.example:7401", deployment.broker.address)
        (tmp_path / f"{name}.py").write_text(text)
        return [PYTHON, f"{name}.py"]
    return write


def test_the_four_programs_rank_and_read_the_results(deployment, program, tmp_path):
    logged = "import logging\nlogging.basicConfig(level=logging.INFO, format='%(message)s')\n"
    ranker = deployment.launch("ranker", program("ranker", logged + POLICY), cwd=tmp_path, env=ENV)
    deployment.start_broker({"thirdparty": ranker.address})
    requester = deployment.launch("requester", program("requester", REQUESTER), cwd=tmp_path, env=ENV)
    deployment.broker.wait_for('campaign 1 "films" accepted')
    gateway = deployment.launch("gateway", program("gateway", GATEWAY), cwd=tmp_path, env=ENV)
    assert requester.wait() == 0 and gateway.wait() == 0 and ranker.stop() == 0, deployment.logs()
    # two plans of 500 tokens for each of three items
    assert re.fullmatch(r"complete \{1: \[1\], 2: \[2\], 3: \[0\]\} 6 \d+\.\d+", requester.text())
    assert gateway.text() == "3000"

    saved = crowdveil("export", "1", *as_requester(deployment), "--output", tmp_path / "films.json")
    assert saved.returncode == 0, saved.stderr
    ran = lab("run", "mechanisms", "--out", tmp_path / "fig", "--replicates", "2", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    done = subprocess.run(program("results", RESULTS), cwd=tmp_path, env=ENV, text=True, capture_output=True,
                          check=False)
    assert re.fullmatch(r"\d+ 4500 6\n", done.stdout), done.stdout + done.stderr
    assert (tmp_path / "films.npz").exists()
