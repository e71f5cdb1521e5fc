# SPDX-License-Identifier: Apache-2.0
"""
The messages of the five .proto files. The build compiles them into `schema.bin`; in a source tree without one, protoc
does it at the first use. They have a pool of descriptors of their own, so that no other program's `base.proto` collides
with this one.
"""
import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper

from .errors import Error

NAMES = ("base", "crowd", "rank", "order", "share")
HERE = Path(__file__).resolve().parent
PROTO = HERE.parents[1] / "proto"  # in a source tree


def compiled(proto: Path) -> bytes:
    """The five files of a folder as one FileDescriptorSet, made by protoc."""
    with tempfile.TemporaryDirectory(prefix="crowdveil-") as folder:
        out = Path(folder) / "schema.bin"
        try:
            subprocess.run(["protoc", f"--proto_path={proto}", f"--descriptor_set_out={out}",
                            *(str(proto / f"{name}.proto") for name in NAMES)],
                           check=True, capture_output=True, text=True)
        except FileNotFoundError:
            raise Error(f"no protoc to compile {proto}; expected the package protobuf-compiler") from None
        except subprocess.CalledProcessError as failed:
            raise Error(f"protoc cannot compile {proto}: {failed.stderr}") from None
        return out.read_bytes()


def _descriptors() -> bytes:
    made = HERE / "schema.bin"
    if made.exists():
        return made.read_bytes()
    if (PROTO / "base.proto").exists():
        return compiled(PROTO)
    raise Error(f"{made} is missing; expected it beside this module: install the package again")


class Schema:
    """One .proto file: its messages and enums by name, and the values of its enums."""

    DESCRIPTOR: Any

    def __init__(self, descriptor: Any, pool: Any) -> None:
        self.DESCRIPTOR = descriptor
        if hasattr(message_factory, "GetMessageClass"):  # protobuf 4.22 and later
            make = message_factory.GetMessageClass
        else:
            make = message_factory.MessageFactory(pool).GetPrototype
        for name, message in descriptor.message_types_by_name.items():
            setattr(self, name, make(message))
        for name, enum in descriptor.enum_types_by_name.items():
            setattr(self, name, EnumTypeWrapper(enum))
            for value in enum.values:
                setattr(self, value.name, value.number)

    def __getattr__(self, name: str) -> Any:  # for type checkers: the attributes come from the .proto file
        raise AttributeError(f"{self.DESCRIPTOR.name} has no {name}")


@lru_cache(maxsize=None)
def _schemas() -> dict[str, Schema]:
    pool = descriptor_pool.DescriptorPool()
    files = descriptor_pb2.FileDescriptorSet.FromString(_descriptors()).file
    for file in files:  # in the order of their imports
        pool.AddSerializedFile(file.SerializeToString())
    return {name: Schema(pool.FindFileByName(f"{name}.proto"), pool) for name in NAMES}


def schema(name: str) -> Schema:
    """The messages of `base`, `crowd`, `rank`, `order` or `share`."""
    return _schemas()[name]
