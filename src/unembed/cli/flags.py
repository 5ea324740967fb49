"""Parameters as they are typed: the library's errors name parameters, here they become the flags of a command.

An error of the library writes a parameter in backticks, with a value or without: ``Try `device="cpu"`.`` Someone who
calls it from Python can read that as it is. On the command line it becomes ``Try --device cpu.``
"""

import re
from collections.abc import Iterable
from typing import Any

from typer.core import TyperArgument, TyperCommand, TyperOption

from unembed.errors import UnembedError

_PARAMETER = re.compile(r"`(?P<name>[a-z][a-z0-9_]*)(?:=(?P<value>[^`]+))?`")


class Command(TyperCommand):
    """A command whose errors name its flags."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command; an error that names parameters is changed to name flags."""
        try:
            return super().invoke(ctx)
        except UnembedError as error:
            error.problem, error.remedy = name_flags(error.problem, self.params), name_flags(error.remedy, self.params)
            raise


def name_flags(text: str, parameters: Iterable[Any]) -> str:
    """Write every parameter of a command as it is typed; any other word in backticks stays as it is."""
    known = {parameter.name: parameter for parameter in parameters}

    def typed(match: re.Match[str]) -> str:
        parameter = known.get(match["name"])
        return _typed(parameter, match["value"]) if parameter else match[0]

    return _PARAMETER.sub(typed, text)


def _typed(parameter: TyperOption | TyperArgument, value: str | None) -> str:
    value = None if value is None else value.strip("'\"")
    if isinstance(parameter, TyperArgument):
        return value or str(parameter.name).upper()
    flag = max(parameter.opts, key=len)
    if value is None or (parameter.is_flag and value == "True"):
        return flag
    if parameter.is_flag:
        return parameter.secondary_opts[0] if parameter.secondary_opts else f"no {flag}"
    return f"{flag} {value}"
