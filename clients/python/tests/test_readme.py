"""The session of the README, as it stands there."""

import json
import re
from pathlib import Path

from fake import KEY, REGION, SECRET, Answer

README = Path(__file__).parents[1] / "README.md"


def test_the_session(fake, monkeypatch, tmp_path, capsys):
    (session,) = re.findall("```python\n(.*?)```", README.read_text(), re.S)
    keys = {"access_key_id": KEY, "secret_access_key": SECRET, "region": REGION}
    (tmp_path / ".data").mkdir()
    (tmp_path / ".data/credentials.json").write_text(json.dumps(keys))
    monkeypatch.chdir(tmp_path)
    advice = {"rule": "compaction", "reason": "20 fragments could be 1.", "numbers": {}, "job": None}
    job = {"job_id": "j.1", "state": "succeeded", "result": {"files_added": 1}}
    answers = {
        "create": {"properties": {}},
        "register": {"location": "s3://my-bucket/lance/documents.lance"},
        "health": {"table": "t", "errors": {}, "advice": [advice]},
        "preview": {"tasks": 1},
        "jobs": {**job, "state": "queued"},
        "j.1": job,
    }
    fake.answer = lambda request: Answer(200, answers[request.path.split("/")[-1]])
    exec(session.replace("http://127.0.0.1:3000", fake.url), {})
    assert [line.split("/")[-1] for line in fake.lines] == list(answers)
    expected = "20 fragments could be 1.\n{'tasks': 1}\nsucceeded {'files_added': 1} None\n"
    assert capsys.readouterr().out == expected
