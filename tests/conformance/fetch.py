#!/usr/bin/env python3
"""Fetches the packages whose test files `./dev conformance` plays, each by its registry's own client.

Usage: fetch.py FOLDER. Each package becomes a folder of its name in FOLDER. Nothing of them is kept in this repository;
their licences are their authors'.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile

# Name, version, SHA-256 of the archive.
CRATES = [
    ("alac", "0.5.0", "498a34d3cad5f3b23cc217ab489424ebcfffed186e30ad5ac02624e50df2c2b8"),
    ("claxon", "0.4.3", "4bfbf56724aa9eca8afa4fcfadeb479e722935bb2a0900c2d37e0cc477af0688"),
    ("flac-codec", "1.3.3", "59c7588004ca8c0d0c6fce15a02c0bdca964d94a83a73e45680a6874d551d405"),
    ("hound", "3.5.1", "62adaabb884c94955b19907d60019f4e145d091c75345379e70d1ee696f7854f"),
    ("matroska-demuxer", "0.8.1", "4cbf36668475a45a46bf8710e927e7458b7c387e7c46ddb5457ae0c71cf5e817"),
    ("mp4", "0.12.0", "3b3f2d2c1de60843b72f18e2cc79c3529791e109747737e65d547540482c10e8"),
    ("nanomp3-core", "0.2.0", "63fa2238e662d3d3c1a71168b3278f23422cf9bf76f6943ee6b1c2581d74eb5c"),
    ("puremp3", "0.1.0", "f2b7efbb39e373af70c139e0611375fa6cad751fb93d528a610b55302710d883"),
    ("redlux", "0.7.0", "a740e99cfd0a877d290e9e31e965f6e76f017373b03d1896ff6957ff21aa2fed"),
    ("wavers", "1.5.1", "d599ddd98c95ad3d3fc898cfb5c4023430f6ea62f96083f46d13cc8b82589bd3"),
]
NPM = [("audio-lena", "3.0.1", "8b0e9d6cc58e264563f410da76b292e3770448670314b52bfae3764a876fc283")]
PYTHON = [("mutagen", "1.48.1", "8f95637ab9f6f305cec6bd1294e197debe207998e3e068596563c74f86b0a173")]


def run(*command, folder):
    """Runs a client; what it says is shown only if it fails."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def need(program, package):
    if shutil.which(program) is None:
        sys.exit(f"{program} is missing, which fetches some of the files; install it first (Debian: {package})")


def fetch_crates(folder, wanted):
    """cargo fetches for a project; one that depends on all of them will do."""
    os.makedirs(os.path.join(folder, "src"))
    open(os.path.join(folder, "src/lib.rs"), "w").close()
    with open(os.path.join(folder, "Cargo.toml"), "w") as manifest:
        manifest.write('[package]\nname = "fetched"\nversion = "0.0.0"\nedition = "2021"\n[workspace]\n[dependencies]\n')
        for name, version, _ in wanted:
            manifest.write(f'{name} = {{ version = "={version}", default-features = false }}\n')
    run("cargo", "fetch", folder=folder)
    home = os.environ.get("CARGO_HOME", os.path.expanduser("~/.cargo"))
    cache = os.path.join(home, "registry", "cache")
    for name, version, _ in wanted:
        found = [
            os.path.join(cache, registry, f"{name}-{version}.crate")
            for registry in os.listdir(cache)
            if os.path.exists(os.path.join(cache, registry, f"{name}-{version}.crate"))
        ]
        if not found:
            sys.exit(f"cargo fetched {name} {version}, and it is not in {cache}")
        yield name, found[0]


def fetch_npm(folder, wanted):
    need("npm", "npm")
    for name, version, _ in wanted:
        packed = run("npm", "pack", "--silent", f"{name}@{version}", folder=folder).split()[-1]
        yield name, os.path.join(folder, packed)


def fetch_python(folder, wanted):
    need("pip", "python3-pip")
    for name, version, _ in wanted:
        run("pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", f"{name}=={version}", folder=folder)
        yield name, os.path.join(folder, f"{name}-{version}.tar.gz")


def unpack(archive, sum_wanted, version, place):
    """Checks the archive and unpacks it, without the folder that all of it is in."""
    with open(archive, "rb") as file:
        got = hashlib.sha256(file.read()).hexdigest()
    if got != sum_wanted:
        sys.exit(f"{archive} is not what it was: SHA-256 {got}, expected {sum_wanted}")
    unpacking = place + ".unpacking"
    shutil.rmtree(unpacking, ignore_errors=True)
    with tarfile.open(archive) as tar:
        for member in tar.getmembers():
            parts = member.name.split("/")
            if not member.isfile() or len(parts) < 2 or ".." in parts:
                continue
            target = os.path.join(unpacking, *parts[1:])
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with tar.extractfile(member) as source, open(target, "wb") as file:
                shutil.copyfileobj(source, file)
    with open(os.path.join(unpacking, ".sum"), "w") as file:
        file.write(sum_wanted)
    shutil.rmtree(place, ignore_errors=True)
    os.rename(unpacking, place)


def is_there(place, wanted):
    try:
        with open(os.path.join(place, ".sum")) as file:
            return file.read() == wanted
    except OSError:
        return False


def main():
    folder = os.path.abspath(sys.argv[1])
    os.makedirs(folder, exist_ok=True)
    for packages, fetch in ((CRATES, fetch_crates), (NPM, fetch_npm), (PYTHON, fetch_python)):
        missing = [p for p in packages if not is_there(os.path.join(folder, p[0]), p[2])]
        if not missing:
            continue
        sums = {name: (version, digest) for name, version, digest in missing}
        with tempfile.TemporaryDirectory() as scratch:
            for name, archive in fetch(scratch, missing):
                version, digest = sums[name]
                unpack(archive, digest, version, os.path.join(folder, name))
                print(f"{name} {version}", file=sys.stderr)


if __name__ == "__main__":
    main()
