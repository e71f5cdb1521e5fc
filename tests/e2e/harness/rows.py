# SPDX-License-Identifier: Apache-2.0
"""The table rows from which policies, mechanisms and privatizers are made, so that no test lists them."""
import re

from harness.daemon import ROOT


def rows(header):
    """The fields of each ROW(...) of a header, as text."""
    found = re.findall(r"^ +ROW\((.*)\)", (ROOT / header).read_text(), re.M)
    assert found, f"no rows in {header}"
    return [[field.strip(' "') for field in row.split(",")] for row in found]


def policies():
    return [name.replace("_", "-") for _, name in rows("thirdparty/policy/classes.h")]


def mechanisms():
    return [name for _, name, *_ in rows("common/base/mechanisms.h")]


def privatizers():
    return [name for _, _, name, *_ in rows("common/base/local.h")]
