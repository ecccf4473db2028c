"""The text of JSON, and of OpenAPI descriptions, organised by operation."""

import json as json_
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, ClassVar
from urllib.parse import unquote

import yaml

from stepcraft.encoding import Unreadable, decoded
from stepcraft.sources.parse import TITLES, Parsed, as_heading
from stepcraft.text.clean import clean
from stepcraft.text.markdown import code_blocks, replaced

_METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")
_OTHERWISE = (AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""The errors raised for data that is not laid out like an OpenAPI description."""
_Data = Mapping[str, Any]
_BOOL = "tag:yaml.org,2002:bool"
_AS_WRITTEN = {_BOOL, *map("tag:yaml.org,2002:{}".format, ("int", "float", "timestamp"))}
_LIMITS = (
    *("format", "pattern", "const", "minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"),
    *("multipleOf", "minLength", "maxLength", "minItems", "maxItems", "uniqueItems"),
    *("minProperties", "maxProperties", "patternProperties", "discriminator", "not"),
    *("default", "example", "examples"),
)
_MARKS = ("nullable", "readOnly", "writeOnly", "deprecated")
_MAX_INDENT = 100
"""The indentation up to which nested values have lines of their own; deeper ones remain JSON."""
_MAX_LINES = 10_000_000
"""The number of characters of JSON Lines up to which their values are read.

More can need more time or memory than a parser has, and are read as text.
"""
_MARKUP = re.compile(r" {0,3}(?:#{1,6}\s|`{3}|~{3})")
"""What opens a heading or a fence at the beginning of a line."""
_HEADING = re.compile(r"^(?: {0,3}#{1,4}(?=\s)|(?= {0,3}(?:=+|-+)[ \t]*$))", re.MULTILINE)
"""The signs of a heading, or the beginning of a line that can underline one."""
_FENCE = re.compile(r"([^`~]*)(`+|~+)")
"""An opening fence, and what precedes it on its line."""
_COMBINED = (("oneOf", " or "), ("anyOf", " or "), ("allOf", " and "))


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # no types
    """Reads YAML 1.2, where "on" and "no" are strings, and keeps numbers and dates as written."""

    yaml_implicit_resolvers: ClassVar = {
        first: [each for each in resolvers if each[0] not in _AS_WRITTEN]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


_Loader.add_implicit_resolver(_BOOL, re.compile("true|True|TRUE|false|False|FALSE"), [*"tTfF"])


def json(data: bytes) -> Parsed:
    """Return JSON or JSON Lines as names and unescaped values, and any other text as it is."""
    text, note = decoded(data)
    try:
        value = _value(text)
        lines = "\n".join(lines_of(value))
    except (ValueError, RecursionError):  # such as JSON with comments
        return "", [clean(text)], note
    spec = _dict(value)
    if spec.keys() & {"openapi", "swagger"}:
        with suppress(*_OTHERWISE):
            return _operations(spec, note)
    return "", [clean(lines)], note


def _value(text: str) -> object:
    """Return the value of JSON, or a list with the value of each line of JSON Lines.

    Raises:
        ValueError: It is neither, or too many lines.
    """
    load = partial(json_.loads, parse_float=str)  # as it is written
    try:
        return load(text)
    except ValueError:
        if len(text) > _MAX_LINES:
            raise
        return [load(line) for line in text.split("\n") if line.strip()]


def openapi(data: bytes) -> Parsed:
    """Return an OpenAPI description in YAML, organised by operation.

    Raises:
        Unreadable: It is not an OpenAPI description.
    """
    text, note = decoded(data)
    try:
        return _operations(yaml.load(text, _Loader), note)  # noqa: S506 - a safe one
    except (*_OTHERWISE, yaml.YAMLError) as error:
        raise Unreadable("it is no OpenAPI description") from error


def lines_of(value: object, indent: str = "", *, outer: bool = True) -> Iterator[str]:
    """Yield the lines of a value, making each titled item in an outer list a section.

    Untitled items after a titled one become sections too, titled by name or number.
    """
    is_named = isinstance(value, dict)
    items = value.items() if isinstance(value, dict) else [("", it) for it in _list(value)]
    has_sections = False
    for number, (name, each) in enumerate(items, 1):
        mark = f"{indent}{name}:" if is_named else f"{indent}-"
        # Text indented by more than three spaces is neither a heading nor a fence.
        mark = f"    {mark}" if _MARKUP.match(mark) else mark
        title = _title(each) if outer and not is_named else ""
        if has_sections and not title:  # what follows does not belong to the last section
            title = name or f"item {number}"
        if title:
            yield f"\n## {title}\n"
        is_outermost = is_named and outer and not indent
        has_sections |= bool(title) or (is_outermost and any(map(_title, _list(each))))
        if not each or not isinstance(each, dict | list) or len(indent) > _MAX_INDENT:
            yield f"{mark} {clean(_scalar(each))}".replace("\n", f"\n{indent}    ")
        elif title and not is_named:
            yield from lines_of(each, outer=False)
        else:
            yield mark if is_named else f"\n{mark}"  # a passage preferably ends before an item
            yield from lines_of(each, f"{indent}  ", outer=is_outermost)


def as_lines(value: object) -> str:
    """Return the lines of a value as text without sections."""
    return "\n".join(lines_of(value, outer=False))


def _title(item: object) -> str:
    title = next(filter(None, map(_dict(item).get, TITLES)), "")
    return as_heading(title) if isinstance(title, str) else ""


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _dict(value: object) -> _Data:
    return value if isinstance(value, dict) else {}


def _scalar(value: object) -> str:
    return value if isinstance(value, str) else json_.dumps(value, ensure_ascii=False)


def _operations(spec: _Data, note: str) -> Parsed:
    """Return the operations and schemas of a description, and the note on its encoding.

    Raises:
        ValueError: The description has none. The other errors in `_OTHERWISE` mean that the
            data is not laid out like one.
    """
    info = spec.get("info") or {}
    title = str(info.get("title") or "")
    parts: list[str | None] = [title and f"# {title}", _described(info)]
    parts.append(_rest(info, "title", "description"))
    parts += [f"{each['url']}\n{_rest(each, 'url')}".strip() for each in spec.get("servers") or ()]
    parts += [f"{spec.get('host') or ''}{spec.get('basePath') or ''}", _extra(spec)]
    tags = [each for each in spec.get("tags") or () if isinstance(each, dict) and len(each) > 1]
    parts += [f"Tag {each.get('name', '')}\n{_rest(each, 'name')}" for each in tags]
    for path, item in {**(spec.get("paths") or {}), **(spec.get("webhooks") or {})}.items():
        shared = _resolved(spec, item)
        if "$ref" in (item or {}) and shared.keys().isdisjoint(_METHODS):
            parts += [f"## {path}", _described(shared)]
        for method in filter(shared.__contains__, _METHODS):
            parts += [f"## {method.upper()} {path}", shared.get("summary"), _described(shared)]
            operation = {**shared, "summary": "", "description": "", **(shared[method] or {})}
            parts += _operation(spec, operation, shared.get("parameters") or [])
    components = spec.get("components") or {}
    for name, each in (components.get("schemas") or spec.get("definitions") or {}).items():
        schema, fields = _schema(each), "\n".join(_fields(each))
        kind = _facts(schema).removeprefix("object" if fields else "").removeprefix(", ")
        parts += [f"## Schema {name}", _described(schema), kind, fields]
    schemes = components.get("securitySchemes") or spec.get("securityDefinitions") or {}
    for name, scheme in schemes.items():
        parts += [f"## Security scheme {name}", as_lines(scheme)]
    if not any(str(part).startswith("## ") for part in parts):
        raise ValueError("it describes no operation")
    return title, [clean("\n\n".join(filter(None, parts)))], note


def _rest(value: _Data, *read: str) -> str:
    """Return the lines of a value's fields, leaving out the fields in `read`."""
    return as_lines({name: each for name, each in value.items() if name not in read})


def _extra(value: _Data, *names: str) -> str:
    """Return the lines of the named fields of a value, and of its extensions."""
    return as_lines({k: each for k, each in value.items() if k in names or str(k).startswith("x-")})


def _operation(spec: _Data, operation: _Data, common: list[_Data]) -> Iterator[str | None]:
    """Yield the paragraphs for an operation, including the parameters of its path."""
    yield operation.get("summary")
    yield _described(operation)
    yield operation.get("deprecated") and "Deprecated"
    listed = operation.get("parameters") or []
    every = common if listed == common else common + listed
    shown = [line for each in every for line in _parameter(_resolved(spec, each))]
    if shown:
        yield "\n".join(["Parameters:", *shown])
    if body := _resolved(spec, operation.get("requestBody") or {}):
        yield _body(spec, "Request body:", body)
    answers = [
        _body(spec, f"- {status}:", _resolved(spec, each))
        for status, each in (operation.get("responses") or {}).items()
    ]
    if answers:
        yield "\n".join(["Responses:", *answers])
    calls = {
        name: _resolved(spec, each) for name, each in (operation.get("callbacks") or {}).items()
    }
    if calls:
        yield as_lines({"Callbacks": calls})
    stated = operation.get("security")
    choices = spec.get("security") if stated is None else stated
    schemes = [
        " and ".join(" ".join([name, *scopes]) for name, scopes in each.items()) or "none"
        for each in choices or ()
    ]
    if choices is not None:
        yield f"Security: {' or '.join(schemes) or 'none'}"
    if "operationId" in operation:
        yield f"Operation: {operation['operationId']}"
    yield _extra(operation, "servers", "tags", "externalDocs", "consumes", "produces")


def _described(value: _Data) -> str:
    """Return a value's description with headings below those of operations, and closed fences."""
    text = clean(str(value.get("description") or "")).rstrip()
    for block in code_blocks(text):
        if not block.closed:
            margin, mark = _FENCE.findall(text, text.rfind("\n", 0, block.start) + 1)[0]
            text += "\n" + re.sub(r"[^\s>]", " ", margin) + mark
    return replaced(text, _HEADING, lambda sign: f"{sign[0]}##" if sign[0] else "    ")


def _resolved(spec: _Data, value: _Data | None) -> _Data:
    """Resolve a reference; one without a target in this description serves as the description."""
    others = {**(value or {})}
    reference = str(others.pop("$ref", None) or "")
    target = spec if reference.startswith("#/") else {}
    for name in reference.split("/")[1:]:
        target = target.get(unquote(name).replace("~1", "/").replace("~0", "~")) or {}
    if reference and not target:
        target = {"description": f"{reference} {others.get('description') or ''}".strip()}
    return {**others, **target}


def _parameter(value: _Data) -> Iterator[str]:
    """Yield the line of a parameter, header or property, and those of its own fields, indented."""
    content = _dict(value.get("content"))
    schema = _schema(next(map(_dict, content.values()), value).get("schema", value))
    facts = [value.get("in"), *content, _type(schema), value.get("required") and "required"]
    facts += _limits({**value, **schema})
    shown = f"- {value.get('name', '$ref')} ({', '.join(filter(None, facts))})".removesuffix(" ()")
    places = (value, schema, _schema(schema.get("items")))
    about = next(filter(None, (each.get("description") for each in places)), "")
    yield f"{shown}: {' '.join(str(about).split())}".rstrip(": ")
    yield from (f"  {line}" for line in _fields(schema))


def _limits(schema: _Data) -> Iterator[str]:
    """Yield what a schema says about values besides their type."""
    yield from (f"{name} {_scalar(schema[name])}" for name in _LIMITS if name in schema)
    yield from (name for name in _MARKS if schema.get(name) is True)
    if schema.get("additionalProperties") is False:
        yield "no other properties"
    if "items" in schema:
        yield from (f"each {limit}" for limit in _limits(_schema(schema["items"])))


def _body(spec: _Data, name: str, value: _Data) -> str:
    """Return a request or response: its purpose, media types, headers and fields."""
    content = value.get("content") or {}
    media = {kind: (each or {}).get("schema") for kind, each in content.items()}
    if "schema" in value:
        media[""] = value["schema"]
    kinds = "; ".join(f"{kind} {_facts(schema)}".strip() for kind, schema in media.items())
    about = _described(value)
    words = [name, "" if "\n" in about else about, kinds and f"({kinds})"]
    headers = [
        line
        for header, each in _dict(value.get("headers")).items()
        if isinstance(each, dict)
        for line in _parameter({"in": "header", **_resolved(spec, each), "name": header})
    ]
    fields: dict[str, str] = {}
    for kind, schema in media.items():
        lines = [_described(_schema(schema)), *_fields(schema)]
        fields.setdefault("\n".join(filter(None, lines)), kind)
    fields.pop("", None)
    shown = [f"{kind}:\n{text}" if len(fields) > 1 else text for text, kind in fields.items()]
    names = ("example", "examples", "links", "required")
    others = (_extra(each or {}, *names) for each in (*content.values(), value))
    shown += filter(None, others)
    below = [about, *headers, *shown] if "\n" in about else [*headers, *shown]
    return "\n".join([" ".join(filter(None, words)), *below])


def _schema(value: object) -> _Data:
    """Return a schema as a mapping; a schema can also be just true or false."""
    return {"type": "any" if value else "none"} if isinstance(value, bool) else _dict(value)


def _type(value: object) -> str:
    schema = _schema(value)
    if "$ref" in schema:
        return str(schema["$ref"]).rsplit("/", 1)[-1]
    for name, word in _COMBINED:
        if schema.get(name):
            return word.join(filter(None, map(_type, schema[name])))
    kind = " or ".join(map(_scalar, _list(schema.get("type") or "")))
    if kind == "array":
        return f"array of {_type(schema.get('items')) or 'values'}"
    enum = ", ".join(map(_scalar, schema.get("enum") or ()))
    return f"{kind or 'one'} of {enum}" if enum else kind


def _facts(value: object) -> str:
    """Return the type and the limits of a schema."""
    return ", ".join(filter(None, [_type(value), *_limits(_schema(value))]))


def _fields(value: object) -> Iterator[str]:
    """Yield the properties of a schema, with their own properties indented."""
    schema = _schema(value)
    required = _list(schema.get("required") or ())
    fields = {**(schema.get("properties") or {})}
    if isinstance(others := schema.get("additionalProperties"), dict):
        fields["*"] = others
    for name, each in fields.items():
        yield from _parameter({"name": name, "required": name in required, "schema": each})
    for name, _ in _COMBINED:
        for each in schema.get(name) or ():
            yield from _fields(each)
    if "items" in schema:
        yield from _fields(schema["items"])
