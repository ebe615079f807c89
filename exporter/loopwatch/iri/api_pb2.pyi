# mypy: disable-error-code=type-arg
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class VersionRequest(_message.Message):
    __slots__ = ("version",)
    VERSION_FIELD_NUMBER: _ClassVar[int]
    version: str
    def __init__(self, version: _Optional[str] = ...) -> None: ...

class VersionResponse(_message.Message):
    __slots__ = ("runtime_name", "runtime_version")
    RUNTIME_NAME_FIELD_NUMBER: _ClassVar[int]
    RUNTIME_VERSION_FIELD_NUMBER: _ClassVar[int]
    runtime_name: str
    runtime_version: str
    def __init__(self, runtime_name: _Optional[str] = ..., runtime_version: _Optional[str] = ...) -> None: ...

class StatusRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class StatusResponse(_message.Message):
    __slots__ = ("machine_class_status",)
    MACHINE_CLASS_STATUS_FIELD_NUMBER: _ClassVar[int]
    machine_class_status: _containers.RepeatedCompositeFieldContainer[MachineClassStatus]
    def __init__(self, machine_class_status: _Optional[_Iterable[_Union[MachineClassStatus, _Mapping]]] = ...) -> None: ...

class MachineClassStatus(_message.Message):
    __slots__ = ("machine_class", "quantity")
    MACHINE_CLASS_FIELD_NUMBER: _ClassVar[int]
    QUANTITY_FIELD_NUMBER: _ClassVar[int]
    machine_class: MachineClass
    quantity: int
    def __init__(self, machine_class: _Optional[_Union[MachineClass, _Mapping]] = ..., quantity: _Optional[int] = ...) -> None: ...

class MachineClass(_message.Message):
    __slots__ = ("name", "capabilities")
    NAME_FIELD_NUMBER: _ClassVar[int]
    CAPABILITIES_FIELD_NUMBER: _ClassVar[int]
    name: str
    capabilities: MachineClassCapabilities
    def __init__(self, name: _Optional[str] = ..., capabilities: _Optional[_Union[MachineClassCapabilities, _Mapping]] = ...) -> None: ...

class MachineClassCapabilities(_message.Message):
    __slots__ = ("resources",)
    class ResourcesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    RESOURCES_FIELD_NUMBER: _ClassVar[int]
    resources: _containers.ScalarMap[str, int]
    def __init__(self, resources: _Optional[_Mapping[str, int]] = ...) -> None: ...
