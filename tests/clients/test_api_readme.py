"""The first session of the README, as it stands there, from its first request to its last."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"


def blocks(language) -> list[str]:
    """The session's blocks of code."""
    text = README.read_text().split("## A first session", 1)[1].split("\n## ", 1)[0]
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


@pytest.mark.skipif(not shutil.which("curl"), reason="there is no curl")
def test_the_session_with_curl_and_python(service, tmp_path):
    (tmp_path / ".data").symlink_to(service.folder)
    python = Path(sys.executable).parent
    environment = os.environ | {"PATH": f"{python}:{os.environ['PATH']}"}

    def run(*command):
        result = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120
        )
        assert result.returncode == 0, result.stderr
        return result.stdout

    def here(text):
        return text.replace("http://127.0.0.1:3000", service.endpoint)

    def shell(text):
        lines = run("bash", "-euc", here(text)).splitlines()
        answers = [json.loads(line) for line in lines]
        assert not any("error" in answer for answer in answers), answers
        return answers

    start, create, write = blocks("sh")
    assert start == "cargo xtask up\n"
    _, declared = shell(create)

    # The reader fills in what is cut short with an ellipsis.
    functions = create.split("\n\n")[0] + "\n"
    write = re.sub(r"file:///…[^\"]*", declared["location"], write).replace("pip install pylance\n", "")
    submit, look = write.split('# {"task_id"')
    (task,) = shell(functions + submit)
    look = look.split("\n", 1)[1].replace("10000000000…", task["task_id"])
    got, listed = shell(functions + look)
    assert got["task_info"]["task_id"] == task["task_id"]
    assert [it["task_id"] for it in listed["tasks"]] == [task["task_id"]]
    service.client().wait("prod$documents", task["task_id"])

    program, through_lance = blocks("python")
    printed = run("python3", "-c", here(program))
    assert printed.startswith("completed {"), printed
    assert "'num_indexed_rows': 2000" in printed
    assert re.search(r"id: \[\[1,2,3\]\]", run("python3", "-c", here(through_lance)))
    table_id = "prod$orders"
    assert service.client().complete(table_id, "compact", {})["fragments_removed"] == 0
