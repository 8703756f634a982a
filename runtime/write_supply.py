"""``write_supply.py FOLDER VERSION ONEDNN_VERSION``: what a wheel says of the code of others in its libraries.

Writes ``sboms/hipdnn-mlir-runtime.cdx.json``, in CycloneDX's form, and the licences that lie in no other file of the wheel. There is
neither a time nor a random number in it: the same sources make the same bytes.
"""

import json
import re
import sys
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

ROBIN_MAP = "nanobind/ext/robin_map/include/tsl/robin_growth_policy.h"
COMPILED_IN = {
    "nanobind": ("BSD-3-Clause", "https://github.com/wjakob/nanobind"),
    "nlohmann-json": ("MIT", "https://github.com/nlohmann/json"),
}
"""Distributions of PyPI: licence and home."""


def main(folder: Path, version: str, onednn: str) -> None:
    """Write all files.

    Args:
        folder: Of the wheel's metadata.
        version: Of the package.
        onednn: Version of the copy of oneDNN, empty where there is none.
    """
    components = []
    for name, (licence, home) in COMPILED_IN.items():
        package = distribution(name)
        components.append(component(name, package.version, licence, home))
        text = next(file for file in package.files or [] if file.name == "LICENSE").read_text()
        write(folder / "licenses" / name / "LICENSE", text)
    # nanobind brings it along; its licence is the comment at its head.
    header = Path(str(distribution("nanobind").locate_file(ROBIN_MAP))).read_text()
    write(folder / "licenses" / "robin-map" / "LICENSE", header.partition("*/")[0] + "*/\n")
    numbers = re.findall(r"define TSL_RH_VERSION_\w+ (\d+)", header)
    components.append(component("robin-map", ".".join(numbers), "MIT", "https://github.com/Tessil/robin-map"))
    if onednn:
        components.append(component("oneDNN", onednn, "Apache-2.0", "https://github.com/uxlfoundation/oneDNN"))
    bom = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": component("hipdnn-mlir-runtime", version, "MIT", "")},
        "components": components,
    }
    write(folder / "sboms" / "hipdnn-mlir-runtime.cdx.json", json.dumps(bom, indent=1) + "\n")


def component(name: str, version: str, licence: str, home: str) -> dict[str, Any]:
    """Return an entry of the bill; a home that is not given is left out."""
    made: dict[str, Any] = {
        "type": "library",
        "bom-ref": name,
        "name": name,
        "version": version,
        "licenses": [{"license": {"id": licence}}],
    }
    if home:
        made["externalReferences"] = [{"type": "website", "url": home}]
    return made


def write(path: Path, text: str) -> None:
    """Write a file, and the folders that it lies in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
