"""Are the messages that are checked in those that the .proto files describe?"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROTOCOL = Path("ci/interop/protocol")


def test_what_is_checked_in_is_what_the_generator_makes(tmp_path):
    sources = sorted(str(path.relative_to(ROOT)) for path in (ROOT / PROTOCOL).glob("*.proto"))
    assert len(sources) == 2
    generator = [sys.executable, "-m", "grpc_tools.protoc", "-I", "."]
    subprocess.run([*generator, f"--python_out={tmp_path}", f"--pyi_out={tmp_path}", *sources], cwd=ROOT, check=True)
    made = sorted((tmp_path / PROTOCOL).iterdir())
    assert [path.name for path in made] == ["ping_pb2.py", "ping_pb2.pyi", "runner_pb2.py", "runner_pb2.pyi"]
    for path in made:
        assert path.read_text() == (ROOT / PROTOCOL / path.name).read_text(), f"{path.name}: see CONTRIBUTING.md"
