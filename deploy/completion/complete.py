#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a program's completion for bash or zsh from its --help and that of each of its commands.

    complete.py OUT PROGRAM    OUT is NAME for bash, _NAME for zsh
"""
import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "man"))
from told import told  # noqa: E402

FILES = ("FILE", "PATH")


class Option:
    """--name, its line of help, and what follows it: nothing, files, some words, or text that is not completed."""

    def __init__(self, row, text):
        self.name, _, self.value = re.sub(r"^-\w, |\[=.*", "", row).partition(" ")
        self.text, self.words = text, []
        if self.value in ("WORD", "WORDS"):  # the last part of the line: "on, require or off (default on)"
            listed = re.sub(r" \((default [^)]*|required)\)$", "", text).split("; ")[-1].removeprefix("some of ")
            self.words = re.split(r", | or ", listed)
            if not all(re.fullmatch(r"[a-z0-9-]+", word) for word in self.words):
                sys.exit(f"{row}: expected its words at the end of its help, separated by commas and or")


class Command:
    """The options of a command, or of a program without commands, and its other arguments: files, or words."""

    def __init__(self, program, *words):
        usage, self.about, rows = told(program, *words)
        self.options = [Option(*row) for row in rows if row[0].startswith("-")]
        self.commands = [row for row in rows if not row[0].startswith("-")]
        arguments = usage.split("[--config FILE]")[0].split()[1 + len(words):]
        self.takes_files = any(re.search(r"^[^=]*(FILE|FOLDER|YAML|JSON|DB)", each) for each in arguments)
        self.assigns_folders = any("=FOLDER" in each for each in arguments)
        self.words = [each for each in arguments if re.fullmatch(r"[a-z]+", each)]
        if any("PRESET" in each for each in arguments):
            self.words = presets(program)


def presets(program):
    """The names that `crowdveil-lab list` lists."""
    listed = subprocess.run([program, "list"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return re.findall(r"^([a-z0-9][\w-]*)(?= )", listed, re.M)


# ---- bash ----

BASH = """# SPDX-License-Identifier: Apache-2.0
# Completion of {name} for bash, generated from its --help.
{function}() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD - 1]}} command={command}
  local words= files= assigned=
  # bash splits --option=VALUE into three words
  if [[ $current == "=" ]]; then
    current=
    assigned=yes
  elif [[ $previous == "=" ]]; then
    previous=${{COMP_WORDS[COMP_CWORD - 2]}}
    assigned=yes
  fi
  case $command:$previous in
{values}    *)
      case $command in
{commands}      esac
      [[ $current == -* ]] && files=
      ;;
  esac
  COMPREPLY=()
  if [[ -n $words ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
  fi
  if [[ -n $files ]]; then
    compopt -o filenames 2> /dev/null
    mapfile -t -O "${{#COMPREPLY[@]}}" COMPREPLY < <(compgen -f -- "$current")
  fi
}}
complete -F {function} {name}
"""


def bash_values(name, command):
    """What follows the options of a command that take a value."""
    found = {}
    for option in command.options:
        if option.value:
            what = "files=yes" if option.value in FILES else f'words="{" ".join(option.words)}"'
            found.setdefault(what, []).append(f"{name}:{option.name}")
    return "".join(f"    {' | '.join(places)}) {what} ;;\n" for what, places in found.items())


def bash_words(name, command):
    words = " ".join(option.name for option in command.options)
    more = " ".join(command.words + [word for word, _ in command.commands])
    shown = f'if [[ $current == -* ]]; then words="{words}"; else words="{more}"; fi'
    files = "; files=yes" if command.takes_files else ""
    if command.assigns_folders:
        files = '; if [[ -n $assigned ]]; then words= files=yes; fi'
    return f"        {name}) {shown}{files} ;;\n"


def bash(name, program, whole):
    function = "_" + name.replace("-", "_")
    if not whole.commands:
        return BASH.format(name=name, function=function, command='""', values=bash_values("", whole),
                           commands=bash_words('""', whole))
    every = {word: Command(program, word) for word, _ in whole.commands}
    top = f'        "") words="{" ".join(every)} --help --version" ;;\n'
    return BASH.format(name=name, function=function, command="\n  (( COMP_CWORD > 1 )) && command=${COMP_WORDS[1]}",
                       values="".join(bash_values(*each) for each in every.items()),
                       commands=top + "".join(bash_words(*each) for each in every.items()))


# ---- zsh ----

def quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


def plain(text):
    """A description inside of an argument of _arguments."""
    return re.sub(r"([\[\]:\\])", r"\\\1", text)


def zsh_arguments(command, first):
    """The arguments of _arguments for a command; `first` is the position of its first argument that is no option."""
    lines = []
    for option in command.options:
        action = "_files" if option.value in FILES else f"({' '.join(option.words)})" if option.words else " "
        after = f"=[{plain(option.text)}]:{option.value}:{action}" if option.value else f"[{plain(option.text)}]"
        lines.append(quoted(option.name + after))
    if command.words:
        lines.append(quoted(f"{first}:argument:_alternative 'words:word:({' '.join(command.words)})'" +
                            (" 'files:file:_files'" if command.takes_files else "")))
    if command.takes_files:
        lines.append(quoted("*:file:_files"))
    elif command.assigns_folders:
        lines.append(quoted("*:folder:{compset -P \"*=\" && _files -/}"))
    return " \\\n".join(f"        {line}" for line in lines)


def zsh(name, program, whole):
    function = "_" + name.replace("-", "_")
    head = f"#compdef {name}\n# SPDX-License-Identifier: Apache-2.0\n# Completion of {name} for zsh, generated from " \
           f"its --help.\n{function}() {{\n  local context state state_descr line\n  typeset -A opt_args\n"
    tail = f"}}\n{function} \"$@\"\n"
    if not whole.commands:
        return f"{head}  _arguments \\\n{zsh_arguments(whole, 1)}\n{tail}"
    rows = "".join(f"    {quoted(word + ':' + text.replace(':', chr(92) + ':'))}\n" for word, text in whole.commands)
    cases = "".join(f"    {word})\n      _arguments \\\n{zsh_arguments(Command(program, word), 1)}\n      ;;\n"
                    for word, _ in whole.commands)
    return (f"{head}  local -a commands=(\n{rows}  )\n"
            "  _arguments -C '--help[print the commands]' '--version[print the version]' '1:command:->command' "
            "'*::argument:->argument'\n"
            "  case $state in\n  command) _describe command commands ;;\n  argument)\n    case $words[1] in\n"
            f"{cases}    esac\n    ;;\n  esac\n{tail}")


def main():
    out, program = sys.argv[1:]
    name = Path(out).name
    write = zsh if name.startswith("_") else bash
    Path(out).write_text(write(name.removeprefix("_"), program, Command(program)))


if __name__ == "__main__":
    main()
