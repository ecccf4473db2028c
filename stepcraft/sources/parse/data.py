"""The text of JSON, and of the descriptions of web interfaces in OpenAPI by their operations."""

import json as json_
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from stepcraft.encoding import Binary, decoded
from stepcraft.sources.isolated import Unreadable
from stepcraft.text.clean import clean

_METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")
_Data = Mapping[str, Any]


def json(data: bytes) -> tuple[str, list[str], str]:
    """Return JSON as lines of names and values, its texts without escapes; others as they are."""
    try:
        text, note = decoded(data)
    except Binary as error:
        raise Unreadable(str(error)) from error
    try:
        value = json_.loads(text)
    except ValueError:  # such as JSON with comments
        return "", [clean(text)], note
    if isinstance(value, dict) and ("openapi" in value or "swagger" in value):
        return _operations(value)
    return "", [clean("\n".join(_lines(value, "")))], note


def openapi(data: bytes) -> tuple[str, list[str], str]:
    """Return a description in YAML by operations."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    value = yaml.load(decoded(data)[0], loader)  # noqa: S506 - a safe one
    return _operations(value)


def _lines(value: Any, indent: str) -> Iterator[str]:  # noqa: ANN401 - any JSON
    is_named = isinstance(value, dict)
    for name, each in value.items() if is_named else [("", it) for it in _list(value)]:
        mark = f"{indent}{name}:" if is_named else f"{indent}-"
        if each and isinstance(each, dict | list):
            yield from () if is_named else ("",)  # a passage rather ends before an item
            yield mark
            yield from _lines(each, f"{indent}  ")
        else:
            yield f"{mark} {_scalar(each)}".replace("\n", f"\n{indent}  ")


def _list(value: Any) -> list[Any]:  # noqa: ANN401 - any JSON
    return value if isinstance(value, list) else [value]


def _scalar(value: Any) -> str:  # noqa: ANN401 - any JSON
    return value if isinstance(value, str) else json_.dumps(value)


def _operations(spec: _Data) -> tuple[str, list[str], str]:
    info = spec.get("info") or {}
    title = str(info.get("title") or "")
    servers = [each.get("url", "") for each in spec.get("servers") or ()]
    servers.append(f"{spec.get('host', '')}{spec.get('basePath', '')}")
    parts = [f"# {title or 'Operations'}", info.get("description") or "", *servers]
    for path, item in {**(spec.get("paths") or {}), **(spec.get("webhooks") or {})}.items():
        for method in _METHODS:
            if method in item:
                parts += _operation(spec, f"{method.upper()} {path}", item, item[method])
    schemas = (spec.get("components") or {}).get("schemas") or spec.get("definitions") or {}
    for name, schema in schemas.items():
        parts += [f"## Schema {name}", schema.get("description") or "", _fields(schema) or _type(schema)]
    return title, [clean("\n\n".join(filter(None, parts)))], ""


def _operation(spec: _Data, name: str, item: _Data, operation: _Data) -> Iterator[str]:
    yield f"## {name}"
    yield operation.get("summary") or item.get("summary") or ""
    yield operation.get("description") or item.get("description") or ""
    given = [_resolved(spec, each) for each in (item.get("parameters") or [])]
    given += [_resolved(spec, each) for each in (operation.get("parameters") or [])]
    if given:
        yield "\n".join(["Parameters:", *map(_parameter, given)])
    if body := _resolved(spec, operation.get("requestBody") or {}):
        yield f"Request body: {body.get('description') or ''} {_content(body)}"
    answers = [
        f"- {status}: {answer.get('description') or ''} {_content(answer)}".rstrip()
        for status, each in (operation.get("responses") or {}).items()
        for answer in [_resolved(spec, each)]
    ]
    yield "\n".join(["Responses:", *answers])
    schemes = [
        " ".join([key, *scopes])
        for each in operation.get("security", spec.get("security")) or ()
        for key, scopes in each.items()
    ]
    yield f"Security: {', '.join(schemes)}" if schemes else ""
    yield f"Operation: {operation['operationId']}" if "operationId" in operation else ""


def _resolved(spec: _Data, value: _Data) -> _Data:
    """Return what a reference within a description stands for."""
    for name in str(value.get("$ref") or "").split("/")[1:]:
        spec = spec.get(name) or {}
    return spec if "$ref" in value else value


def _parameter(value: _Data) -> str:
    kind = _type(value.get("schema") or value)
    facts = [value.get("in") or "", kind, "required" if value.get("required") else ""]
    shown = f"- {value.get('name')} ({', '.join(filter(None, facts))})"
    return f"{shown}: {' '.join(str(value.get('description') or '').split())}".rstrip(": ")


def _content(value: _Data) -> str:
    """Return the media types of a body or an answer with the types of their values."""
    media = (value.get("content") or {}).items()
    kinds = [f"{name} {_type(each.get('schema') or {})}" for name, each in media]
    kinds += [_type(value["schema"])] if "schema" in value else []
    fields = [_fields(each.get("schema") or {}) for _, each in media]
    return "\n".join(filter(None, [f"({'; '.join(kinds)})" if kinds else "", *fields[:1]]))


def _type(schema: _Data) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rsplit("/", 1)[-1]
    for name in ("oneOf", "anyOf", "allOf"):
        if schema.get(name):
            return (" and " if name == "allOf" else " or ").join(map(_type, schema[name]))
    kind = " or ".join(map(str, _list(schema.get("type") or "")))
    if kind == "array":
        kind = f"array of {_type(schema.get('items') or {}) or 'values'}"
    if schema.get("enum"):
        kind += f" of {', '.join(map(str, schema['enum']))}"
    return kind.strip()


def _fields(schema: _Data) -> str:
    required = schema.get("required") or ()
    return "\n".join(
        _parameter({**value, "name": name, "required": name in required})
        for name, value in (schema.get("properties") or {}).items()
    )
