# SPDX-License-Identifier: Apache-2.0
"""Parts of manual pages."""
import re


def plain(text):
    """Escapes text so that roff prints it literally."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.M)


def tagged(rows):
    """A list of words, each with its text."""
    return "".join(f".TP\n.B {plain(word)}\n{plain(text)}\n" for word, text in rows)


def see_also(pages):
    """The section that names other pages, NAME.SECTION each."""
    return ".SH SEE ALSO\n" + ",\n".join(re.sub(r"(.*)\.(\d)", r".BR \1 (\2)", page).replace("-", "\\-")
                                           for page in pages) + "\n"
