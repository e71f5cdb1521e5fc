# SPDX-License-Identifier: Apache-2.0
"""The built packages: the same bytes twice, what lintian finds, what each contains, and the list of their parts."""
import hashlib
import json
import re
import shutil
import subprocess

import pytest

from conftest import ROOT

if shutil.which("dpkg-buildpackage") is None or shutil.which("lintian") is None:
    pytest.skip("no dpkg-buildpackage or lintian; deploy/bootstrap package installs them", allow_module_level=True)

PACKAGES = ("crowdveil", "crowdveil-broker", "crowdveil-broker-postgresql", "crowdveil-cobroker",
            "crowdveil-thirdparty", "crowdveil-worker", "crowdveil-lab", "crowdveil-doc", "python3-crowdveil")
DAEMONS = PACKAGES[1:6]


def output(*command):
    return subprocess.run([str(part) for part in command], check=True, stdout=subprocess.PIPE, text=True,
                          cwd=ROOT).stdout


def sha(path, kind="sha256"):
    return hashlib.new(kind, path.read_bytes()).hexdigest()


@pytest.fixture(scope="module")
def built(debs):
    """{package: path} of the first build, without those of debug symbols."""
    return {path.name.split("_")[0]: path for path in debs["first"].glob("*.deb") if "-dbgsym_" not in path.name}


@pytest.fixture(scope="module")
def contents(built):
    """{package: paths of its files}"""
    return {name: set(re.findall(r"^[^d].* \./(\S+)$", output("dpkg-deb", "-c", path), re.M))
            for name, path in built.items()}


def field(path, name):
    return output("dpkg-deb", "-f", path, name).strip()


def test_two_builds_give_the_same_bytes(debs, say):
    sums = [{path.name: sha(path) for path in folder.iterdir() if path.suffix in (".deb", ".json")}
            for folder in debs.values()]
    assert sums[0] == sums[1]
    assert len(sums[0]) == len(PACKAGES) + 7 + 1, "with debug symbols, and the list of parts"
    say(f"{len(sums[0])} files are the same in two builds")


def test_lintian_finds_nothing_but_what_is_explained(debs):
    found = subprocess.run(["lintian", "-I", "--tag-display-limit", "0", *debs["first"].glob("*.deb")],
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert [line for line in found.stdout.splitlines() if re.match("[EWI]: ", line)] == []
    for path in (ROOT / "deploy/debian").glob("*.lintian-overrides"):
        for before, line in zip(["", *path.read_text().splitlines()], path.read_text().splitlines()):
            assert line.startswith("#") or not line or before.startswith("# "), f"{path.name}: {line}: no comment above"


def test_each_package_has_its_program_and_what_belongs_to_it(built, contents):
    assert set(built) == set(PACKAGES)
    for name in PACKAGES[:-2]:
        programs = {path for path in contents[name] if path.startswith("usr/bin/")}
        assert programs == {f"usr/bin/{name}"}
        section = 8 if name in DAEMONS else 1
        assert contents[name] >= {f"usr/share/man/man{section}/{name}.{section}.gz",
                                  f"usr/share/bash-completion/completions/{name}",
                                  f"usr/share/zsh/vendor-completions/_{name}", f"usr/share/doc/{name}/copyright"}
    for name in DAEMONS:
        party = name.removeprefix("crowdveil-")
        unit = f"{name}@.service" if party == "worker" else f"{name}.service"
        assert contents[name] >= {f"lib/systemd/system/{unit}", f"usr/lib/sysusers.d/{name}.conf",
                                  f"usr/lib/tmpfiles.d/{name}.conf", f"usr/share/doc/{name}/examples/{party}.yaml"}
        assert not [path for path in contents[name] if path.startswith("etc/")]
    campaigns = {path.name for path in (ROOT / "deploy/campaigns").iterdir()}
    assert {f"usr/share/crowdveil/campaigns/{name}" for name in campaigns} <= contents["crowdveil"]
    modules = {path.name for path in (ROOT / "python/crowdveil").glob("*.py")}
    modules |= {"py.typed", "schema.bin", "version"}
    package = "usr/lib/python3/dist-packages/crowdveil/"
    assert {path.removeprefix(package) for path in contents["python3-crowdveil"] if path.startswith(package)} == modules
    assert "usr/share/doc/python3-crowdveil/examples/bayes.py" in contents["python3-crowdveil"]
    pages = {path.name for path in (ROOT / "docs").glob("*.md")}
    assert {re.sub(r"\.gz$", "", path).rpartition("/")[2] for path in contents["crowdveil-doc"]} >= pages


def test_only_the_laboratory_needs_gsl(built):
    """Its licence is the GPL, which the copyright file says of this package and of no other."""
    needing = {name for name, path in built.items() if "libgsl" in field(path, "Depends")}
    assert needing == {"crowdveil-lab"}
    text = " ".join((ROOT / "deploy/debian/copyright").read_text().split())
    assert "package crowdveil-lab as a whole may be distributed only under the terms of the GPL-3" in text
    assert "common-licenses/GPL-3" in text and "common-licenses/Apache-2.0" in text


def test_the_script_refuses_wrong_usage_and_another_version(tmp_path):
    build = ROOT / "deploy/debian/build"
    for arguments in ((), ("--help",), ("a", "b")):
        done = subprocess.run([build, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert (done.returncode, done.stdout) == (2, "build: usage: deploy/debian/build OUT\n")
    copy = tmp_path / "copy"
    (copy / "deploy").mkdir(parents=True)
    shutil.copytree(ROOT / "deploy/debian", copy / "deploy/debian")
    (copy / "meson.build").write_text("project('crowdveil', 'c', version: '9.9.9', license: 'Apache-2.0')\n")
    done = subprocess.run([copy / "deploy/debian/build", tmp_path / "out"], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 1 and done.stdout.startswith("build: deploy/debian/changelog is of version 0.")
    assert "9.9.9" in done.stdout and not list((tmp_path / "out").iterdir())


# ---- the list of parts


@pytest.fixture(scope="module")
def sbom(debs):
    return json.loads(next(debs["first"].glob("*.spdx.json")).read_text())


def test_the_list_of_parts_is_spdx(sbom):
    """Structure and references, as version 2.3 has them."""
    assert (sbom["spdxVersion"], sbom["dataLicense"], sbom["SPDXID"]) == ("SPDX-2.3", "CC0-1.0", "SPDXRef-DOCUMENT")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", sbom["creationInfo"]["created"])
    assert all(re.match(r"(Person|Organization|Tool): \S", each) for each in sbom["creationInfo"]["creators"])
    assert re.fullmatch(r"https://[^#\s]+", sbom["documentNamespace"]) and sbom["name"]
    parts = sbom["packages"] + sbom["files"]
    known = [each["SPDXID"] for each in parts]
    assert len(known) == len(set(known)) and all(re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", each) for each in known)
    for each in parts:
        assert each["licenseConcluded"] and each["copyrightText"]
        for checksum in each.get("checksums", ()):
            length = {"SHA1": 40, "SHA256": 64}[checksum["algorithm"]]
            assert re.fullmatch(rf"[0-9a-f]{{{length}}}", checksum["checksumValue"])
    for each in sbom["packages"]:
        assert each["name"] and each["downloadLocation"] and isinstance(each["filesAnalyzed"], bool)
        assert ("packageVerificationCode" in each) == each["filesAnalyzed"]
    for each in sbom["relationships"]:
        assert each["spdxElementId"] in (*known, "SPDXRef-DOCUMENT") and each["relatedSpdxElement"] in known
        assert re.fullmatch(r"[A-Z_]+", each["relationshipType"])
    assert set(sbom["documentDescribes"]) <= set(known)


def test_the_list_has_every_package_and_library(sbom, built):
    named = {each["name"]: each for each in sbom["packages"]}
    for name, path in built.items():
        assert named[name]["checksums"] == [{"algorithm": "SHA256", "checksumValue": sha(path)}]
        assert named[name]["versionInfo"] == field(path, "Version")
        libraries = set(re.findall(r"\b(lib[a-z0-9.+-]+)", field(path, "Depends")))
        linked = {each["relatedSpdxElement"].removeprefix("SPDXRef-Package-") for each in sbom["relationships"]
                  if each["spdxElementId"] == named[name]["SPDXID"] and each["relationshipType"] == "DYNAMIC_LINK"}
        assert linked == libraries
        assert libraries or name in ("crowdveil-doc", "python3-crowdveil")
        for library in libraries:
            assert named[library]["externalRefs"][0]["referenceLocator"].startswith(f"pkg:deb/debian/{library}@")
    assert named["uthash-dev"]["licenseConcluded"] == "BSD-1-Clause"
    licences = {name: named[name]["licenseConcluded"] for name in built}
    assert licences == {name: "Apache-2.0" for name in built} | {"crowdveil-lab": "Apache-2.0 AND GPL-3.0-or-later"}


def test_the_list_has_every_file_of_the_sources(sbom):
    tracked = {path for path in output("git", "-c", f"safe.directory={ROOT}", "ls-files").splitlines()
               if (ROOT / path).is_file()}
    listed = {each["fileName"].removeprefix("./"): each for each in sbom["files"]}
    # reuse leaves out the licences' own texts, and files without content
    missing = {path for path in tracked - set(listed) if (ROOT / path).stat().st_size > 0}
    assert {path for path in missing if not re.match(r"(.*/)?LICENSE$|LICENSES/|\.reuse/", path)} == set()
    assert set(listed) <= tracked and len(listed) > 1000
    for path in ("meson.build", "broker/core.c", "README.md"):
        assert listed[path]["checksums"][0]["checksumValue"] == sha(ROOT / path, "sha1")
        assert listed[path]["licenseInfoInFiles"] == ["Apache-2.0"]
    source = next(each for each in sbom["packages"] if each["name"] == "crowdveil-source")
    sums = "".join(sorted(each["checksums"][0]["checksumValue"] for each in sbom["files"]))
    code = hashlib.sha1(sums.encode()).hexdigest()
    assert source["packageVerificationCode"]["packageVerificationCodeValue"] == code
