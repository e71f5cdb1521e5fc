# SPDX-License-Identifier: Apache-2.0
"""The normal form of names; tests/unit/base/normal_agree compares it with that of the C programs."""
import unicodedata

import pytest
from crowdveil import Error, Spec
from crowdveil.names import normal
from hypothesis import given
from hypothesis import strategies as st


def test_a_spec_is_sent_with_normal_names():
    persian = "\u0645\u06cc\u200c\u062e"
    message = Spec("\ufeffCafe\u0301 ", 3, names=["Cafe\u0301", "\u00a0Bar\u3000", persian]).message()
    assert message.name == "Caf\u00e9" and list(message.names) == ["Caf\u00e9", "Bar", persian]
    assert Spec.of(message).message() == message


@pytest.mark.parametrize("bad, text", [
    ("a\u202eb", "has U.202E, which turns the direction"), ("a\u2067", "has U.2067, which turns"),
    ("a\u200bb", "has U.200B, which cannot be seen"), ("a\u00adb", "has U.00AD, which cannot be seen"),
    ("", "not a valid name; expected 1 to 255"), (" \u2003", "not a valid name"), ("a\nb", "not a valid name"),
    ("\ud800", "not a valid name"), ("x" * 256, "not a valid name"), ("e\u0301" * 128, "not a valid name")])
def test_what_is_no_name_is_an_error(bad, text):
    for spec in (Spec("test", 1, names=[bad]), Spec(bad, 1)):
        with pytest.raises(Error, match=text.replace("255", "(255|63)")):
            spec.message()


@given(st.text(max_size=12))
def test_a_normal_form_is_its_own(text):
    try:
        name = normal(text)
    except Error:
        return
    assert normal(name) == name and unicodedata.is_normalized("NFC", name) and name == name.strip()
