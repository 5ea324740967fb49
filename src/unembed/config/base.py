"""What all configuration is built on: frozen sections, and errors that name the wrong key. Knows no key itself."""

import types
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from unembed.errors import ConfigError, did_you_mean

Share = Annotated[float, Field(ge=0.0, le=1.0)]
Positive = Annotated[int, Field(gt=0)]
Count = Annotated[int, Field(ge=0)]


class Section(BaseModel):
    """A part of a configuration. It cannot be changed, and an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


T = TypeVar("T", bound=Section)


def parse(section: type[T], values: dict[str, Any], where: str) -> T:
    """Validate ``values``; an error says which key of ``where`` is wrong and what was expected."""
    try:
        return section.model_validate(values)
    except ValidationError as error:
        lines = [_explain(section, dict(detail)) for detail in error.errors()]
        raise ConfigError(f"{where} is not valid:\n  " + "\n  ".join(lines), "Fix these keys and run again.") from error


def _explain(section: type[Section], detail: dict[str, Any]) -> str:
    *parents, key = detail["loc"] or ("",)
    name = ".".join(str(part) for part in detail["loc"])
    if detail["type"] == "extra_forbidden":
        for parent in parents:
            section = _section_of(section.model_fields[str(parent)].annotation)
        return f"{name}: unknown key; {did_you_mean(str(key), section.model_fields)}"
    message = detail["msg"].removeprefix("Value error, ")
    return (
        f"{name}: {message} (got {detail['input']!r})"
        if not isinstance(detail["input"], dict)
        else f"{name}: {message}"
    )


def _section_of(annotation: Any) -> type[Section]:
    if get_origin(annotation) in (Union, types.UnionType):
        annotation = next(option for option in get_args(annotation) if option is not type(None))
    return annotation  # type: ignore[no-any-return]
