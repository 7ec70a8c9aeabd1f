"""Writes an OCI image whose only file is a static program: oci-image.py PROGRAM IMAGE.tar VERSION TIME.

The format is that of the OCI image specification 1.1: a layer, a configuration, a manifest and an index, each named by
its hash. No builder of images is needed for one file.
"""

import gzip
import hashlib
import io
import json
import sys
import tarfile
import time


def added(archive: tarfile.TarFile, name: str, content: bytes, mode: int, at: int) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode, entry.mtime = len(content), mode, at
    archive.addfile(entry, io.BytesIO(content))


def main() -> None:
    program, image, version, at = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as archive, open(program, "rb") as file:
        added(archive, "weir", file.read(), 0o755, at)
    packed = gzip.compress(layer.getvalue(), mtime=0)
    blobs = {}

    def blob(content: bytes, kind: str) -> dict:
        digest = hashlib.sha256(content).hexdigest()
        blobs[digest] = content
        return {
            "mediaType": f"application/vnd.oci.image.{kind}",
            "digest": f"sha256:{digest}",
            "size": len(content),
        }

    config = {
        "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at)),
        "architecture": "amd64",
        "os": "linux",
        "config": {
            "Entrypoint": ["/weir"],
            "WorkingDir": "/work",
            "Labels": {"org.opencontainers.image.version": version},
        },
        "rootfs": {
            "type": "layers",
            "diff_ids": [f"sha256:{hashlib.sha256(layer.getvalue()).hexdigest()}"],
        },
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": blob(json.dumps(config).encode(), "config.v1+json"),
        "layers": [blob(packed, "layer.v1.tar+gzip")],
    }
    entry = blob(json.dumps(manifest).encode(), "manifest.v1+json")
    entry["annotations"] = {"org.opencontainers.image.ref.name": f"weir:{version}"}
    index = {"schemaVersion": 2, "manifests": [entry]}
    with tarfile.open(image, mode="w") as archive:
        added(archive, "oci-layout", b'{"imageLayoutVersion": "1.0.0"}', 0o644, at)
        added(archive, "index.json", json.dumps(index).encode(), 0o644, at)
        for digest, content in sorted(blobs.items()):
            added(archive, f"blobs/sha256/{digest}", content, 0o644, at)


main()
