"""What files of each kind give: their passages with titles and places."""

import html
import io
import json
import re
from base64 import b64encode
from collections.abc import Callable, Sequence
from datetime import datetime
from email.mime.base import MIMEBase
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openpyxl import Workbook
from openpyxl.comments import Comment

from stepcraft.encoding import Unreadable
from stepcraft.sources import isolated
from stepcraft.sources.corpus.content import read_content
from stepcraft.sources.corpus.passages import CHARACTERS, MAX_FENCE, Passage, fields_of, passages
from stepcraft.sources.parse import Parsed, book, mail, office
from stepcraft.sources.parse import data as data_parser
from stepcraft.sources.parse import pdf as pdf_parser
from stepcraft.text.clean import clean


def read(folder: Path, name: str, content: str | bytes) -> list[Passage]:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return list(passages(path))


def test_markdown_has_its_headings_as_titles_and_lines_as_places(tmp_path: Path):
    text = "# Tea\nAbout tea.\n\n## Green\n\n### Steeping\nTwo minutes.\n\n```sh\n# no heading\n```\n## Black\nLonger.\n"
    assert read(tmp_path, "tea.md", text) == [
        Passage("Tea", "About tea.", ":2"),
        Passage("Tea › Green › Steeping", "Two minutes.\n\n```sh\n# no heading\n```", ":7"),
        Passage("Tea › Black", "Longer.", ":13"),
    ]


def test_what_readers_of_markdown_do_not_see_is_no_passage(tmp_path: Path):
    path = tmp_path / "bread.md"
    path.write_text(
        "# Bread\n<!-- hidden:\n## Ask the baker -->\nBake it.\n\n`<!-- -->` is a comment.\n"
    )
    (passage,) = passages(path)
    assert (passage.title, passage.place) == ("Bread", ":4")
    assert passage.text == "Bake it.\n\n`<!-- -->` is a comment."


def test_markdown_titles_from_front_matter_underlines_or_the_name(tmp_path: Path):
    front = '---\ntitle: "All of tea"\n---\nText.\n'
    (passage,) = read(tmp_path, "a.md", front)
    assert (passage.title, passage.text.split("\n")) == (
        "All of tea",
        ['title: "All of tea"', "   ", "Text."],
    )
    lines = "Tea\n===\nOne.\n\nGreen\n-----\nTwo.\n"
    assert [(item.title, item.text) for item in read(tmp_path, "b.md", lines)] == [
        ("Tea", "One."),
        ("Tea › Green", "Two."),
    ]
    assert read(tmp_path, "c.md", "Only text.") == [Passage("c.md", "Only text.", ":1")]


def test_what_a_site_generator_reads_is_no_text(tmp_path: Path):
    text = (
        "import Tabs from '@theme/Tabs';\nimport {\n  Pot,\n} from \"pots\"\n\n# Tea\n"
        '<Tabs values={[{label: 1}]}>\n  <TabItem value="g" label="Green tea">\n\nTwo minutes of '
        "`<Tabs>`.\n\n  </TabItem></Tabs>\n:::tip Hot water\n\n95 degrees.\n\n:::\n"
        '{{< new-in 0.161.0 />}} {{% pot text="A pot" id="p" %}}{{< note >}}\n\n'
        "```\nimport a from 'b'\n{{< note >}}\n```\n"
    )
    (passage,) = read(tmp_path, "tea.mdx", text)
    assert (passage.title, passage.place) == ("Tea", ":8")
    assert " ".join(passage.text.split()) == (
        "Green tea Two minutes of `<Tabs>`. tip Hot water 95 degrees. new-in 0.161.0 A pot"
        " ``` import a from 'b' {{< note >}} ```"
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            '<ParamField body="key" type="str" default="a" required icon="pot" href="/x">\n  Its key.\n</ParamField>',
            "key str a required Its key.",
        ),
        ('<Field name="hot" className="x" required={true} />\nIs it?', "hot required Is it?"),
        (
            'Add:\n\n    <Pot Size="2">\n      <Tea>x</Tea>\n    </Pot>',
            'Add: <Pot Size="2"> <Tea>x</Tea> </Pot>',
        ),
        ('<Tabs>\n\n    <Tab title="Hot">\n\n    Two.\n\n    </Tab>\n</Tabs>', "Hot Two."),
        ('1. Hot:\n\n    <Tab title="Two" />', "1. Hot: Two"),
        (
            'Open it,\nimport the teas from "teas.csv"\nand save.',
            'Open it, import the teas from "teas.csv" and save.',
        ),
        (
            "import Pot, { type Tea } from 'x'\nimport * as y from \"y\";\nimport './a.css'\n\nHot.",
            "Hot.",
        ),
        ("Write to\n<Jane.Doe@x.example>.", "Write to <Jane.Doe@x.example>."),
        (
            "<Values below 5 are bad.\n\nValues > 9 are good.",
            "<Values below 5 are bad. Values > 9 are good.",
        ),
        ("<API_KEY> is <b>yours</b>.", "<API_KEY> is <b>yours</b>."),
        ("<POT_ROOT>/tea.yaml is read.", "<POT_ROOT>/tea.yaml is read."),
        ("<Tabs.Item2>\n\nHot.\n\n</Tabs.Item2>", "Hot."),
        ("<MIT or [Apache](x)>, at will.", "<MIT or [Apache](x)>, at will."),
        (
            "<Card\n  title='Hot > cold'\n  style={{color: 1}}\n  {...rest}\n  :size=2 @click=\"x\"\n/>\nTea",
            "Hot > cold Tea",
        ),
    ],
)
def test_only_components_are_hidden_and_what_they_say_is_read(
    tmp_path: Path, text: str, shown: str
) -> None:
    found = read(tmp_path, "a.md", text)
    assert " ".join(" ".join(each.text for each in found).split()) == shown


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        ("{% highlight bash %}", "{% endhighlight %}"),
        ('{{< highlight sh "hl_lines=1" >}}', "{{< /highlight >}}"),
    ],
)
def test_a_comment_in_highlighted_code_is_no_heading(tmp_path: Path, begin: str, end: str) -> None:
    code = "# remove the old one\napt remove x"
    text = f"# Tea\n\n## Install\n\n{begin}\n{code}\n{end}\n\nThen restart.\n"
    (found,) = read(tmp_path, "a.md", text)
    assert (found.title, found.place) == ("Tea › Install", ":5")
    lines = [line.rstrip() for line in found.text.split("\n")]
    assert lines == ["````", *code.split("\n"), "````", "", "Then restart."]


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        ("{% highlight html %}{% raw %}", "{% endraw %}\n{% endhighlight %}"),
        ("- Run: {% highlight bash %}", "{% endhighlight %}"),
        ("{% highlight ruby %}puts 1", "{% endhighlight %}"),
        ("- Run:\n\n    {% highlight ruby %}", "{% endhighlight %}"),
        ("{% highlight ruby %}", "{% endhighlight %}{: .x}"),
        ("{{< highlight sh >}}", "x {{< /highlight >}}"),
        ("{% highlight ruby %}", "text"),
    ],
)
def test_a_mark_of_code_whose_other_mark_is_on_no_line_of_its_own_hides_no_heading(
    tmp_path: Path, begin: str, end: str
) -> None:
    found = read(tmp_path, "a.md", f"# Tea\n\n{begin}\nmake\n{end}\n\n## Next\n\nHot.\n")
    assert (found[-1].title, found[-1].text) == ("Tea › Next", "Hot.")


def test_highlighted_code_may_hold_code_marks(tmp_path: Path) -> None:
    text = "# Tea\n\n{% highlight sh %}\n# at `date`\n{% endhighlight %}\n\n## Next\n\nHot.\n"
    found = read(tmp_path, "a.md", text)
    assert [each.title for each in found] == ["Tea", "Tea › Next"]


def test_a_fence_is_kept_whole(tmp_path: Path):
    code = "```python\n# no heading\n\n" + "call()\n" * 200 + "```"
    prose = "A sentence of some words. " * 60
    text = f"# Tea\n\n{prose}\n\n{code}\n\n{prose}\n\n# A\n\ntext\n\n## A1\n\n## A2\n"
    found = read(tmp_path, "a.md", text)
    assert [item.text for item in found if "call()" in item.text] == [code]
    assert [(item.title, item.text) for item in found[-3:]] == [
        ("Tea › A", "text"),
        ("Tea › A › A1", "## A1"),
        ("Tea › A › A2", "## A2"),
    ]


@pytest.mark.parametrize("mark", ["```", "~~~~"])
@pytest.mark.parametrize(
    ("item", "margin"), [("1. ", "   "), ("- ", "  "), ("> ", "> "), ("> 1. ", ">    ")]
)
def test_a_fence_that_begins_an_item_is_kept_whole_or_closed_in_each_part(
    tmp_path: Path, item: str, margin: str, mark: str
) -> None:
    start, end = f"{item}{mark}sh\n", f"{margin}{mark}"
    short, long = (f"{start}{f'{margin}call{chr(10)}' * calls}{end}" for calls in (200, 800))
    found = read(tmp_path, "a.md", f"# Tea\n\n{'Hot. ' * 200}\n\n{short}\n\n{'End. ' * 200}")
    assert short in [each.text for each in found]
    parts = [each.text for each in read(tmp_path, "a.md", f"# Tea\n\n{long}")]
    assert len(parts) > 3
    assert all(part.startswith(start) and part.endswith(f"\n{end}") for part in parts)


def test_rst(tmp_path: Path):
    text = "===\nTea\n===\n\nAbout tea.\n\nGreen\n-----\n\nTwo minutes.\n"
    assert read(tmp_path, "tea.rst", text) == [
        Passage("Tea", "About tea.", ":5"),
        Passage("Tea › Green", "Two minutes.", ":10"),
    ]


def test_labels_of_rst_are_no_text(tmp_path: Path):
    text = ".. _tea:\n\nTea\n===\n\n.. _target: https://x.example\n\nHot.\n"
    (passage,) = read(tmp_path, "tea.rst", text)
    assert (passage.title, passage.place) == ("Tea", ":6")


def test_a_manual_page_has_no_commands(tmp_path: Path):
    text = (
        '.\\" Copyright\n.TH TEA 1\n.de X\n.B y\n..\n.SH NAME\ntea \\- steep\n.SH OPTIONS\n.TP\n'
        '.BR \\-\\-hot ", " \\-h\n\\fIVery\\fR hot\\(em\\[u2014]\\&.\n.IP "cold" 4\n.B Ice tea \\(+-3 \\[u00E9]\n'
    )
    found = read(tmp_path, "tea.1", text)
    assert [(item.title, item.place) for item in found] == [
        ("tea.1 › NAME", ":7"),
        ("tea.1 › OPTIONS", ":10"),
    ]
    assert [item.text for item in found] == [
        "tea - steep",
        "--hot, -h\nVery hot\u2014\u2014.\ncold\nIce tea \u00b13 \u00e9",
    ]


@pytest.mark.parametrize(
    ("page", "shown"),
    [
        (
            ".ie \\n(.g .ds Aq \\(aq\n.el       .ds Aq '\n.SH Use\n\\*(Aqtea\\*[Aq] \\*(lqhot\\*(rq",
            "'tea' \"hot\"",
        ),
        (
            ".SH Use\n.ie n \\{\\\n\\h'-04' 1.\\h'+01'\\c\n.\\}\n.el \\{\\\n.sp -1\n.IP \"  1.\" 4\n.\\}\nSteep.",
            "1. Steep.",
        ),
        (".SH Use\n.ie t \\{\\\nx\n.\\}\n.el \\{\\\nHot.\n.\\}", "x Hot."),
        (".SH Use\n.HP \\w'\\fBtea\\fR\\ 'u\n.B No tea, 5'C and 6'C", "No tea, 5'C and 6'C"),
        (
            ".Dd May 1\n.Sh Use\n.Bl -tag -width Ds\n.It Fl v , Fl Fl hot Ns = Ns Ar cup\n.Fl q\n.No Two\n.El",
            "-v , --hot=cup -q Two",
        ),
        (
            ".SH Use\n\\fB1\\.5\\fR minutes\\. Don\\'t use \\`tea\\`, tea\\_pot or C:\\\\tea\\.\n10\\0cups\\tcold",
            "1.5 minutes. Don't use `tea`, tea_pot or C:\\tea. 10 cups cold",
        ),
        (
            ".SH Use\n\\.B is a\\&n e\\%x\\:am\\|ple\\/,\\, no\\c\n\\&.\n\\'tis",
            ".B is an example, no . 'tis",
        ),
    ],
)
def test_strings_and_commands_of_a_manual_page_are_read_as_they_are_shown(
    tmp_path: Path, page: str, shown: str
) -> None:
    found = read(tmp_path, "tea.1", f"{page}\n")
    assert " ".join(found[-1].text.split()) == shown


def test_a_name_that_ends_in_a_digit_makes_no_manual_page(tmp_path: Path):
    text = "Notes of Monday\n\n'It is hot,' he said.\n.gitignore lists the names."
    assert "".join(item.text for item in read(tmp_path, "notes.1", text)) == text


def test_subtitles_have_no_times_but_speakers(tmp_path: Path):
    cue = "1\n00:01.000 --> 00:04.000 align:start\n<v.loud Ana>It is <i>hot</i>.</v>\n"
    (passage,) = read(tmp_path, "tea.vtt", f"WEBVTT\n\n{cue}")
    assert passage.text == "Ana: It is hot."
    cue = "00:01.000 --> 00:04.000\nIt <00:02.500><c.loud>is</c> <c>hot</c>.\n"
    (passage,) = read(tmp_path, "tea.vtt", f"WEBVTT\n\n{cue}")
    assert passage.text == "It is hot."
    (passage,) = read(tmp_path, "age.srt", "1\n00:00:01,000 --> 00:00:04,000\n42\n")
    assert passage.text == "42"


def test_names_of_cues_and_notes_in_subtitles_are_no_text(tmp_path: Path) -> None:
    text = (
        "WEBVTT\n\nNOTE Confidence: 0.89\nby a machine\n\nSTYLE\n::cue {}\n\n"
        "a8f40f9c-9ed8/14-0\n00:00:04.177 --> 00:00:07.310\n<v Ana>Hot &amp; &lt;5.</v>\n\n"
        "NOTE 2\n00:00:08.000 --> 00:00:09.000\nNOTE it.\n\n00:00:10.000 --> 00:00:11.000\nYes.\n"
    )
    (passage,) = read(tmp_path, "tea.vtt", text)
    assert passage.text.split() == ["Ana:", "Hot", "&", "<5.", "NOTE", "it.", "Yes."]
    assert passage.place == ":11"


INTERFACE = """\
openapi: 3.1.0
info: {title: Tea, description: All of tea.}
servers: [{url: https://tea.example}]
paths:
  /pots/{id}:
    parameters:
      - $ref: '#/components/parameters/id'
    put:
      summary: Fill a pot
      operationId: fill
      parameters:
        - {name: hot, in: query, schema: {type: boolean}}
      requestBody:
        content:
          application/json:
            schema:
              type: object
              required: [tea]
              properties: {tea: {type: string, enum: [green, black], description: The kind.}}
      responses:
        200: {description: Filled, content: {application/json: {schema: {$ref: '#/x/Pot'}}}}
        '404': {description: No such pot}
      security: [{key: [pots]}]
components:
  parameters:
    id: {name: id, in: path, required: true, description: The number., schema: {type: integer}}
  schemas:
    Pot:
      description: A pot of tea.
      properties: {teas: {type: array, items: {$ref: '#/x/Tea'}}}
"""


def test_an_interface_is_read_by_operations(tmp_path: Path):
    found = read(tmp_path, "tea.yaml", INTERFACE)
    assert [(item.title, item.text.split("\n\n")) for item in found] == [
        ("Tea", ["All of tea.", "https://tea.example"]),
        (
            "Tea › PUT /pots/{id}",
            [
                "Fill a pot",
                "Parameters:\n- id (path, integer, required): The number.\n- hot (query, boolean)",
                "Request body: (application/json object)\n- tea (string of green, black, required): The kind.",
                "Responses:\n- 200: Filled (application/json Pot)\n- 404: No such pot",
                "Security: key pots",
                "Operation: fill",
            ],
        ),
        ("Tea › Schema Pot", ["A pot of tea.", "- teas (array of Tea)"]),
    ]
    text = json.dumps({"swagger": "2.0", "paths": {"/pots": {"get": {"responses": {}}}}})
    assert [item.title for item in read(tmp_path, "a.json", text)] == ["a.json › GET /pots"]
    (other,) = read(tmp_path, "values.yaml", "pots: 2  # at least\n")
    assert other.text == "pots: 2  # at least"


PARTS = """\
openapi: 3.1.0
info: {title: Tea}
paths:
  /pots: {$ref: '#/components/pathItems/Pots'}
components:
  pathItems:
    Pots:
      get:
        deprecated: true
        parameters:
          - {name: most, in: query, schema: {type: integer, minimum: 1, maximum: 50, default: 20}}
        responses: {200: {content: {application/json: {schema: {type: array, items: true}}}}, 204: }
  securitySchemes:
    key: {type: apiKey, in: header, name: X-Key}
  schemas:
    Pot:
      allOf:
        - {$ref: '#/components/schemas/Cup'}
        - properties:
            lid: {enum: [on, off]}
            size: {type: object, properties: {depth: {type: number}}}
            teas: {type: array, items: {type: object, properties: {name: {type: string}}}}
            other: true
"""


def test_the_parts_and_constraints_of_an_interface_are_read(tmp_path: Path) -> None:
    found = read(tmp_path, "tea.yaml", PARTS)
    assert [(item.title, item.text.split("\n\n")) for item in found] == [
        (
            "Tea › GET /pots",
            [
                "Deprecated",
                "Parameters:\n- most (query, integer, minimum 1, maximum 50, default 20)",
                "Responses:\n- 200: (application/json array of any)\n- 204:",
            ],
        ),
        (
            "Tea › Schema Pot",
            [
                "Cup",
                "- lid (one of on, off)\n- size (object)\n  - depth (number)\n"
                "- teas (array of object)\n  - name (string)\n- other (any)",
            ],
        ),
        ("Tea › Security scheme key", ["type: apiKey\nin: header\nname: X-Key"]),
    ]


ABOUT = """\
openapi: 3.0.0
info: {title: Tea, version: "2.4", contact: {email: ana@x.example}}
tags: [{name: pots, description: Old pots are sold.}, {name: cups}]
servers: [{url: https://tea.example, description: The shop}]
paths:
  /pots:
    get:
      responses:
        200:
          description: The pots
          headers: {X-Limit: {$ref: '#/components/headers/Limit'}}
          content:
            text/json: {schema: {properties: {id: {type: integer}}}}
            text/xml: {schema: {properties: {id: {type: integer}}}}
            text/csv: {schema: {properties: {row: {type: string}}}}
      callbacks: {sold: {"{$url}": {post: {summary: Called once sold}}}}
components: {headers: {Limit: {description: Calls an hour, schema: {type: integer}}}}
"""


def test_what_an_interface_says_about_itself_its_headers_and_callbacks_is_read(
    tmp_path: Path,
) -> None:
    found = read(tmp_path, "tea.yaml", ABOUT)
    assert [each.text.split("\n\n") for each in found] == [
        [
            "version: 2.4\ncontact:\n  email: ana@x.example",
            "https://tea.example\ndescription: The shop",
            "Tag pots\ndescription: Old pots are sold.",
        ],
        [
            "Responses:\n- 200: The pots (text/json; text/xml; text/csv)\n"
            "- X-Limit (header, integer): Calls an hour\n"
            "text/json:\n- id (integer)\ntext/csv:\n- row (string)",
            "Callbacks:\n  sold:\n    {$url}:\n      post:\n        summary: Called once sold",
        ],
    ]


EXTRA = """\
openapi: 3.0.0
x-limit: 9 calls an hour
paths:
  /pots:
    servers: [{url: https://pots.example}]
    x-owner: Ana
    get:
      x-scope: read
      parameters: [{name: most, in: query, example: 20}]
      responses:
        429: {content: {text/json: {example: {code: TOO_HOT}}}}
        500: {content: {text/json: }}
    put: {servers: [{url: https://put.example}], 5: x}
"""


def test_servers_examples_and_extensions_of_an_operation_are_read(tmp_path: Path) -> None:
    about, *found = read(tmp_path, "tea.yaml", EXTRA)
    assert about.text == "x-limit: 9 calls an hour"
    assert [" ".join(each.text.split()) for each in found] == [
        "Parameters: - most (query, example 20)"
        " Responses: - 429: (text/json) example: code: TOO_HOT - 500: (text/json)"
        " servers: - url: https://pots.example x-owner: Ana x-scope: read",
        "servers: - url: https://put.example x-owner: Ana",
    ]


@pytest.mark.parametrize(
    ("everywhere", "here", "shown"),
    [
        ([{"key": []}], [], "none"),
        ([{"key": []}], [{}, {"key": []}], "none or key"),
        ([{"key": []}, {"sign": []}], None, "key or sign"),
        ([{"key": []}], [{"sign": [], "login": ["read", "write"]}], "sign and login read write"),
        ([], [{"key": [], "sign": []}, {"login": []}], "key and sign or login"),
        ([], None, "none"),
        (None, [], "none"),
        (None, None, ""),
    ],
)
def test_the_security_of_an_operation_replaces_the_one_of_the_interface(
    tmp_path: Path, everywhere: object, here: object, shown: str
) -> None:
    paths = {"/pots": {"get": {"summary": "Pots", "security": here}}}
    text = json.dumps({"openapi": "3.0.0", "security": everywhere, "paths": paths})
    (passage,) = read(tmp_path, "tea.json", text)
    assert passage.text.partition("Security: ")[2] == shown


BODIES = """\
swagger: "2.0"
paths:
  /swarm:
    post:
      parameters:
        - in: body
          name: body
          schema:
            type: object
            required: [Addr]
            properties:
              Addr: {type: string, description: Where to listen.}
              Spec: {type: object, required: [Name], properties: {Name: {type: string}}}
        - {name: ids, in: query, required: true, type: array, items: {type: integer}}
        - name: filter
          in: query
          description: As JSON.
          content: {text/json: {schema: {properties: {hot: {type: boolean}}}}}
      responses:
        200:
          headers: {X-Pots: {schema: {type: array, items: {properties: {id: {type: integer}}}}}}
"""


def test_the_fields_of_parameters_and_headers_are_read(tmp_path: Path) -> None:
    (found,) = read(tmp_path, "tea.yaml", BODIES)
    assert found.text.split("\n\n") == [
        "Parameters:\n"
        "- body (body, object)\n"
        "  - Addr (string, required): Where to listen.\n"
        "  - Spec (object)\n"
        "    - Name (string, required)\n"
        "- ids (query, array of integer, required)\n"
        "- filter (query, text/json): As JSON.\n"
        "  - hot (boolean)",
        "Responses:\n- 200:\n- X-Pots (header, array of values)\n  - id (integer)",
    ]


def test_numbers_of_an_interface_are_read_as_they_are_written(tmp_path: Path) -> None:
    text = """\
swagger: 2.0
info: {title: Tea, version: 1.10}
paths:
  /pots:
    get:
      parameters:
        - {name: at, in: query, required: true, type: string, example: 10:30, default: 01067}
        - {name: size, in: query, enum: [16:9, 4:3, 1_000, on, .5, 0x1F], nullable: true}
        - {name: most, in: query, type: integer, minimum: 0, maximum: 1e3, default: null}
      responses: {200: {description: It is hot}}
"""
    about, found = read(tmp_path, "tea.yaml", text)
    assert about.text == "version: 1.10"
    assert found.text.split("\n\n") == [
        "Parameters:\n- at (query, string, required, default 01067, example 10:30)\n"
        "- size (query, one of 16:9, 4:3, 1_000, on, .5, 0x1F, nullable)\n"
        "- most (query, integer, minimum 0, maximum 1e3, default null)",
        "Responses:\n- 200: It is hot",
    ]


FILES = """\
openapi: 3.0.0
paths:
  /users: {$ref: paths/users.yaml}
  /teas: {$ref: teas.yaml}
  /pots:
    get:
      parameters:
        - {$ref: ./limit.yaml, description: At most 9.}
        - {$ref: 'common.yaml#/components/parameters/id'}
        - {$ref: '#/components/parameters/id'}
      requestBody: {$ref: '#/components/requestBodies/none'}
      responses: {200: {$ref: ./pots.yaml}, 404: {$ref: '#/components/responses/a~1b'}}
components:
  parameters: {id: {name: another, in: query, type: integer}}
  responses: {a/b: {description: No such pot}}
"""


def test_references_to_other_files_are_shown(tmp_path: Path) -> None:
    found = read(tmp_path, "tea.yaml", FILES)
    assert [(each.title, each.text.split("\n\n")) for each in found] == [
        ("tea.yaml › /users", ["paths/users.yaml"]),
        ("tea.yaml › /teas", ["teas.yaml"]),
        (
            "tea.yaml › GET /pots",
            [
                "Parameters:\n- $ref: ./limit.yaml At most 9.\n"
                "- $ref: common.yaml#/components/parameters/id\n- another (query, integer)",
                "Request body: #/components/requestBodies/none",
                "Responses:\n- 200: ./pots.yaml\n- 404: No such pot",
            ],
        ),
    ]


ABOUT_POTS = """\
# Note
Pots are hot.

Size
----
Small.

```sh
# boil
```

###### Last
One.
"""


@pytest.mark.parametrize(
    "code", ["```sh\n# boil", "~~~~\n# boil\n```", "- Do:\n  ```\n  # boil", "> ```"]
)
def test_headings_and_fences_of_a_description_end_with_it(tmp_path: Path, code: str) -> None:
    answers = {
        200: {"description": f"{code}\n"},
        404: {"description": "```\nno pot\n```\n", "content": {"text/json": {}}},
    }
    operation = {"summary": "Pots", "description": ABOUT_POTS, "responses": answers}
    spec = {
        "openapi": "3.0.0",
        "info": {"title": "Tea", "description": f"All of tea.\n\n# Errors\n{code}"},
        "paths": {"/pots": {"get": operation, "put": {"description": code}}},
        "components": {"schemas": {"Pot": {"description": f"# Pot\n{code}"}, "Cup": {}}},
    }
    found = read(tmp_path, "tea.json", json.dumps(spec))
    assert [each.title for each in found] == [
        "Tea",
        "Tea › Errors",
        "Tea › GET /pots",
        "Tea › GET /pots › Note",
        "Tea › GET /pots › Note › Last",
        "Tea › PUT /pots",
        "Tea › Schema Pot › Pot",
        "Tea › Schema Cup",
    ]
    assert "```sh\n# boil\n```" in found[3].text
    assert "- 404: (text/json)\n```\nno pot\n```" in found[4].text


FACTS = """\
openapi: 3.0.0
paths:
  /pots:
    description: All pots are blue.
    get:
      description: Finds pots.
      tags: [kitchen]
      externalDocs: {url: https://tea.example/pots}
      parameters:
        - name: ids
          in: query
          examples: {two: {value: [1, 2]}}
          schema: {type: array, items: {type: string, description: An id.}}
      responses:
        200: {description: Found, links: {next: {operationId: more}}}
    put:
      requestBody:
        required: true
        content:
          text/plain: {schema: {description: The name., type: string, maxLength: 9, default: pot}}
          text/json:
            schema:
              type: object
              additionalProperties: false
              patternProperties: {^x-: {type: string}}
              properties: {lid: {not: {const: none}}, any: {additionalProperties: true}}
"""


def test_no_fact_of_an_operation_is_left_out(tmp_path: Path) -> None:
    get, put = (each.text.split("\n\n") for each in read(tmp_path, "tea.yaml", FACTS))
    assert get == [
        "All pots are blue.",
        "Finds pots.",
        'Parameters:\n- ids (query, array of string, examples {"two": {"value": ["1", "2"]}}): An id.',
        "Responses:\n- 200: Found\nlinks:\n  next:\n    operationId: more",
        "tags:\n  - kitchen\nexternalDocs:\n  url: https://tea.example/pots",
    ]
    assert put == [
        "All pots are blue.",
        "Request body: (text/plain string, maxLength 9, default pot; "
        'text/json object, patternProperties {"^x-": {"type": "string"}}, no other properties)\n'
        'text/plain:\nThe name.\ntext/json:\n- lid (not {"const": "none"})\n- any\nrequired: true',
    ]


GERMAN = "Vor dem Öffnen der Pumpe – der Preis beträgt 5 €."


@pytest.mark.parametrize(
    ("name", "encoding", "note"),
    [
        ("a.yaml", "cp1252", "it is not UTF-8"),
        ("a.json", "cp1252", "it is not UTF-8"),
        ("a.yaml", "utf-8", ""),
        ("a.json", "utf-8", ""),
    ],
)
def test_the_encoding_of_an_interface_is_noted_if_it_was_guessed(
    tmp_path: Path, name: str, encoding: str, note: str
) -> None:
    spec = f'{{"openapi": "3.0.0", "paths": {{"/a": {{"get": {{"summary": "{GERMAN}"}}}}}}}}'
    if name == "a.yaml":
        spec = f"openapi: 3.0.0\npaths:\n  /a:\n    get:\n      summary: {GERMAN}\n"
    found, noted = all_of(tmp_path, name, spec.encode(encoding))
    assert [(each.title, each.text) for each in found] == [(f"{name} › GET /a", GERMAN)]
    assert noted.partition(";")[0] == note


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_lines_within_a_value_of_json_are_no_headings(tmp_path: Path, end: str) -> None:
    value = {"body": f"Hot{end}# Cold{end}```{end}x", "list": [f"a{end}# b"], "": {"c": 1}}
    (found,) = read(tmp_path, "a.json", json.dumps(value))
    assert found.title == "a.json"
    assert found.text.split("\n") == [
        *("body: Hot", "    # Cold", "    ```", "    x"),
        *("list:", "  - a", "      # b", ":", "  c: 1"),
    ]


@pytest.mark.parametrize("name", ["# of pots", "### x", "```", "~~~~x"])
@pytest.mark.parametrize("value", [3, {"green": 1}, [[1]]])
def test_a_name_in_json_is_no_heading_or_fence(tmp_path: Path, name: str, value: object) -> None:
    items = [{"name": "A", name: value, "at": {name: 3}, "color": "red"}, {"name": "B", "pots": 1}]
    found = read(tmp_path, "a.json", json.dumps(items))
    assert [each.title for each in found] == ["a.json › A", "a.json › B"]
    assert f"    {name}:" in found[0].text
    assert f"at:\n      {name}: 3\ncolor: red" in found[0].text
    found = read(tmp_path, "b.json", json.dumps({"#5": 1, "a ```": 2, name: value, "color": "red"}))
    assert [each.title for each in found] == ["b.json"]
    assert found[0].text.startswith("#5: 1\na ```: 2\n")


PORT = "The gateway listens on port 8443."


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("template.yaml", f"openapi: 3.0.0\ninfo: {{{{ .Values.title }}}}\n# {PORT}\n"),
        ("several.yaml", f"kind: Service\n---\nopenapi: 3.0.0\nnote: {PORT}\n"),
        ("other.yaml", f"swagger: '2.0'\nservers: [https://tea.example]\nnote: {PORT}\n"),
        ("cyclic.yaml", f"openapi: 3.1.0\nlist: &a\n  - *a\nnote: {PORT}\n"),
        ("empty.yaml", f"openapi: 3.0.0\npaths:\n  /a:\n  /b:\n    get: {{summary: {PORT}}}\n"),
        ("settings.json", f'{{"openapi": "api.yaml", "paths": ["src"], "note": "{PORT}"}}'),
        ("deep.json", f'{"[" * 5000}\n"{PORT}"\n{"]" * 5000}'),
        ("markup.txt", f"<?xml is how an XML file begins.\n{PORT}\n"),
    ],
)
def test_what_only_looks_like_an_interface_or_xml_is_text(
    tmp_path: Path, name: str, text: str
) -> None:
    assert PORT in " ".join(item.text for item in read(tmp_path, name, text))


def test_json_is_read_without_its_escapes(tmp_path: Path):
    issue = {"title": "Too hot", "body": "# Grün\n```\n<!-- x", "by": {"name": "Ana"}}
    text = json.dumps({"issues": [issue, {**issue, "title": "Cold"}], "open": True})
    found = read(tmp_path, "tea.json", text)
    assert [item.title for item in found[1:]] == [
        "tea.json › Too hot",
        "tea.json › Cold",
        "tea.json › open",
    ]
    assert found[1].text.split("\n")[1:] == [
        "body: # Grün",
        "    ```",
        "    <!-- x",
        "by:",
        "  name: Ana",
    ]
    chat = [{"user": "ana", "text": "Hot?", "reactions": [{"name": "+1"}]}, {"text": "Yes."}]
    (passage,) = read(tmp_path, "chat.json", json.dumps(chat))
    assert "user: ana" in passage.text
    assert "text: Yes." in passage.text
    (passage,) = read(tmp_path, "tsconfig.json", '{\n  // strict\n  "a": 1\n}')
    assert "// strict" in passage.text
    records = list(passages(tmp_path / "tea.json", fields_of("", "body")))
    assert records[0].title == "tea.json"


def test_lines_of_json_are_read_without_their_escapes(tmp_path: Path) -> None:
    lines = [json.dumps({"q": text}) for text in ("关闭阀门", 'say "Grün"')]
    (passage,) = read(tmp_path, "a.json", "\n".join([*lines, ""]))
    assert passage.text.split() == ["-", "q:", "关闭阀门", "-", "q:", "say", '"Grün"']


LONG = "My tea was delivered to a neighbour, and " * 6


@pytest.mark.parametrize(
    ("value", "titles"),
    [
        ([{"name": "A"}, {"name": None, "p": 7}, {"name": "B"}], ["A", "item 2", "B"]),
        (
            [{"p": 1}, {"name": "A"}, "note", {}, [2], {"p": 3}],
            ["", "A", *map("item {}".format, (3, 4, 5, 6))],
        ),
        ({"rows": [{"name": "A"}, {"name": "?!"}], "x": 1}, ["", "A", "item 2", "x"]),
        ([{"name": "A"}, {"name": LONG, "p": 7}], ["A", LONG[:200].strip()]),
        ([{"p": 1}, "note", [{"name": "A"}], {"x": {"name": "B"}}], [""]),
        ({"x": {"rows": [{"name": "A"}, {"p": 1}]}, "y": [1, 2]}, [""]),
    ],
)
def test_no_item_of_json_is_read_under_the_title_of_another(
    tmp_path: Path, value: Any, titles: list[str]
) -> None:
    found = read(tmp_path, "a.json", json.dumps(value))
    assert [each.title.removeprefix("a.json").removeprefix(" › ") for each in found] == titles
    assert LONG not in json.dumps(value) or LONG.strip() in found[-1].text


@pytest.mark.parametrize(("subject", "title"), [(LONG, LONG[:200].strip()), ("?", "Message")])
def test_a_message_without_a_usable_subject_is_not_read_under_another(
    tmp_path: Path, subject: str, title: str
) -> None:
    start = "From a@b Mon Jan  1 00:00:00 2024\n"
    mails = f"{start}Subject: One\n\nHot.\n\n{start}Subject: {subject}\n\nCold.\n"
    found = read(tmp_path, "a.mbox", mails)
    assert [each.title for each in found] == ["a.mbox › One", f"a.mbox › {title}"]


def test_html_is_read_as_a_browser_shows_it(tmp_path: Path):
    page = (
        "<html><head><title>Tea &amp; more</title><style>p {}</style></head><body><nav>Home</nav>"
        "<h1>Tea</h1><p>About <b>green</b> tea.</p><script>alert(1)</script>"
        "<h2>Black</h2><ul><li>Longer_than_that</li></ul></body></html>"
    )
    found = read(tmp_path, "tea.html", page)
    assert [(item.title, item.place) for item in found] == [("Tea", ""), ("Tea › Black", "")]
    assert found[0].text == "About **green** tea."
    assert "Longer_than_that" in found[1].text
    deep = "<div>" * 20_000 + "tea"
    with pytest.raises(Unreadable, match="RecursionError"):
        read(tmp_path, "deep.html", deep)


def test_of_html_the_main_element_is_read(tmp_path: Path):
    page = (
        "<title>Tea</title><div role=navigation><h3>Contents</h3>Tea</div><main><h1>Tea"
        '<a class="headerlink" href="#tea">#</a></h1><p>Steep it.</p><p hidden>Keys</p></main>'
        "<footer>Built yesterday</footer>"
    )
    assert read(tmp_path, "tea.html", page) == [Passage("Tea", "Steep it.", "")]
    menus = "<ul class='nav'><li><a>Home</a></li></ul><ul><li><a hreflang=de>Tee</a></li></ul>"
    (shown,) = read(tmp_path, "menus.html", f"{menus}<h1>Tea</h1><p>Steep it.")
    assert (shown.title, shown.text) == ("Tea", "Steep it.")
    tabs = "<h1>Tea</h1><div role=tabpanel hidden>Black: four minutes</div>"
    assert read(tmp_path, "tabs.html", tabs)[0].text == "Black: four minutes"
    small = "<main><p>Menu</p></main><h1>Tea</h1><p>" + "Steep it for long. " * 9
    assert "Steep it" in read(tmp_path, "small.html", small)[-1].text


LONG = "Steep it for long. " * 9


@pytest.mark.parametrize(
    ("page", "is_read"),
    [
        ("<section><h2>Prices</h2><p>FACT</section>", True),
        ("<section><h2>Hours</h2><table><tr><td>FACT</table></section>", True),
        ("<aside><section><h2>News</h2><p>FACT</section></aside>", False),
        ("<section class=cookie-banner><h2>Cookies</h2><p>FACT</section>", False),
        ("<section><h2>Posts like this</h2><ul><li>FACT</ul></section>", False),
        ("<footer><section><h2>About us</h2><p>FACT</section></footer>", False),
        ("<div>FACT</div>", False),
    ],
)
def test_sections_beside_an_article_are_read(tmp_path: Path, page: str, is_read: bool) -> None:
    article = f"<article><h1>Tea</h1><p>{LONG}</p><section><h2>Hot<p>Two.</section></article>"
    text = "".join(each.text for each in read(tmp_path, "a.html", page + article))
    assert ("FACT" in text) == is_read
    assert LONG.strip() in text


@pytest.mark.parametrize(
    ("items", "is_read"),
    [
        ("<li>Soup, FACT (<a>allergens</a>)<li>Fish 14 euros", True),
        ("<li>\n      <a>FACT</a> (3)\n    <li>\n      <a>Recipes</a>\n", False),
    ],
)
def test_a_menu_of_dishes_is_read(tmp_path: Path, items: str, is_read: bool) -> None:
    page = f"<h1>Tea</h1><p>Hot.</p><ul class=menu>{items}</ul>"
    assert ("FACT" in read(tmp_path, "a.html", page)[0].text) == is_read


def test_end_tags_that_html_lets_out_are_implied(tmp_path: Path) -> None:
    page = (
        "<!doctype html><html lang=en><head><title>Tea</title><body><p>Steep<p>it<ul><li>one<ul>"
        "<li>two</ul><li>three</ul><table><thead><tr><th>Tea<th>Time<tbody><tr><td>Green<td>2<tr>"
        "<td>Black<td>4</table><select><option>hot<option>cold</select>"
    )
    (passage,) = read(tmp_path, "tea.html", page)
    assert passage.text.split("\n") == [
        *("Steep", "", "it", "", "* one", "  + two", "* three", ""),
        *("| Tea | Time |", "| --- | --- |", "| Green | 2 |", "| Black | 4 |", "", "hot cold"),
    ]
    rows = read(tmp_path, "rows.html", "<table>" + "<tr><td>tea<td>hot" * 2_000)
    assert sum(each.text.count("| tea | hot |") for each in rows) == 2_000
    hidden = "<p>Tea<noscript><p>Keys</noscript><p><font style='display:none'>Keys<p>Keys</font>"
    assert [each.text for each in read(tmp_path, "hidden.html", hidden)] == ["Tea"]


@pytest.mark.parametrize(
    ("page", "is_read"),
    [
        ("<details><summary>Q</summary><div><div style='display:none'>ANSWER</div></div>", True),
        (
            "<h3><button aria-expanded=false aria-controls=a>Q</button></h3><div id=a hidden>ANSWER",
            True,
        ),
        ("<dl><dt><button aria-expanded=false>Q</button><dd hidden>ANSWER</dl>", True),
        ("<p>Q</p><div hidden=until-found>ANSWER</div>", True),
        ("<p>Q</p><div class=accordion-panel aria-hidden=true>ANSWER</div>", True),
        ("<details><summary>Q</summary><p>Yes.<p hidden>ANSWER<p>So.</details>", False),
        (
            "<div hidden><button aria-expanded=false aria-controls=a></button></div><p id=a hidden>ANSWER",
            False,
        ),
        ("<button aria-expanded=false>Q</button><ul hidden><li><a href=x>ANSWER</a></ul>", False),
        ("<p>Q</p><div role=region hidden>ANSWER</div>", False),
    ],
)
def test_of_what_is_hidden_only_what_readers_can_unfold_is_read(
    tmp_path: Path, page: str, is_read: bool
) -> None:
    text = "".join(each.text for each in read(tmp_path, "a.html", f"<h1>Tea</h1><p>Hot.</p>{page}"))
    assert ("ANSWER" in text) == is_read


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("10<sup>6</sup> rows", "10^6 rows"),
        ("x<sup>as in <code>foo</code></sup>", "xas in `foo`"),
        ("10<sup>-6</sup> m<sup>2</sup>/s", "10^-6 m^2/s"),
        ("2<sup>n-1</sup>, (a+b)<sup>2</sup>", "2^(n-1), (a+b)^2"),
        ("30<sup><a>1</a></sup> or 9<a><sup>b</sup></a>", "30 [1] or 9 [b]"),
        (
            "Hot.<sup>1</sup> Tea<sup><a>[2]</a></sup>, water<sup>3</sup>",
            "Hot. [1] Tea [2], water [3]",
        ),
        ("2<sup>1</sup>/<sub>2</sub> cups", "2 1/2 cups"),
        ("<math><mn>2</mn><mfrac><mn>1</mn><mn>2</mn></mfrac></math> cups", "2 1/2 cups"),
        ("<math><msup><mi>x</mi><mi>n</mi></msup></math>", "x^n"),
        ("5<sup>th</sup>, 2<sup><a>nd</a></sup>, 1<sup>er</sup>", "5th, 2nd, 1er"),
        ("<sup>14</sup>C, H<sub>2</sub>O, Pot<sup>®</sup>", "14C, H2O, Pot®"),
        ("<a href=x>10<sup>6</sup> pots</a>", "10^6 pots"),
        ("10<span style='font-size:0.6em;vertical-align:super'>6</span> pots", "10^6 pots"),
        (
            "<style>.c3{color:red;vertical-align:super}</style>5 m<span class='a c3'>2</span>",
            "5 m^2",
        ),
    ],
)
def test_superscripts_and_fractions_do_not_change_numbers(
    tmp_path: Path, written: str, shown: str
) -> None:
    (passage,) = read(tmp_path, "a.html", f"<p>It has {written}.</p>")
    assert passage.text == f"It has {shown}."


def test_superscripts_of_other_documents_do_not_change_numbers(tmp_path: Path) -> None:
    styles = (
        "<style:style style:name='T1'><style:text-properties style:text-position='super 58%'/>"
        "</style:style>"
    )
    spans = "10<text:span text:style-name='T1'>6</text:span>, 5<text:span>th</text:span>"
    files = {
        "a.odt": zipped({"content.xml": f"{styles}<text:p>{spans} pot.</text:p>"}),
        "a.rtf": rb"{\rtf1\ansi 10{\fs16\super 6}, 5\super th\nosupersub  pot.}",
        "a.xml": b"<?xml version='1.0'?><p>10<sup>6</sup>, 5<sup>th</sup> pot.</p>",
    }
    for name, data in files.items():
        assert [each.text for each in read(tmp_path, name, data)] == ["10^6, 5th pot."]


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("<ol type=a><li>theft<li>fraud</ol>", "a. theft\nb. fraud"),
        ("<ol type=A start=27><li>Tea</ol>", "AA. Tea"),
        ("<ol type=i start=4><li>Tea<li>Pot</ol>", "iv. Tea\nv. Pot"),
        ("<ol><li>Tea<li value=7>Pot<li>Cup</ol>", "1. Tea\n7. Pot\n8. Cup"),
        ("<ol reversed><li>Tea<li>Pot</ol>", "2. Tea\n1. Pot"),
        (
            "<ol start=3><li>Tea<ol style='list-style-type:lower-latin'><li>Hot</ol></ol>",
            "3. Tea\n   a. Hot",
        ),
        ("<ul><li value=5>1. May</ul>", "* 1. May"),
    ],
)
def test_items_of_a_list_have_the_labels_that_are_shown(
    tmp_path: Path, written: str, shown: str
) -> None:
    assert texts_of(tmp_path, "a.html", written) == [shown]


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("<ruby>東<rt>とう</rt>京<rt>きょう</rt></ruby>都", "東京(とうきょう)都"),
        ("<ruby>東<rt>とう</rt></ruby><ruby>京<rt>きょう</rt></ruby>", "東京(とうきょう)"),
        ("<ruby>条例<rp>(</rp><rt>じょうれい</rt><rp>)</rp></ruby>", "条例(じょうれい)"),
        ("<ruby>茶<rt></rt></ruby>", "茶"),
    ],
)
def test_readings_of_characters_do_not_tear_words(tmp_path: Path, written: str, shown: str) -> None:
    (passage,) = read(tmp_path, "a.html", written)
    assert passage.text == shown


@pytest.mark.parametrize(
    ("table", "shown"),
    [
        (
            "<tr><td><pre>1\n2\n</pre><td><pre>if hot:\n    pour()\n</pre>",
            "```\nif hot:\n    pour()\n```",
        ),
        (
            "<tr><td><pre>1<br>2</pre><td><pre>if hot:<br>    pour()</pre>",
            "```\nif hot:  \n    pour()\n```",
        ),
        (
            "<tr><th>Step<th>Do<tr><td>1<td><pre>pour()</pre>",
            "| Step | Do |\n| --- | --- |\n| 1 | ``` pour() ``` |",
        ),
        (
            "<tr><td>1<td>Do:<pre>pour()</pre>",
            "|  |  |\n| --- | --- |\n| 1 | Do:  ``` pour() ``` |",
        ),
        ("<tr><td><pre>ps | grep x</pre>", "|  |\n| --- |\n| ``` ps | grep x ``` |"),
        (
            "<caption>a.py</caption><tr><td>1<td><pre>pour()</pre>",
            "a.py\n\n```\npour()\n```",
        ),
        (
            '<tr><th>Tea<tr><td><code>"hot" | "cold"</code>',
            '| Tea |\n| --- |\n| `"hot" \\| "cold"` |',
        ),
    ],
)
def test_code_in_tables_is_read_as_it_is_shown(tmp_path: Path, table: str, shown: str) -> None:
    (passage,) = read(tmp_path, "a.html", f"<table>{table}</table>")
    assert passage.text == shown


@pytest.mark.parametrize(
    ("rows", "shown"),
    [
        (
            "<tr><td rowspan=2>Tea<td>1<td>20<tr><td>12<td>200",
            ["| Tea | 1 | 20 |", "| Tea | 12 | 200 |"],
        ),
        (
            "<tr><td>1<td rowspan=0>Tea<tr><td>2<tr><td>3",
            ["| 1 | Tea |", "| 2 | Tea |", "| 3 | Tea |"],
        ),
        (
            "<tr><td>1<td>2<td rowspan=65534>Tea<td>3<tr><td rowspan=2 colspan=2>Hot<td>4<tr><td>5",
            ["| 1 | 2 | Tea | 3 |", "| Hot | | Tea | 4 |", "| Hot | | Tea | 5 |"],
        ),
        (f"<tr><td rowspan=2>{LONG}<td>1<tr><td>2", [f"| {LONG}| 1 |", "| | 2 |"]),
        (
            "<tr><td rowspan=2>Tea<td><table><tr><td>Hot</table><tr><td>2",
            ["| Tea | | | | --- | | Hot | |", "| Tea | 2 |"],
        ),
        ("<thead><tr><td rowspan=9>Tea<td>1<tbody><tr><td>2<td>3", ["| Tea | 1 |", "| 2 | 3 |"]),
    ],
)
def test_cells_below_a_merged_cell_keep_their_columns(
    tmp_path: Path, rows: str, shown: list[str]
) -> None:
    (passage,) = read(tmp_path, "a.html", f"<table>{rows}</table>")
    lines = [" ".join(line.split()) for line in passage.text.splitlines()]
    assert [line for line in lines if re.search(r"\w", line)] == shown


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("<p>Hot <img class='emoticon emoticon-tick' alt='(tick)'>", "Hot (tick)"),
        ("<p>Hot<img class=emoji alt='\U0001f375'>tea", "Hot\U0001f375tea"),
        ("<p>It is <img class=formulaInl alt='$a|b$'>.", "It is $a|b$."),
        (
            "<p>It is <span><math style='display: none;'><mi>E</mi></math><img aria-hidden=true"
            " class='mwe-math-fallback-image-inline mw-invert' alt='{E=mc^{2}}'></span>.",
            "It is {E=mc^{2}}.",
        ),
        ("<div hidden><img class=emoji alt=x></div>Hot <img class=emoji>", "Hot"),
        ("<p>Hot <img alt='A pot'> <img class=mathematician alt=Ana>", "Hot"),
        (
            "<table><tr><th>Hot<th>Iced<tr><td><img alt='yes | no'><td><img alt=''></table>",
            "| Hot | Iced |\n| --- | --- |\n| yes \\| no |  |",
        ),
        (
            "<table><tr><th>Tea<th>Pot<tr><td>Hot <img alt=A><td><img alt=B><img alt=C></table>",
            "| Tea | Pot |\n| --- | --- |\n| Hot |  |",
        ),
        (
            "<ul><li><input type=checkbox checked disabled> Steep it<li><input type=checkbox>Pour</ul>",
            "* [x] Steep it\n* [ ] Pour",
        ),
        ("<p><label><input type=CHECKBOX>Hot</label><input type=radio>Iced", "[ ] Hot Iced"),
        ("<input type=checkbox id=menu><label for=menu></label><p>Hot", "Hot"),
    ],
)
def test_images_and_boxes_that_stand_for_words_are_shown_as_text(
    tmp_path: Path, written: str, shown: str
) -> None:
    (passage,) = read(tmp_path, "a.html", written)
    assert passage.text == shown


@pytest.mark.parametrize("charset", ["iso-8859-1", "us-ascii", "windows-1252"])
def test_markup_is_decoded_as_browsers_do(tmp_path: Path, charset: str) -> None:
    text = "Größe – „Maß“ kostet 5 €"
    page = f"<meta charset={charset}><p>{text}"
    article = f"<?xml version='1.0' encoding='{charset}'?><article><p>{text}</p></article>"
    mail = f"Subject: x\nContent-Type: text/html; charset={charset}\n\n<p>{text}"
    for name, data in (("a.html", page), ("a.xml", article), ("a.eml", mail)):
        assert text in read(tmp_path, name, data.encode("cp1252"))[0].text


def test_the_head_of_a_wide_table_is_repeated_without_its_padding(tmp_path: Path) -> None:
    head = f"| Option{' ' * 400} | Default{' ' * 200} |\n|{'-' * 408}|{'-' * 209}|"
    rows = "\n".join(f"| option{number} | {'value ' * 20}|" for number in range(20))
    found = read(tmp_path, "a.md", f"# T\n\n{head}\n{rows}\n")
    assert len(found) > 2
    assert all(each.text.startswith("| Option | Default |\n|---|---|\n") for each in found[1:])


def test_an_indented_fence_that_begins_a_passage_has_one_opening(tmp_path: Path) -> None:
    file = tmp_path / "a.md"
    file.write_text(f"# T\n\n{'Word ' * 196}\n\n  ```py\n  x = 1\n  ```\n\nEnd.\n")
    assert [each.text.count("```py") for each in passages(file)] == [0, 1]


def test_a_fence_holds_fences(tmp_path: Path) -> None:
    code = "# no heading\n```\n# none\n```"
    cells = [
        {"cell_type": "code", "source": code},
        {"cell_type": "markdown", "source": "# Tea\nHot"},
    ]
    files = {"a.ipynb": json.dumps({"cells": cells}), "a.html": f"<pre>{code}</pre><h1>Tea</h1>Hot"}
    for name, data in files.items():
        first, second = read(tmp_path, name, data)
        assert first.text == f"````\n{code}\n````"
        assert second.title.endswith("Tea")


def test_headings_are_read_as_they_are_shown(tmp_path: Path):
    text = (
        "# :tea: Tea [![ci](https://x.example/b.svg)](https://x.example) {#tea}\nSteep it.\n\n"
        '## <a name="hot"></a>**Hot** `__water__` [¶](#hot)\n95 degrees.\n'
    )
    assert [item.title for item in read(tmp_path, "tea.md", text)] == ["Tea", "Tea › Hot __water__"]


def test_each_part_of_a_long_table_or_code_says_what_it_is_of(tmp_path: Path):
    rows = [f"| T{number} | {number} minutes, or as long as it takes |" for number in range(60)]
    code = [f"   call({number})" for number in range(400)]
    text = "\n".join(
        ["| Tea | Time |", "|---|---|", *rows, "", "1. Brew:", "", "   ```py", *code, "   ```", ""]
    )
    found = [item.text for item in read(tmp_path, "tea.md", text)]
    tables = [item for item in found if "| T" in item]
    assert len(tables) > 2
    assert all(item.startswith("| Tea | Time |\n|---|---|\n| T") for item in tables)
    assert [line for item in tables for line in item.split("\n") if line in rows] == rows
    codes = [item for item in found if "call(" in item]
    assert len(codes) > 2
    assert all(item.count("```") == 2 for item in codes)


HEAD = "| Part | Price |\n| --- | --- |"
PLAIN_HEAD = "Part | Price\n--- | ---"


@pytest.mark.parametrize(
    ("begin", "line", "end"),
    [
        (HEAD, "| P-{} | {} ``` |", ""),
        (PLAIN_HEAD, "P-{} | {}", "\nAs of May."),
        ("```", "step {}\n# rows: {}\n| - |", "```"),
        ("~~~~ sh", "step {}\n# rows: {}\n```\n~~~", "~~~~~ "),
        ("- Run:\n\n  ```", "  step {}\n  # rows: {}", "  ```"),
    ],
)
@pytest.mark.parametrize("count", [100, 12_000])
def test_a_block_of_any_length_is_read_as_one(
    tmp_path: Path, begin: str, line: str, end: str, count: int
) -> None:
    rows = "\n".join(line.format(number, number) for number in range(count))
    after = f"{HEAD}\n| Z | 5 |\n\n```\n# z\n```\n\n## Owners\n\nAnna."
    found = read(tmp_path, "a.md", f"# Guide\n\n## Log\n\n{begin}\n{rows}\n{end}\n\n{after}")
    assert [*dict.fromkeys(each.title for each in found)] == ["Guide › Log", "Guide › Owners"]
    word = line.partition("{")[0].strip()
    texts = [each.text for each in found if word in each.text]
    opening = begin.rpartition("\n\n")[2].lstrip()
    assert all(each.removeprefix("- Run:").lstrip().startswith(opening) for each in texts)
    assert found[-1].text == "Anna."


def test_a_notebook_gives_cells(tmp_path: Path):
    cells = [
        {"cell_type": "markdown", "source": ["# Tea\n", "About tea."]},
        {
            "cell_type": "code",
            "source": "# boil\nboil()",
            "outputs": [
                {"output_type": "stream", "text": ["\x1b[1;31m100\x1b[0m degrees\n"]},
                {
                    "output_type": "execute_result",
                    "data": {"text/plain": ["'done'"], "image/png": "iVBO"},
                },
                {
                    "output_type": "error",
                    "ename": "Dry",
                    "evalue": "no water",
                    "traceback": ["a", "b"],
                },
            ],
        },
    ]
    text = json.dumps({"cells": cells, "metadata": {}})
    (found,) = read(tmp_path, "tea.ipynb", text)
    assert (found.title, found.place) == ("Tea", " cell 1")
    outputs = ["# boil\nboil()", "100 degrees", "'done'", "Dry: no water"]
    assert found.text == "About tea.\n\n" + "\n\n".join(f"```\n{each}\n```" for each in outputs)
    old = [
        {"cell_type": "heading", "level": 1, "source": "Tea"},
        {"cell_type": "code", "input": "boil()"},
    ]
    text = json.dumps({"nbformat": 3, "worksheets": [{"cells": old}]})
    (found,) = read(tmp_path, "old.ipynb", text)
    assert (found.title, found.text) == ("Tea", "```\nboil()\n```")
    with pytest.raises(Unreadable, match="cannot be read as notebook"):
        read(tmp_path, "b.ipynb", "[]")


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (
            {"text/markdown": ["**Hot**, ", "not cold"], "text/plain": "<Markdown object>"},
            "**Hot**, not cold",
        ),
        ({"text/html": "<ul><li>Hot</ul>", "text/plain": "<pots.Pot at 0x7f>"}, "* Hot"),
        ({"text/html": "<script>x</script><p>Hot \ud800"}, "Hot \ufffd"),
        ({"text/html": "<table><tr><td>Hot</table>", "text/plain": "  pot\n0 Hot"}, "  pot\n0 Hot"),
        ({"image/png": "iVBO", "text/plain": "<Figure size 640x480>"}, "<Figure size 640x480>"),
    ],
)
def test_outputs_of_a_notebook_are_read_as_they_are_shown(
    tmp_path: Path, data: dict[str, Any], shown: str
) -> None:
    cell = {"cell_type": "code", "source": "pot", "outputs": [{"data": data}]}
    found, note = all_of(tmp_path, "a.ipynb", json.dumps({"cells": [cell]}).encode())
    assert ([each.text for each in found], note) == ([f"```\npot\n```\n\n```\n{shown}\n```"], "")


def test_a_long_output_has_its_beginning_and_end_and_a_note(tmp_path: Path) -> None:
    log = "".join(f"pot {number} is filled\n" for number in range(1, 301))
    cells = [{"cell_type": "code", "source": "", "outputs": [{"text": log}]}]
    found, note = all_of(tmp_path, "a.ipynb", json.dumps({"cells": cells}).encode())
    text = "".join(each.text for each in found)
    assert [f"pot {number} is" in text for number in (1, 150, 300)] == [True, False, True]
    assert note == "of 1 outputs, only the beginning and end were read, the first in cell 1"


def pdf(*pages: str, annotations: str = "", form: Sequence[str] = ()) -> bytes:
    """A PDF of pages; each line of a text is a line of its page, and a form begins at object 6."""
    kids = " ".join(f"{number} 0 R" for number in range(4, 4 + 2 * len(pages), 2))
    objects = [
        f"<</Type/Catalog/Pages 2 0 R{'/AcroForm<</Fields[6 0 R]>>' if form else ''}>>",
        f"<</Type/Pages/Kids[{kids}]/Count {len(pages)}>>",
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    for text in pages:
        lines = " ".join(f"({line}) Tj 0 -14 Td" for line in text.split("\n"))
        stream = f"BT /F1 12 Tf 72 720 Td {lines} ET"
        contents = f"{len(objects) + 2} 0 R/Resources<</Font<</F1 3 0 R>>>>/Annots[{annotations}]"
        objects.append(f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents {contents}>>")
        objects.append(f"<</Length {len(stream)}>>stream\n{stream}\nendstream")
    objects += form
    body, table = "%PDF-1.4\n", "0000000000 65535 f \n"
    for number, item in enumerate(objects, 1):
        table += f"{len(body):010} 00000 n \n"
        body += f"{number} 0 obj{item}endobj\n"
    size = len(objects) + 1
    end = f"trailer<</Root 1 0 R/Size {size}>>\nstartxref\n{len(body)}\n%%EOF"
    return f"{body}xref\n0 {size}\n{table}{end}".encode()


def test_pdf_gives_pages(tmp_path: Path):
    long = "Green tea is steeped for two minutes. " * 60
    found = read(tmp_path, "tea.pdf", pdf("Black tea.", long, "White tea."))
    assert {item.title for item in found} == {"tea.pdf"}
    assert found[0].place == " p. 1"
    assert {item.place for item in found if "White" not in item.text} >= {" p. 1", " p. 2"}
    assert "White tea." in found[-1].text


@pytest.mark.parametrize("shown", ["Green", ""])
def test_pdf_gives_what_was_filled_into_a_form(tmp_path: Path, shown: str) -> None:
    drawn = f"BT /F1 12 Tf ({shown}) Tj ET"
    form = [
        "<</Type/Annot/Subtype/Widget/FT/Tx/T(tea)/V(x)/Rect[72 600 300 620]/F 4/AP<</N 7 0 R>>>>",
        f"<</Type/XObject/Subtype/Form/BBox[0 0 200 20]/Resources<</Font<</F1 3 0 R>>>>"
        f"/Length {len(drawn)}>>stream\n{drawn}\nendstream",
    ]
    found, note = all_of(tmp_path, "a.pdf", pdf("Tea:", annotations="6 0 R", form=form))
    assert ("".join(each.text for each in found).split(), note) == (["Tea:", *shown.split()], "")


@pytest.mark.parametrize(
    ("annotation", "note"),
    [
        ("/Text/Contents(Too hot)", "comments that were not read: 1"),
        ("/Highlight/Contents()", ""),
        ("/Link/Contents(The shop)", ""),
    ],
)
def test_comments_in_a_pdf_are_counted(tmp_path: Path, annotation: str, note: str) -> None:
    file = pdf("Tea.", annotations=f"<</Type/Annot/Rect[9 9 30 30]/Subtype{annotation}>>")
    (passage,), shown = all_of(tmp_path, "a.pdf", file)
    assert (passage.text, shown) == ("Tea.", note)


def test_pdf_joins_the_words_its_layout_parted(tmp_path: Path):
    page = "The infu-\nsion is state-of-the-\nart, as the Earl-\nGrey shows."
    [found] = read(tmp_path, "tea.pdf", pdf(page))
    words = " ".join(found.text.split())
    assert words == "The infusion is state-of-the-art, as the Earl-Grey shows."


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("a.pdf", b"%PDF-1.4 broken", "cannot be read as pdf"),
        ("a.pdf", pdf(""), "no text"),
        ("a.txt", b"\0\1\2", "binary"),
        ("large.txt", bytes(20_000_001), "larger than 20 MB"),
    ],
)
def test_what_cannot_be_read_says_why(tmp_path: Path, name, content, why):
    with pytest.raises(Unreadable, match=why):
        read(tmp_path, name, content)


TEXTS = {
    "cp1252": "Vor dem Öffnen der Pumpe – der Preis beträgt 5 €.",
    "cp1251": "Закройте клапан и подождите пять минут.",
    "cp932": "ポンプを止めてから、バルブを閉めてください。",
    "gb18030": "先关闭阀门，然后等待五分钟。",
    "euc_kr": "밸브를 닫고 오 분 동안 기다리십시오.",
}


@pytest.mark.parametrize(
    ("encoding", "text", "note"),
    [
        *((name, text, "it is not UTF-8; it was read as") for name, text in TEXTS.items()),
        ("utf-16-le", "Close the valve.", "UTF-16, without a byte-order mark"),
        ("big5", "先關閉閥門，然後等待五分鐘。", "it is not UTF-8; it was read as"),
        ("cp1251", "# -*- coding: cp1251 -*- Да", ""),
        ("koi8-r", "#!/bin/sh\n# vim: set fileencoding=koi8-r :\nДа", ""),
        ("iso2022_jp", TEXTS["cp932"], ""),
        ("iso2022_kr", TEXTS["euc_kr"], ""),
        ("utf-8-sig", "Grüner Tee", ""),
        ("utf-16", "Grüner Tee", ""),
        ("utf-32", "Grüner Tee", ""),
    ],
)
def test_texts_are_read_in_their_encoding(
    tmp_path: Path, encoding: str, text: str, note: str
) -> None:
    found, notes = all_of(tmp_path, "a.txt", text.encode(encoding))
    assert ([each.text for each in found], note in notes, bool(notes)) == ([text], True, bool(note))


def test_a_byte_that_is_wrong_costs_itself(tmp_path: Path) -> None:
    text = "Über öffentliche Gärten, für Mädchen schön. ".encode() * 4
    (passage,), notes = all_of(tmp_path, "a.md", text[:90] + b"\xff" + text[90:])
    assert passage.text.count("\ufffd") == 1
    assert "schön" in passage.text
    assert "1 bytes of it are not UTF-8" in notes


def all_of(folder: Path, name: str, data: bytes) -> tuple[list[Passage], str]:
    """Return the passages of a file, and the note on it."""
    (folder / name).write_bytes(data)
    found: list[Passage] = []
    try:
        found.extend(passages(folder / name))
    except Unreadable as note:
        return found, str(note)
    return found, ""


CASES = {
    "tilde.rst": (
        "Tea\n===\n\nGreen\n~~~~~\n\nTwo minutes::\n\n    # main.yml\n    - a\n\nBlack\n~~~~~\n\nThree.\n",
        ["Tea › Green", "Tea › Black"],
    ),
    "a.adoc": (
        "= Tea\n\n== Green\n\n----\n== no heading\n----\n\n=== Cold\nIce.\n",
        ["Tea › Green", "Tea › Green › Cold"],
    ),
    "lines.adoc": (
        "Tea\n===\n\nGreen\n-----\n\nSteep it:\n----\n== no heading\n----\n\nCold\n~~~~\n\nIce.\n",
        ["Tea › Green", "Tea › Green › Cold"],
    ),
    "a.asciidoc": ("= Tea\n\n== Green\nTwo.\n", ["Tea › Green"]),
    "a.org": (
        "#+TITLE: Tea\n* Green :hot:\nTwo.\n** TODO Cold\nIce.\n",
        ["Tea › Green", "Tea › Green › Cold"],
    ),
    "a.tex": (
        "\\title{Tea}\n\\section{Green}\nTwo.\n\\subsection*{Cold}\nIce.\n",
        ["Tea › Green", "Tea › Green › Cold"],
    ),
    "braces.tex": (
        "\\title[Tea]{All of {Tea}}\n\\section{The \\texttt{hot} pot}\\label{sec:{hot}}\nTwo.\n"
        "\\section{Cold}\\label{cold}\nIce.\n",
        ["All of {Tea} › The \\texttt{hot} pot", "All of {Tea} › Cold"],
    ),
    "inset.rst": (
        "=====\n Tea\n=====\n\n*******\n  Hot\n*******\n\nTwo::\n\n    no heading\n------\n\n"
        "Go\n==\n\nIce.\n",
        ["Tea › Hot", "Tea › Hot › Go"],
    ),
    "tea.1": (
        ".TH TEA 1\n.SH NAME\ntea\n.SH OPTIONS\n.SS Cold\nIce.\n",
        ["tea.1 › NAME", "tea.1 › OPTIONS › Cold"],
    ),
    "upper.md": ("---\nTitle: Tea\nlang: en\n---\n\nHot.\n", ["Tea"]),
    "SKILL.md": ("---\nname: tea\n---\n\nHot.\n", ["tea"]),
    "toml.md": ('+++\ntitle = "Tea"\n+++\n\nHot.\n', ["Tea"]),
    "comment.md": ("---\n# generated\ntitle: >-\n  Tea\n---\n\nHot.\n", ["Tea"]),
    "a.srt": ("1\n00:00:01,000 --> 00:00:02,000\nClose the valve.\n", ["a.srt"]),
    "page.xml": (
        "<article><title>Tea</title><sec><title>Green</title><p>Two.</p></sec></article>",
        ["Tea › Green"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_titles_of_other_markup(tmp_path: Path, name: str) -> None:
    text, titles = CASES[name]
    found, notes = all_of(tmp_path, name, text.encode())
    shown = [each.title for each in found]
    assert notes == ""
    assert [title for title in titles if title not in shown] == []
    assert not any("no heading" in each for each in shown)
    assert all("-->" not in each.text for each in found)


def test_xml_keeps_its_sentences_and_the_names_of_its_values(tmp_path: Path) -> None:
    feed = (
        '<?xml version="1.0"?><rss><channel><title>Tea</title><link>https://x.example</link><item>'
        "<title>Green</title><author>Ana</author><description><![CDATA[<p># of <b>two</b> "
        "minutes</p>]]></description><guid isPermaLink='no'/></item></channel></rss>"
    )
    first, second = read(tmp_path, "tea.rss", feed)
    assert (first.title, first.text) == ("Tea", "link: https://x.example")
    assert second.title == "Tea › Green"
    assert second.text.split("\n")[0] == "author: Ana"
    assert second.text.endswith("guid ispermalink=no")
    article = "<article><sec><title>Tea</title><p>Steep <i>it</i> for <b>two</b> minutes.</p></sec>"
    (passage,) = read(tmp_path, "a.nxml", f"<!DOCTYPE article>{article}</article>")
    assert (passage.title, passage.text) == ("Tea", "Steep it for two minutes.")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            '<pots><pot id="a"><size unit="l">2</size><hot/></pot></pots>',
            ["pot id=a", "", "size unit=l: 2", "hot"],
        ),
        (
            '<pots><pot id="a" price="5" class="x"><title>Tea</title></pot></pots>',
            ["pot id=a price=5", "", "Tea"],
        ),
        (
            '<opml><head><title>Tea</title></head><outline text="Hot"><outline text="Two"/></outline>',
            ["Tea", "", "outline text=Hot", "", "outline text=Two"],
        ),
        (
            '<feed><title type="html">Tea</title><id>1</id><summary type="text">Hot.</summary></feed>',
            ["id: 1", "summary: Hot."],
        ),
        (
            '<article><sec id="s1" sec-type="x"><title>Tea</title><p>Hot.</p></sec></article>',
            ["Hot."],
        ),
        (
            "<dict><key>Hot</key><true/><key>Iced</key><false/></dict>",
            ["key: Hot", "true", "key: Iced", "false"],
        ),
        (
            "<rss><channel><title>Tea</title><item>Hot.<br/><cloud/></item></channel></rss>",
            ["Hot."],
        ),
        (
            "<table><colgroup><col/></colgroup><tr><td><p>Hot.<br/></p></td><td/></tr></table>",
            ["Hot."],
        ),
        (
            '<doc><summary>It is <see langword="false"/> for <paramref name="cup"/>,'
            ' see <see cref="M:Tea.Steep(System.Int32)"/>.</summary></doc>',
            ["It is false for cup, see Tea.Steep(System.Int32)."],
        ),
        (
            '<rfc><t>As in <xref target="RFC2119"/> and <xref target="hot">Hot</xref>.<br/></t></rfc>',
            ["As in RFC2119 and Hot."],
        ),
        (
            "<book><para>Set it:</para><programlisting><![CDATA[<pot>\n<size l='2'/></pot>]]>"
            "</programlisting><para>&lt;b&gt;Hot&lt;/b&gt;</para></book>",
            ["Set it:", "programlisting: <pot>", "<size l='2'/></pot>", "Hot"],
        ),
        ("<server><script><![CDATA[run.sh]]></script></server>", ["script: run.sh"]),
        (
            "<data><table><thead><tr><th>A</th><th>B|C</th></tr></thead><tbody><tr><td>1</td>"
            "<td><b>&lt;/i&gt;</b>y</td></tr></tbody></table></data>",
            ["| A | B\\|C |", "| --- | --- |", "| 1 | </i>y |"],
        ),
        (
            '<doc><member name="M:Pot.Fill(System.Int32)"><summary><para>Fills it.</para></summary>'
            '<param name="cups">How many.</param><exception cref="T:Hot">If hot.</exception></member></doc>',
            [
                *("member name=M:Pot.Fill(System.Int32)", "", "Fills it."),
                *("param name=cups: How many.", "exception cref=T:Hot: If hot."),
            ],
        ),
        (
            '<releases version="5"><release version="1.2" date="2024-05-01" id="r"><description>'
            "<p>Mends X.</p></description></release></releases>",
            ["release version=1.2 date=2024-05-01", "", "Mends X."],
        ),
        (
            '<doc><code><b>x</b>&lt;add key="hot"/&gt;&lt;tea&gt;&lt;/tea&gt;</code></doc>',
            ['x<add key="hot"/><tea></tea>'],
        ),
    ],
)
def test_xml_of_data_keeps_its_attributes(tmp_path: Path, text: str, shown: list[str]) -> None:
    (passage,) = read(tmp_path, "pots.xsd", f'<?xml version="1.0"?>{text}')
    assert passage.text.split("\n") == shown


def test_pages_of_a_memo_have_no_feet(tmp_path: Path) -> None:
    foot = (
        "\n\nAuthor       Standards Track       [Page 1]\n\f\nRFC 1       Tea       June 2020\n\n"
    )
    text = f"1.  Steeping\n\nTwo{foot}minutes.\n\n1.1  Cold\n\nIce.\n"
    found = read(tmp_path, "rfc.txt", text)
    assert "Page" not in found[0].text
    assert [each.title for each in found] == ["Steeping", "Steeping › Cold"]


@pytest.mark.parametrize(
    "text",
    [
        "About tea\n\nSteep it for 2 minutes. [Page 7]\nIt is cold.  [Page 9]\n",
        "About tea\n\n[Page 12]\nIt was first sold in 1999\nand was hot.\n",
        "About tea\n\n   - Hot [Page 3]\n   - Sold in 1999\n",
    ],
)
def test_a_reference_to_a_page_is_no_foot(tmp_path: Path, text: str) -> None:
    (passage,) = read(tmp_path, "notes.txt", text)
    assert passage.text == text.strip()


@pytest.mark.parametrize("foot", [f"[Page 2]{' ' * 64}", f"Tea{' ' * 60}[Page 3]"])
@pytest.mark.parametrize("head", ["September 1981" + " " * 58, " " * 58 + "September 1981"])
def test_heads_and_feet_at_either_edge_of_a_page_are_left_out(
    tmp_path: Path, foot: str, head: str
) -> None:
    text = f"The rest of this\n\n\n{foot}\n\n\n{head}\n\n\nsection is hot.\n"
    (passage,) = read(tmp_path, "tea.txt", text)
    assert passage.text.split() == ["The", "rest", "of", "this", "section", "is", "hot."]


def test_a_foot_without_a_head_below_it_hides_no_text(tmp_path: Path) -> None:
    text = f"Hot.\n\nAna{' ' * 50}[Page 1]\n\n   It was sold in 1999\n"
    (passage,) = read(tmp_path, "tea.txt", text)
    assert passage.text.split() == ["Hot.", "It", "was", "sold", "in", "1999"]


MAIL = """\
From: a@example.org
Subject: =?utf-8?q?Die_T=C3=BCr?=
Content-Type: multipart/mixed; boundary=x

--x
Content-Type: text/plain; charset=iso-8859-1
Content-Transfer-Encoding: base64

{body}
--x
Content-Type: application/pdf
Content-Disposition: attachment; filename=plan.pdf
Content-Transfer-Encoding: base64

AAAA
--x--
"""
PAGE = """\
Content-Type: multipart/related; boundary=x

--x
Content-Type: text/html; charset=utf-8

<title>Tea</title><h1>Green</h1>Two.
--x--
"""


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("Page.doc", f"Date: today\nSubject: Exported\nMIME-Version: 1.0\n{PAGE}"),
        ("report.xls", "<html xmlns:o='urn:x'><head><title>Tea</title></head><h1>Green</h1>Two."),
        (
            "teas.resx",
            "\ufeff<?xml version='1.0'?><article><title>Tea</title><sec><title>Green</title>"
            "<p>Two.</p></sec></article>",
        ),
        ("Saved", "<html><head><title>Tea</title></head><h1>Green</h1>Two."),
        ("page.asp", "<!DOCTYPE html><title>Tea</title><h1>Green</h1>Two."),
        ("Inbox", "From - Mon Jan  1 00:00:00 2024\nSubject: Green\n\nTwo.\n"),
    ],
)
def test_what_a_file_holds_is_known_without_its_suffix(
    tmp_path: Path, name: str, data: str
) -> None:
    *_, found = read(tmp_path, name, data)
    assert found.title.rpartition(" › ")[2] == "Green"
    assert found.text.endswith("Two.")


@pytest.mark.parametrize("name", ["index.php", "page.jsp", "base.j2", "a.md"])
def test_the_source_of_a_page_is_no_page(tmp_path: Path, name: str) -> None:
    text = "<html>\n<?php if ($hot > 90) { ?>\n<p>Pour.</p>\n<?php } ?>\n</html>"
    (found,) = read(tmp_path, name, text)
    assert (found.title, found.text, found.place) == (name, text, ":1")


def test_many_json_lines_are_read_as_they_are() -> None:
    line = '{"tea": "Gr\\u00fcn", "minutes": 2}\n'
    assert "Grün" in data_parser.json(line.encode() * 2)[1][0]
    many = line * (10_000_000 // len(line) + 1)
    assert data_parser.json(many.encode()) == ("", [many], "")


def test_mail_is_decoded_and_its_attachments_are_named(tmp_path: Path) -> None:
    text = MAIL.format(body=b64encode("Schließen.".encode("latin-1")).decode())
    (passage,), note = all_of(tmp_path, "a.eml", text.encode())
    assert passage.title == "Die Tür"
    assert passage.text.endswith("Schließen.")
    assert "plan.pdf" in note
    two = f"From a Mon Jan  1 00:00:00 2024\n{text}\n" * 2
    found, _ = all_of(tmp_path, "b.mbox", two.encode())
    assert [(each.title, each.place) for each in found] == [
        ("b.mbox › Die Tür", " message 1"),
        ("b.mbox › Die Tür", " message 2"),
    ]
    open_comment = two.replace("Content-Transfer-Encoding: base64\n\nU", "\n<!-- U", 1)
    found, _ = all_of(tmp_path, "c.mbox", open_comment.encode())
    assert found[-1].text.endswith("Schließen.")
    (*_, shown), _ = all_of(tmp_path, "c.mhtml", PAGE.encode())
    assert (shown.title, shown.text) == ("Tea › Green", "Two.")


@pytest.mark.parametrize(
    ("subject", "shown"),
    [
        ("Чай горячий".encode("cp1251"), "Чай горячий"),
        (b"=?gb2312?B?" + b64encode("朱镕基".encode("gbk")) + b"?=", "朱镕基"),
        (b"Re: =?shift_jis?B?" + b64encode("髙①".encode("cp932")) + b"?=", "Re: 髙①"),
    ],
    ids=["none named", "gbk", "cp932"],
)
def test_headers_in_national_encodings_are_read(tmp_path: Path, subject: bytes, shown: str) -> None:
    mail = b"Subject: " + subject + b"\nContent-Type: text/plain; charset=windows-1251\n\nHot."
    (passage,) = read(tmp_path, "a.eml", mail)
    assert (passage.title, passage.text) == (shown, f"Subject: {shown}\n\nHot.")


def test_the_encoding_of_a_mail_is_noted_if_it_was_guessed(tmp_path: Path) -> None:
    text = f"Subject: Tea\n\n{TEXTS['cp1251']}".encode("cp1251")
    (passage,), note = all_of(tmp_path, "a.eml", text)
    assert passage.text.endswith(TEXTS["cp1251"])
    assert note.startswith("it is not UTF-8; it was read as ")
    start = START.encode()
    mails = start + b"Subject: One\n\nHot.\n\n" + start + text + b"\n\n" + start + text
    assert all_of(tmp_path, "a.mbox", mails)[1] == f"of message 2, {note}"


def test_a_message_within_a_message_is_read(tmp_path: Path) -> None:
    text = (
        "Subject: Fwd\nContent-Type: multipart/mixed; boundary=x\n\n--x\n\nSee below.\n--x\n"
        "Content-Type: message/rfc822\n\nSubject: Tea\n\nBring the pot.\n--x\n\nA foot.\n--x\n"
        "Content-Type: application/pgp-encrypted\n\nVersion: 1\n--x--\n"
    )
    (passage,), note = all_of(tmp_path, "a.eml", text.encode())
    assert passage.text.split("\n\n") == [
        "Subject: Fwd",
        "See below.",
        "Subject: Tea",
        "Bring the pot.",
        "A foot.",
    ]
    assert "application/pgp-encrypted" in note


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        ("a.doc", b"\xd0\xcf\x11\xe0\0", "of an old Office or Outlook, or protected by a password"),
        (
            "a.xlsx",
            b"\xd0\xcf\x11\xe0\0",
            "of an old Office or Outlook, or protected by a password",
        ),
        ("a.txt", b"{\\rtf1 Tea}", "it is RTF"),
        ("a.mht", b"Subject: x\n\ny", "it holds no page"),
    ],
)
def test_what_is_no_text_is_refused_by_name(
    tmp_path: Path, name: str, data: bytes, why: str
) -> None:
    assert why in all_of(tmp_path, name, data)[1]


def test_the_cells_of_a_workbook_are_shown_as_it_shows_them(tmp_path: Path) -> None:
    book = Workbook()
    prices, empty = book.worksheets[0], book.create_sheet("Empty")
    prices.title = "Prices"
    for row in (
        ["Item", "Code", "Country", "Price", "From", "Share"],
        ["Tea | hot", "00123", "NA", 25, datetime(2024, 1, 2), 0.05],
        ["two\nlines", "1e5", "null", 12345678.25, None, True],
        [None] * 6,
        ["Ice", None, "N/A", 10_000_000_000, datetime(2024, 1, 2, 3, 4), 0.1 + 0.2],
    ):
        prices.append(row)
    prices["F2"].number_format = "0%"
    empty["B3"] = None
    file = io.BytesIO()
    book.save(file)
    (passage,) = read(tmp_path, "tea.xlsx", file.getvalue())
    assert passage.title == "tea.xlsx › Prices"
    assert passage.text.split("\n") == [
        "| Item | Code | Country | Price | From | Share |",
        "| --- | --- | --- | --- | --- | --- |",
        "| Tea \\| hot | 00123 | NA | 25 | 2024-01-02 | 5% |",
        "| two lines | 1e5 | null | 12345678.25 |  | TRUE |",
        "| Ice |  | N/A | 10000000000 | 2024-01-02 03:04:00 | 0.3 |",
    ]


@pytest.mark.parametrize(
    ("value", "form", "shown"),
    [
        (5, '0"%"', "5%"),
        (5, "0\\ \\%", "5%"),
        (2.5, '#,##0.0" %";-0.0" %"', "2.5%"),
        (2.5, '0.##"%"', "2.5%"),
        (0.03, "0%", "3%"),
        (0.05, '"Share: "0%', "5%"),
        (-0.05, "0.0%;[Red]-0.0%", "-5%"),
        (2.5, '0.0"x"_%', "2.5"),
        (5, '0 "(full: 100%)"', "5"),
        (1067, "00000", "01067"),
        (1067, '"D-"00000', "01067"),
        (12345678, "000\\-00-0000", "012345678"),
        (7.5, "00", "7.5"),
        (10, "#,##0", "10"),
    ],
)
def test_a_number_in_a_workbook_has_the_zeros_and_the_percentage_of_its_format(
    tmp_path: Path, value: float, form: str, shown: str
) -> None:
    book, file = Workbook(), io.BytesIO()
    book.worksheets[0].append(["Tea", value])
    book.worksheets[0]["B1"].number_format = form
    book.save(file)
    (passage,) = read(tmp_path, "tea.xlsx", file.getvalue())
    assert passage.text.split("\n")[0] == f"| Tea | {shown} |"


@pytest.mark.parametrize(
    ("written", "changed", "shown", "note"),
    [
        ('<dimension ref="A1:B3"', '<dimension ref="A1"', "| Ice | 3 |", ""),
        ("<v>3</v>", "<f>1+2</f><v>3</v>", "| Ice | 3 |", ""),
        ("<v>3</v>", "<f>1+2</f><v></v>", "| Ice |", "without a stored value"),
        ("<v>3</v>", '<f t="shared" si="0"/>', "| Ice |", "without a stored value"),
        (' t="n"><v>3</v>', ' t="str"><f>""</f><v></v>', "| Ice |", ""),
    ],
)
def test_every_cell_of_a_workbook_is_read_or_counted(
    tmp_path: Path, written: str, changed: str, shown: str, note: str
) -> None:
    book, file = Workbook(), io.BytesIO()
    for row in (["Tea", "Minutes"], ["Green", 2], ["Ice", 3]):
        book.worksheets[0].append(row)
    book.save(file)
    sheet = "xl/worksheets/sheet1.xml"
    with ZipFile(file) as parts:
        texts = {name: parts.read(name).decode() for name in parts.namelist()}
    assert written in texts[sheet]
    texts[sheet] = texts[sheet].replace(written, changed)
    [passage], notes = all_of(tmp_path, "a.xlsx", zipped(texts))
    assert shown in passage.text
    assert (note in notes, bool(notes)) == (True, bool(note))


def test_text_above_a_table_and_merged_cells_of_a_workbook_are_no_other_columns(
    tmp_path: Path,
) -> None:
    book, file = Workbook(), io.BytesIO()
    sheet = book.worksheets[0]
    rows = [["# Prices"], [], ["Item", "Net", "Gross"], ["Tea", 12, 14], [None, 13, 15]]
    for row in rows:
        sheet.append(row)
    sheet.merge_cells("A4:A6")
    book.save(file)
    (passage,) = read(tmp_path, "tea.xlsx", file.getvalue())
    assert passage.title == "tea.xlsx › Sheet"
    assert passage.text.split("\n") == [
        *("\\# Prices", "", "| Item | Net | Gross |", "| --- | --- | --- |"),
        *("| Tea | 12 | 14 |", "| Tea | 13 | 15 |"),
    ]


MARKITDOWN = """
import sys
from types import SimpleNamespace
from zipfile import ZipFile

sys.modules["markitdown.converters"] = sys.modules[__name__]
StreamInfo = SimpleNamespace

def text_of(stream):
    return ZipFile(stream).read("text").decode()

class DocxConverter:
    def convert(self, stream, info):
        return self._html_converter.convert_string(text_of(stream))

class PptxConverter:
    def convert(self, stream, info):
        return SimpleNamespace(title=None, markdown=text_of(stream))
"""


@pytest.fixture
def markitdown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Stands in for MarkItDown, which makes HTML of Word and Markdown of slides: the file "text"."""
    isolated.end()  # a process that waits has the path from before
    (tmp_path / "path").mkdir()
    (tmp_path / "path" / "markitdown.py").write_text(MARKITDOWN)
    monkeypatch.syspath_prepend(str(tmp_path / "path"))
    yield
    isolated.end()


@pytest.mark.usefixtures("markitdown")
@pytest.mark.parametrize(
    ("page", "shown"),
    [
        ("<p>10<sup>6</sup> cells, at most max_size</p>", "10^6 cells, at most max_size"),
        (
            "<table><tr><td rowspan='2'>Tea</td><td>1</td></tr><tr><td>12</td></tr></table>",
            "| Tea | 1 |\n| --- | --- |\n| Tea | 12 |",
        ),
        ("<p>Apply <a href='https://a.example/x'>here</a>.</p>", "here (https://a.example/x)."),
        (
            "<p><a href='#top'>Top</a> <a href='https://a.example'>https://a.example</a></p>",
            "Top https://a.example",
        ),
        ("<p><img alt='Ana leads sales' src='data:,'></p>", "Ana leads sales"),
        (
            "<p><input type='checkbox' checked='checked' /> Yes <input type='checkbox' /> No</p>",
            "[x] Yes [ ] No",
        ),
    ],
)
def test_powers_and_columns_of_a_word_document_are_kept(
    tmp_path: Path, page: str, shown: str
) -> None:
    (passage,) = read(tmp_path, "a.docx", zipped({"text": page}))
    assert shown in passage.text


@pytest.mark.usefixtures("markitdown")
def test_no_text_of_a_slide_is_read_under_the_title_of_another(tmp_path: Path) -> None:
    slides = [
        "# Deck\nOurs.",
        "Old.\n# Prices\n\n### Notes:\n8 euros.",
        "From May: 9 euros.",
        "# ?\nEnd.",
    ]
    text = "\n".join(f"<!-- Slide number: {n} -->\n{slide}" for n, slide in enumerate(slides, 1))
    found = read(tmp_path, "a.pptx", zipped({"text": text}))
    assert found == [
        Passage("Deck", "Ours.", " slide 1"),
        Passage("Deck › Prices", "Old.", " slide 2"),
        Passage("Deck › Prices › Notes:", "8 euros.", " slide 2"),
        Passage("Deck › Slide 3", "From May: 9 euros.", " slide 3"),
        Passage("Deck › Slide 4", "# ?\nEnd.", " slide 4"),
    ]


@pytest.mark.usefixtures("markitdown")
def test_the_margins_of_a_word_document_are_read(tmp_path: Path) -> None:
    page = "<w:p><w:r><w:t>Page</w:t><w:tab/><w:t>1</w:t></w:r></w:p>"
    files = {
        "text": "<h1>Lease</h1><p>Ten rooms.</p>",
        "word/header1.xml": f"<?xml version='1.0'?><w:hdr>{page}<w:p><w:r><w:t>2</w:t></w:r></w:p></w:hdr>",
        "word/footer2.xml": f"<w:ftr>{page}<w:p><w:t>Valid un</w:t><w:t>til May</w:t></w:p></w:ftr>",
    }
    assert read(tmp_path, "a.docx", zipped(files)) == [
        Passage("Lease", "Ten rooms.", ""),
        Passage("Lease › Headers and footers", "Page 1\n\nValid until May", ""),
    ]


@pytest.mark.usefixtures("markitdown")
@pytest.mark.parametrize(
    ("name", "files"),
    [
        (
            "a.docx",
            {
                "word/comments.xml": "<w:comments><w:comment w:id='0'/></w:comments>",
                "word/commentsExtended.xml": "<w15:commentEx w15:done='0'/>",
            },
        ),
        ("a.pptx", {"ppt/comments/comment1.xml": "<p:cmLst><p:cm idx='1'/></p:cmLst>"}),
        ("a.xlsx", {}),
    ],
)
def test_comments_in_office_files_are_counted(
    tmp_path: Path, name: str, files: dict[str, str]
) -> None:
    data = zipped({"text": "Tea"} | files)
    if name == "a.xlsx":
        book, file = Workbook(), io.BytesIO()
        book.worksheets[0]["A1"] = "Tea"
        book.worksheets[0]["A1"].comment = Comment("Too hot", "Ana")
        book.save(file)
        data = file.getvalue()
    (passage,), note = all_of(tmp_path, name, data)
    assert ("Tea" in passage.text, note) == (True, "comments that were not read: 1")


@pytest.mark.parametrize(
    "text",
    [
        "Comments open with <!-- in HTML.\n\n## Next\n\nThirty days.",
        "Write \\<!-- to open.\n\n## Next\n\nThirty days.",
        "Inline <!-- opens.\n\n## Next\n\nThirty days.\n\n```mermaid\nA --> B\n```",
    ],
)
def test_the_sign_of_a_comment_within_a_text_hides_nothing(tmp_path: Path, text: str) -> None:
    for name in ("a.md", "a.eml", "a.html"):
        mail = "Subject: x\n\n" if name == "a.eml" else ""
        data = html.escape(text) if name == "a.html" else f"{mail}{text}"
        assert "Thirty days." in "\n".join(item.text for item in read(tmp_path, name, data))


def test_values_that_are_zero_or_false_are_kept(tmp_path: Path) -> None:
    record = {"plan": "Free", "price": 0, "sla": False, "ratio": 0.0, "note": None, "tags": []}
    (passage,) = read(tmp_path, "a.jsonl", json.dumps(record))
    assert passage.text == "plan: Free\nprice: 0\nsla: false\nratio: 0.0"


def test_comments_in_xml_hide_nothing_of_their_neighbours(tmp_path: Path) -> None:
    text = '<server><!-- shop --><name>Prod</name><port nr="80"/><script>run.sh</script></server>'
    (passage,) = read(tmp_path, "a.xml", text)
    assert passage.text.split("\n") == ["name: Prod", "port nr=80", "script: run.sh"]


def test_an_open_fence_ends_with_its_message_chapter_or_cell(tmp_path: Path) -> None:
    start = "From a@b Mon Jan  1 00:00:00 2024\n"
    mails = f"{start}Subject: One\n\nHot.\n~~~~~~~~\nAna\n\n{start}Subject: Two\n\nCold.\n"
    found = read(tmp_path, "a.mbox", mails)
    assert [(each.title, each.place) for each in found] == [
        ("a.mbox › One", " message 1"),
        ("a.mbox › Two", " message 2"),
    ]
    cells = [
        {"cell_type": "markdown", "source": source}
        for source in ("# Tea\nRun:\n```sh\nboil", "## Green\nTwo.\n\n```\n# no heading\n```")
    ]
    found = read(tmp_path, "a.ipynb", json.dumps({"cells": cells}))
    assert [(each.title, each.text) for each in found] == [
        ("Tea", "Run:\n```sh\nboil\n```"),
        ("Tea › Green", "Two.\n\n```\n# no heading\n```"),
    ]


@pytest.mark.parametrize(
    ("parts", "shown"),
    [
        ([("alternative", [("plain", " "), ("html", "<p>Steep it.</p>")])], ["Steep it."]),
        ([("plain", "Steep it."), ("html", "<p>Hot.</p>")], ["Steep it.", "Hot."]),
        ([("plain", "Steep it."), ("calendar", "SUMMARY:Tea")], ["Steep it.", "SUMMARY:Tea"]),
        ([("alternative", [("plain", "Steep it."), ("html", "<b>No</b>")])], ["Steep it."]),
        ([("alternative", [("plain", "Steep."), ("calendar", "UID:1 for tea")])], ["Steep."]),
        (
            [("alternative", [("plain", "See online."), ("html", "<p>Steep it.")])],
            ["See online.", "Steep it."],
        ),
        (
            [
                (
                    "alternative",
                    [("plain", "Steep the tea."), ("html", "<p>Steep the <b>tea</b>. Ana")],
                )
            ],
            ["Steep the tea."],
        ),
    ],
)
def test_every_text_of_a_mail_is_read_once(
    tmp_path: Path, parts: list[Any], shown: list[str]
) -> None:
    def part(kind: str, content: Any) -> MIMEBase:
        if isinstance(content, str):
            return MIMEText(content, kind)
        return MIMEMultipart(kind, _subparts=[part(*each) for each in content])

    mail = part("mixed", parts)
    mail["Subject"] = "Tea"
    (passage,) = read(tmp_path, "a.eml", mail.as_string())
    assert passage.text.split("\n\n") == ["Subject: Tea", *shown]


@pytest.mark.parametrize(
    ("kind", "body", "titles"),
    [
        ("plain", "Run\n\n# systemctl stop tea\n\nand wait.\n-- \nAnna", ["Tea"]),
        ("plain", "# of pots: 12\nPots\n====\n\nTwelve.\n---\n tea.c | 2 +-", ["Tea"]),
        ("plain", "Run\n\n```yaml\n# steep\n---\na: 1\n```", ["Tea"]),
        (
            "html",
            "<h2>Green</h2><p>Hot.<h2>Black</h2><p>Hot.",
            ["Tea", "Tea › Green", "Tea › Black"],
        ),
    ],
)
def test_only_html_gives_a_mail_headings(
    tmp_path: Path, kind: str, body: str, titles: list[str]
) -> None:
    mail = MIMEText(body, kind)
    mail["Subject"] = "Tea"
    found = read(tmp_path, "a.eml", mail.as_string())
    assert [each.title for each in found] == titles
    if kind == "plain":
        lines = found[0].text.removeprefix("Subject: Tea\n\n").split("\n")
        assert [line.strip() for line in lines] == [line.strip() for line in body.split("\n")]
        assert "```" not in body or found[0].text.endswith(body), "code is left as it is"


def test_the_reason_in_a_bounce_and_who_was_in_copy_are_read(tmp_path: Path) -> None:
    text = (
        "Cc: ana@x.example\nContent-Type: multipart/report; boundary=x\n\n--x\n\nNot sent.\n--x\n"
        "Content-Type: message/delivery-status\n\nReporting-MTA: dns; x.example\n\n"
        "Final-Recipient: rfc822; bob@x.example\nDiagnostic-Code: smtp; 552 full\n\n--x--\n"
    )
    (passage,) = read(tmp_path, "a.eml", text)
    assert passage.text.split("\n\n") == [
        "Cc: ana@x.example",
        "Not sent.",
        "Reporting-MTA: dns; x.example",
        "Final-Recipient: rfc822; bob@x.example\nDiagnostic-Code: smtp; 552 full",
    ]


@pytest.mark.parametrize(
    ("header", "shown", "note"),
    [
        ("To: a@", "To: a@\n\nBuy it.", ""),
        ("To: Bob <bob@x.example>,\n Ana <a@", "To: Bob <bob@x.example>, Ana <a@\n\nBuy it.", ""),
        ("From: =?utf-8?q?J=C3=A4n?= <jan>", "From: Jän <jan>\n\nBuy it.", ""),
        ('To: "=?utf-8?q?J=C3=A4n?=" <j@x.de>', "To: Jän <j@x.de>\n\nBuy it.", ""),
        ("To: undisclosed-recipients:;", "To: undisclosed-recipients:;\n\nBuy it.", ""),
        ('From: "', 'From: "\n\nBuy it.', ""),
        (f"Content-Type: text/html\n\n{'<div>' * 3_000}", "", "messages that cannot be read: 2"),
    ],
)
def test_a_malformed_message_costs_no_other(
    tmp_path: Path, header: str, shown: str, note: str
) -> None:
    start = "From a@b Mon Jan  1 00:00:00 2024\n"
    text = f"{start}Subject: One\n\nHot.\n\n{start}{header}\n\nBuy it.\n\n{start}Subject: Two\n\nCold.\n"
    found, notes = all_of(tmp_path, "a.mbox", text.encode())
    texts = ["Subject: One\n\nHot.", *filter(None, [shown]), "Subject: Two\n\nCold."]
    assert [each.text for each in found if each.text != "# Message"] == texts
    assert found[-1].place == " message 3"
    assert (note in notes, bool(notes)) == (True, bool(note))


def test_pictures_within_a_text_are_no_passages(tmp_path: Path) -> None:
    picture = "data:image/png;base64," + "iVBORw0KGgo" * 3_000
    found = read(tmp_path, "a.md", f"# Tea\n\nHot.\n\n![pot][1]\n\n[1]: <{picture}>\n")
    assert [each.text for each in found] == ["Hot.\n\n![pot][1]"]
    found = read(tmp_path, "b.json", json.dumps({"pot": picture, "hot": "yes, it is"}))
    assert [each.text for each in found] == ["pot:", "hot: yes, it is"]


def test_records_are_passages(tmp_path: Path):
    lines = [
        {"title": "Tea", "text": "About tea.", "year": 1},
        {"question": "Why?", "answer": "Because.", "votes": 2},
    ]
    expected = [
        Passage("Tea", "About tea.", ":1"),
        Passage("Why?", "question: Why?\nanswer: Because.\nvotes: 2", ":2"),
    ]
    text = "\n".join(json.dumps(line) for line in lines)
    assert read(tmp_path, "a.jsonl", text) == expected
    assert read(tmp_path, "a.csv", "title,text\nTea,About tea.\n") == [
        Passage("Tea", "About tea.", ":2")
    ]


def test_nested_values_in_records_are_read_without_their_escapes(tmp_path: Path) -> None:
    record = {
        "name": {"en": "Tea"},
        "lines": "Steep\nit.",
        "messages": [{"user": "Ana", "text": 'Bring:\n- "hot"\\cold pots\n- Grün'}],
        "tags": ["tea", 1, None],
    }
    (passage,) = read(tmp_path, "a.jsonl", json.dumps(record))
    assert passage.title == "en: Tea"
    assert passage.text.split("\n") == [
        *("name:", "  en: Tea", "lines: Steep", "it.", "messages:", "", "  -", "    user: Ana"),
        *("    text: Bring:", '        - "hot"\\cold pots', "        - Grün"),
        *("tags:", "  - tea", "  - 1", "  - null"),
    ]
    deep = f'{{"pots": {"[" * 800}"Grün"{"]" * 800}}}\n'
    assert "Grün" in "".join(each.text for each in read(tmp_path, "a.jsonl", deep))


def test_broken_records_are_named_and_the_others_given(tmp_path: Path):
    (tmp_path / "a.jsonl").write_text('{"text": "one"}\nbroken\n{"text": "two"}\n')
    reader = passages(tmp_path / "a.jsonl")
    assert [next(reader).text, next(reader).text] == ["one", "two"]
    with pytest.raises(Unreadable, match="1 of its records cannot be read, the first in line 2"):
        next(reader)


@pytest.mark.parametrize(
    ("rows", "read", "lost"),
    [
        ('Tea,"hot\nPot,blue\nCup,red\n', 0, 3),
        ('Tea,"hot\nPot,"blue"\nCup,red\n', 1, 2),
        ('Tea,"hot"!\nPot,"blue\ngreen"\n', 1, 1),
    ],
)
def test_all_lines_after_an_unclosed_quotation_mark_are_counted(
    tmp_path: Path, rows: str, read: int, lost: int
) -> None:
    found, note = all_of(tmp_path, "a.csv", f"name,note\n{rows}".encode())
    assert len(found) == read
    assert note.startswith(f"{lost} of its records cannot be read, the first in line 2")


def test_a_text_is_cut_at_its_best_places_and_never_in_a_word(tmp_path: Path):
    sentences = "".join(f"This is sentence number {n} of it. " for n in range(90))
    *items, _ = read(tmp_path, "a.txt", f"{'short ' * 80}{'y' * 600} {sentences}")
    assert {item.text[-1] for item in items} == {"t", "."}


def test_code_is_split_at_its_functions(tmp_path: Path):
    code = "".join(f"def f{n}():\n" + f"    x = {n}\n" * 30 + "\n\n" for n in range(9))
    found = read(tmp_path, "a.py", code)
    assert all(item.text.startswith("def ") for item in found)
    lines = code.splitlines()
    assert [lines[int(item.place[1:]) - 1] for item in found] == [
        item.text.splitlines()[0] for item in found
    ]


def test_the_first_line_of_a_passage_keeps_its_indentation(tmp_path: Path) -> None:
    lines = ["services:", *(f"      - port: {number}" for number in range(1000, 1100)), ""]
    first, *found = read(tmp_path, "compose.yaml", "\n".join(lines))
    assert first.text.startswith("services:\n")
    assert all(each.text.startswith("      - port: ") for each in found)
    assert "\n".join(each.text for each in [first, *found]) == "\n".join(lines[:-1])
    (found,) = read(tmp_path, "a.tex", "\\section{Tea}  Hot.\n")
    assert found.text == "Hot."


LINES = ["# Tea", "## Green", "Tea\n===", "```", "~~~", "---", "- a", "word " * 300, "x" * 1500, ""]
WRITING = st.lists(
    st.sampled_from(LINES) | st.text(max_size=60),
    max_size=12,
).map("\n".join)


@given(WRITING, st.sampled_from([".md", ".txt", ".rst", ".py"]))
def test_no_word_is_lost_and_places_are_right(
    tmp_path_factory: pytest.TempPathFactory, text: str, ending: str
):
    path = tmp_path_factory.getbasetemp() / f"any{ending}"
    path.write_bytes(text.encode(errors="replace"))
    if b"\0" in path.read_bytes():
        return
    written = clean(path.read_bytes().decode())
    found = list(passages(path))
    told = "".join(item.title + item.text for item in found)
    assert all(
        len(item.text) <= (MAX_FENCE if "```" in item.text or "~~~" in item.text else CHARACTERS)
        for item in found
    )
    for word in re.findall(r"\w+", written):
        assert word in told or len(word) > CHARACTERS
    if ending == ".txt":
        assert "".join("".join(item.text for item in found).split()) == "".join(written.split())
    lines = written.split("\n")
    for item in found:
        first, *below = item.text.split("\n")
        if not first.strip("`~") and below:
            first = below[0]  # a passage that goes on with code opens its fence again
        start = int(item.place[1:]) - 1
        assert first.strip() in "\n".join(lines[start : start + 2])


def zipped(files: dict[str, str]) -> bytes:
    stream = io.BytesIO()
    with ZipFile(stream, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return stream.getvalue()


def test_an_epub_gives_chapters_in_their_order(tmp_path: Path):
    chapters = {
        f"OEBPS/text/{name}.xhtml": f"<?xml version='1.0'?><html><body><h1>{title}</h1><p>{text}</p></body></html>"
        for name, title, text in (
            ("b two", "Black", "Four minutes."),
            ("a", "Green", "Two minutes."),
        )
    }
    package = (
        "<package><metadata><dc:title>All of tea</dc:title></metadata><manifest>"
        '<item id="x" href="text/a.xhtml"/><item id="y" href="text/b%20two.xhtml"/></manifest>'
        '<spine><itemref idref="x"/><itemref idref="y"/></spine></package>'
    )
    container = (
        '<container><rootfiles><rootfile full-path="OEBPS/all.opf"/></rootfiles></container>'
    )
    book = zipped({"META-INF/container.xml": container, "OEBPS/all.opf": package, **chapters})
    found = read(tmp_path, "tea.epub", book)
    assert found == [
        Passage("All of tea › Green", "Two minutes.", " chapter 1"),
        Passage("All of tea › Black", "Four minutes.", " chapter 2"),
    ]


def epub(*chapters: str) -> bytes:
    """An e-book of chapters."""
    numbers = range(len(chapters))
    items = "".join(f"<item id='c{number}' href='{number}.html'/>" for number in numbers)
    order = "".join(f"<itemref idref='c{number}'/>" for number in numbers)
    parts = {
        "META-INF/container.xml": "<rootfile full-path='all.opf'/>",
        "all.opf": f"<package><manifest>{items}</manifest><spine>{order}</spine></package>",
    }
    return zipped(parts | {f"{number}.html": text for number, text in enumerate(chapters)})


def workbook(*rows: Sequence[Any]) -> bytes:
    """A workbook with one sheet."""
    book, file = Workbook(), io.BytesIO()
    for row in rows:
        book.worksheets[0].append(row)
    book.save(file)
    return file.getvalue()


START = "From a@b Mon Jan  1 00:00:00 2024\n"


@pytest.mark.parametrize(
    ("parse", "data", "name"),
    [
        (mail.mbox, f"{START}To: a\n\nHot.\n\n{START}To: b\n\nCold.\n".encode(), "messages"),
        (book.epub, epub("<p>Hot.</p>", "<p>Cold.</p>"), "chapters"),
        (office.xlsx, workbook(["Hot."], ["Cold."]), "rows"),
        (pdf_parser.pdf, pdf("Hot.", "Cold."), "pages"),
    ],
    ids=["mbox", "epub", "xlsx", "pdf"],
)
def test_of_a_large_file_is_read_what_there_is_time_for(
    parse: Callable[..., Parsed], data: bytes, name: str
) -> None:
    _, parts, note = parse(data, seconds=-1)
    text = "".join(parts)
    assert ("Hot." in text, "Cold." in text) == (True, False)
    assert note == f"only its first 1 {name} were read"


def test_an_opendocument_text(tmp_path: Path):
    content = (
        "<office:text><text:h text:outline-level='1'>Tea</text:h><text:p>Steep <text:span>it"
        "</text:span>.</text:p><text:list><text:list-item><text:p>Hot</text:p></text:list-item>"
        "</text:list><table:table><table:table-row><table:table-cell><text:p>Green</text:p>"
        "</table:table-cell><table:table-cell><text:p>2 min</text:p></table:table-cell>"
        "</table:table-row></table:table></office:text>"
    )
    (found,) = read(tmp_path, "tea.odt", zipped({"content.xml": content}))
    assert (found.title, found.text) == ("Tea", "Steep it.\n\n- Hot\n\n| Green | 2 min |")


def test_the_cells_of_an_opendocument_table_keep_their_columns(tmp_path: Path) -> None:
    cell = "<table:table-cell {}><text:p>{}</text:p></table:table-cell>".format
    inner = f"<table:table><table:table-row>{cell('', 'Hot')}</table:table-row></table:table>"
    rows = [
        cell("table:number-rows-spanned='2'", "Tea")
        + cell("", "1")
        + f"<table:table-cell>{inner}</table:table-cell>",
        f"<table:covered-table-cell/>{cell('', 'Ice')}{cell('', 3)}",
        f"<table:table-cell table:number-columns-repeated='2'/>{cell('', 4)}",
    ]
    text = "".join(f"<table:table-row>{row}</table:table-row>" for row in rows)
    (found,) = read(
        tmp_path, "a.odt", zipped({"content.xml": f"<table:table>{text}</table:table>"})
    )
    assert found.text.split("\n\n") == ["| Tea | 1 | Hot |", "|  | Ice | 3 |", "|  |  | 4 |"]


def test_numbered_headings_of_an_opendocument_text_are_no_bullets(tmp_path: Path) -> None:
    heading = "<text:h text:outline-level='{0}'>{1}</text:h>"
    item = "<text:list><text:list-item>{}</text:list-item></text:list>".format
    content = (
        item(heading.format(1, "Tea"))
        + item(item(heading.format(2, "Green")))
        + item("<text:p>Hot</text:p>")
        + item(f"{heading.format(2, 'Pots')}<text:p>Two</text:p>")
    )
    (found,) = read(tmp_path, "tea.odt", zipped({"content.xml": content}))
    assert (found.title, found.text) == ("Tea › Green", "- Hot\n\n- Pots Two")


def test_rtf(tmp_path: Path):
    text = rb"{\rtf1\ansi\ansicpg1251{\fonttbl\f0 Arial;}\f0 \'d7\'e0\'e9 \b hot\b0\par Two.}"
    (found,) = read(tmp_path, "tea.rtf", text)
    assert found.text == "Чай hot\nTwo."


def test_deleted_text_of_rtf_is_not_read(tmp_path: Path) -> None:
    text = (
        rb"{\rtf1\ansi It costs {\deleted\revauthdel1 5 \{old\} pounds}{\revised 7 euros}"
        rb"\deleted , gross\deleted0 .\par}"
    )
    (found,) = read(tmp_path, "tea.rtf", text)
    assert found.text == "It costs 7 euros."


@pytest.mark.parametrize(
    ("aside", "note"),
    [
        (rb"{\footnote Old.}{\headerl New.}", "parts of it were not read: footnotes, headers"),
        (rb"\headery720\footery720 ", ""),
    ],
)
def test_asides_of_rtf_are_named(tmp_path: Path, aside: bytes, note: str) -> None:
    (found,), notes = all_of(tmp_path, "tea.rtf", rb"{\rtf1\ansi Two." + aside + rb"\par}")
    assert (found.text, notes) == ("Two.", note)


def test_quoted_words_of_a_manual_page_are_text(tmp_path: Path) -> None:
    page = (
        '.Dd May 1, 2024\n.Dt FOO 1\n.Sh ERRORS\n.ds pN foo \\" its name\n'
        '.It Er 2 Em "No such file or directory"\n.It Fl Ns Ar signum\nRun \\*(pN again.\n'
    )
    text = "\n".join(passage.text for passage in read(tmp_path, "foo.1", page))
    for words in ("No such file or directory", "-signum", "Run foo again."):
        assert words in text


def test_steps_with_links_in_a_folded_panel_are_no_menu(tmp_path: Path) -> None:
    page = (
        "<main><h1>Help</h1><p>Ask us.</p><div role=tabpanel hidden>\n  <ol>\n"
        "    <li>Open <a href='/s'>Settings</a></li>\n"
        "    <li>Choose <a href='/n'>Network</a></li>\n  </ol>\n</div></main>"
    )
    assert "Choose Network" in read(tmp_path, "help.html", page)[0].text


@pytest.mark.parametrize(
    ("name", "text", "shown"),
    [
        ("a.mdx", '<Faq question="Who\'s in?">\n  All.\n</Faq>', "Who's in? All."),
        ("a.mdx", "<Tab title='Say \"hi\"'>\n  All.\n</Tab>", 'Say "hi" All.'),
        ("a.mdx", '<Tab title={"Hot"} class="big">\n  All.\n</Tab>', "Hot All."),
        ("a.md", 'A {{< term id="kubelet" >}} runs.', "A kubelet runs."),
        ("a.md", 'Tea. {{< figure src="/tea/pot.png" >}}', "Tea."),
        ("a.md", 'A {{< term text="pod" id="pods" >}} runs.', "A pod runs."),
    ],
)
def test_what_a_component_says_is_read_with_its_apostrophes(
    tmp_path: Path, name: str, text: str, shown: str
) -> None:
    found = " ".join(each.text for each in read(tmp_path, name, text))
    assert " ".join(found.split()) == shown


def test_a_fence_that_ends_with_a_blank_is_closed_once(tmp_path: Path) -> None:
    [found] = read(tmp_path, "a.md", "# Tea\n\n```py\nx\n``` \n")
    assert found.text == "```py\nx\n```"


def test_a_long_table_is_split_between_rows(tmp_path: Path) -> None:
    head = "| Option | Meaning |\n|---|---|\n"
    rows = [f"| {name} | {'It is hot. ' * length}|\n" for name, length in (("a", 38), ("b", 55))]
    found = read(tmp_path, "a.md", f"# Tea\n\n{head}{rows[0]}{rows[1]}")
    assert [each.text for each in found] == [head + row.rstrip() for row in rows]


def test_front_matter_ends_with_dots_and_swallows_no_headings(tmp_path: Path) -> None:
    text = "---\ntitle: Assembly\n...\n\n# Begin\n\nText.\n\n---\n\n# End\n\nText.\n"
    assert [each.title for each in read(tmp_path, "a.md", text)] == [
        "Assembly",
        "Assembly › Begin",
        "Assembly › End",
    ]
    chat = "---\nNote: a chat\n\n# Begin\n\nText.\n\n---\n\n# End\n\nText.\n"
    titles = [each.title for each in read(tmp_path, "a.md", chat)]
    assert [title.rpartition(" › ")[2] for title in titles][-2:] == ["Begin", "End"]
    fields = "---\ntitle: Tea\ntext: |\n  #general is a channel\n# a comment\nby: Ana\n---\nHot.\n"
    found = " ".join(each.text for each in read(tmp_path, "a.md", fields))
    assert "#general is a channel" in found
    assert "a comment" not in found


def test_signs_in_a_manual_page_are_shown_or_named(tmp_path: Path) -> None:
    page = (
        ".TH A 2\n.ds R read  \\\" a comment\nIt is \\(mi1 within 5 \\(mcs, by Ren\\('e and "
        "Ren[\\(zz], \\s10not\\s0 \\*Ring.\n"
    )
    [found] = read(tmp_path, "a.2", page)
    assert found.text == "It is -1 within 5 \u00b5s, by Ren\u00e9 and Ren[[zz]], not reading."


def test_a_bsd_page_names_its_program_and_shows_what_is_optional(tmp_path: Path) -> None:
    page = ".Sh NAME\n.Nm cp\n.Sh SYNOPSIS\n.Nm\n.Op Fl f\n.Ar\n.Sh USE\nThe\n.Nm\ntool.\n"
    found = [" ".join(each.text.split()) for each in read(tmp_path, "cp.1", page)]
    assert found == ["cp", "cp [-f] file ...", "The cp tool."]


def test_an_rfc_without_pages_has_headings(tmp_path: Path) -> None:
    text = (
        "Request for Comments: 9999\n\n1.  Begin\n\n   Hot.\n\n1.1.  Tea\n\n   Two.\n\n"
        "Appendix A.  Notes\n\n   More.\n\nAcknowledgements\n\n   Ana.\n"
    )
    titles = [each.title.removeprefix("a.txt › ") for each in read(tmp_path, "a.txt", text)]
    assert titles[-4:] == ["Begin", "Begin › Tea", "Notes", "Acknowledgements"]
    assert {each.title for each in read(tmp_path, "b.txt", "Index\n\n1.  Begin\n\nHot.")} == {
        "b.txt"
    }


def test_a_latex_title_has_braces_in_braces(tmp_path: Path) -> None:
    text = "\\section{Bounds for \\texorpdfstring{$\\mathcal{O}(n)$}{O(n)}}\nText.\n"
    [found] = read(tmp_path, "a.tex", text)
    assert found.text == "Text."
    assert "O(n)" in found.title


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            "% It is 5 mg.\nIt is 7 mg. % or 5?\n\n% \\section{Old}\nSteep it.",
            "It is 7 mg. Steep it.",
        ),
        ("It is 50\\% \\\\% or 40\nof it.", "It is 50\\% \\\\ of it."),
        (
            "See \\url{https://x/a%20b} and \\verb|a%b|.",
            "See \\url{https://x/a%20b} and \\verb|a%b|.",
        ),
        (
            "\\begin{lstlisting}\na = b % c\n\\end{lstlisting} % x",
            "\\begin{lstlisting} a = b % c \\end{lstlisting}",
        ),
    ],
)
def test_comments_in_latex_are_no_text(tmp_path: Path, text: str, shown: str) -> None:
    (found,) = read(tmp_path, "a.tex", text)
    assert " ".join(found.text.split()) == shown


def test_fields_of_rst_and_short_underlines(tmp_path: Path) -> None:
    text = ":orphan:\n\n:Authors:\n    - Ana\n\nGreen tea\n=======\n\nHot.\n\nA long line\n---\n"
    found = read(tmp_path, "a.rst", text)
    assert [(each.title, each.text) for each in found] == [
        ("a.rst", ":Authors:\n    - Ana"),
        ("a.rst › Green tea", "Hot.\n\nA long line\n---"),
    ]


def test_a_heading_keeps_signs_that_are_no_emphasis(tmp_path: Path) -> None:
    text = "## Screen 1920*1080\n\nA.\n\n## count(*)\n\nB.\n\n## **Hot** *tea*\n\nC.\n"
    titles = [each.title.partition(" › ")[2] for each in read(tmp_path, "a.md", text)]
    assert titles == ["Screen 1920*1080", "count(*)", "Hot tea"]


def test_a_heading_that_repeats_one_far_above_is_shown(tmp_path: Path) -> None:
    [found] = read(tmp_path, "a.md", "# API\n\n## Users\n\n### API\n\nText.\n")
    assert found.title == "API › Users › API"


def test_the_title_of_a_record_is_read_whole(tmp_path: Path) -> None:
    question = "Why is it hot? " * 30
    file = tmp_path / "a.jsonl"
    file.write_text(json.dumps({"title": question, "text": "It is new."}))
    found = " ".join(each.text for each in passages(file))
    assert found.count("Why is it hot?") == 30
    assert "It is new." in found


KANA = "お茶は熱いです。" * 20


@pytest.mark.parametrize(
    ("name", "data", "note"),
    [
        (
            "a.html",
            f"<meta charset=Shift_JIS><p>{KANA}".encode("cp932") + b"\x83</p>",
            "1 bytes of it are not cp932",
        ),
        (
            "a.html",
            "<meta charset=UTF-16><p>Café, très chaud, déjà vu</p>".encode("cp1252"),
            "it is not UTF-8; it was read as cp1252",
        ),
        ("a.txt", b"\xef\xbb\xbfTea\nM\xfcller", "1 bytes of it are not UTF-8"),
        ("a.html", f"<meta charset=windows-31j><p>{KANA}</p>".encode("cp932"), ""),
    ],
    ids=["one byte", "not UTF-16", "byte-order mark", "label"],
)
def test_a_declared_encoding_is_used_although_a_byte_is_wrong(
    tmp_path: Path, name: str, data: bytes, note: str
) -> None:
    file = tmp_path / name
    file.write_bytes(data)
    content = read_content(file)
    assert content.cut == note
    assert any(text in content.text for text in (KANA, "Café, très", "M\ufffdller"))


@pytest.mark.parametrize("start", ["", "a"])
def test_a_long_text_of_two_bytes_a_letter_is_not_cut_within_one(
    tmp_path: Path, start: str
) -> None:
    file = tmp_path / "a.txt"
    line = "日本語の文章はここにあります。私は毎日お茶を飲みます。"
    file.write_bytes(f"{start}{line}\n".encode("cp932") * 3000)
    assert line in read_content(file).text


def test_a_letter_after_the_sample_is_read_in_the_most_common_encoding(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    names = "Muñoz – Hélène – Søren"  # which differ in the encodings that share all of the German
    lines = [f"Zeile {number}: {GERMAN}\n" for number in range(3000)]
    file.write_bytes("".join([*lines, names]).encode("cp1252"))
    assert names in read_content(file).text


def texts_of(folder: Path, name: str, data: str | bytes) -> list[str]:
    return [each.text for each in read(folder, name, data)]


@pytest.mark.parametrize(
    ("markup", "shown"),
    [
        (
            "<p>At most <math><semantics><mn>100</mn><annotation>100</annotation></semantics></math>"
            " pots.</p>",
            "At most 100 pots.",
        ),
        ("<math><msqrt><mi>x</mi><mo>+</mo><mn>1</mn></msqrt></math>", "√(x+1)"),
        ("<math><msubsup><mi>x</mi><mn>1</mn><mn>2</mn></msubsup></math>", "x_1^2"),
        ("<i aria-hidden=true>★★</i><span class=sr-only>2 of 5</span> Hot.", "2 of 5 Hot."),
        ("<i aria-hidden=true></i><span class=sr-only>Menu</span> Hot.", "Hot."),
        ("<p># of pots: 12</p><p>```</p>", "\\# of pots: 12\n\n\\```"),
        ("<p>It is <![if !supportLists]><span>1.</span><![endif]> Hot.", "It is 1. Hot."),
        ("<p>&lt;script&gt;</p><h2>Tea</h2>", "\\<script>"),
        (
            "<table><tr><td>Menu<td><h3>Tea</h3><pre>if hot:\n    pour()</pre></table>",
            "```\nif hot:\n    pour()\n```",
        ),
    ],
)
def test_what_html_shows_is_text(tmp_path: Path, markup: str, shown: str) -> None:
    assert shown in "\n\n".join(texts_of(tmp_path, "a.html", markup))


def test_code_in_a_definition_is_a_fence_that_is_closed_in_each_passage(tmp_path: Path) -> None:
    code = "\n".join(f"call({number})" for number in range(600))
    page = f"<dl><dt>pour()</dt><dd><p>Pours.</p><pre>{code}</pre></dd></dl>"
    found = texts_of(tmp_path, "a.html", page)
    assert len(found) > 3
    assert all(text.count("```") == 2 for text in found)


@pytest.mark.parametrize(
    ("document", "shown"),
    [
        (
            "<book><chapter><title>Tea</title><programlisting>if hot:\n    # now\n    pour()"
            "</programlisting></chapter></book>",
            "```\nif hot:\n    # now\n    pour()\n```",
        ),
        ('<rfc><section title="Tea"><t hangText="TTL:">Time.</t></section></rfc>', "TTL: Time."),
        ('<rfc><t>See <xref target="RFC9110" section="8.3"/>.</t></rfc>', "RFC9110 section 8.3"),
        ('<book><para>See <xref linkend="hot"/>.</para></book>', "See hot."),
        (
            "<article><p>Doses:</p><table><thead><tr><th>Drug</th><th>Adults</th><th>Children</th></tr>"
            "</thead><tbody><tr><td>A</td><td/><td><p>5 mg</p><p>daily</p></td></tr><tr><td>B</td>"
            "<td>3 mg</td><td/></tr></tbody></table></article>",
            "| Drug | Adults | Children |\n| --- | --- | --- |\n| A |  | 5 mg daily |\n| B | 3 mg |  |",
        ),
        (
            "<book><para>Pots:</para><informaltable><tgroup><tbody><row><entry morerows='1'>Tea</entry>"
            "<entry>1</entry></row><row><entry>12</entry></row><row><entry namest='c1' nameend='c2'>"
            "Ice</entry></row></tbody></tgroup></informaltable></book>",
            "| Tea | 1 |\n| --- | --- |\n| Tea | 12 |\n| Ice |  |",
        ),
        (
            "<book><para>Pots:</para><informaltable><tgroup><tbody><row><entry>Run</entry><entry>"
            "<programlisting>if hot:\n    pour()</programlisting></entry></row></tbody></tgroup>"
            "</informaltable></book>",
            "```\nif hot:\n    pour()\n```",
        ),
        (
            "<p><alternatives><tex-math>$100$</tex-math><math><mn>100</mn></math></alternatives></p>",
            "100",
        ),
        ('<beans><bean class="com.Foo">x</bean></beans>', "bean class=com.Foo: x"),
        ("<templates><template><name>Linux</name></template></templates>", "name: Linux"),
    ],
)
def test_what_xml_says_is_text(tmp_path: Path, document: str, shown: str) -> None:
    found = "\n\n".join(texts_of(tmp_path, "a.xml", f"<?xml version='1.0'?>{document}"))
    assert shown in found
    assert "$" not in found


@pytest.mark.parametrize(
    "document",
    [
        '<rfc><section title="Tea"><t>Hot.</t></section></rfc>',
        "<book><sect1><title>Tea</title><para>Hot.</para></sect1></book>",
        "<book><section><info><title>Tea</title></info><para>Hot.</para></section></book>",
        "<topic><title>Tea</title><p>Hot.</p></topic>",
        "<topic><title><b>Tea</b></title><p>Hot.</p></topic>",
        "<book><title><![CDATA[Tea]]></title><para>Hot.</para></book>",
    ],
)
def test_titles_of_sections_in_xml_are_headings(tmp_path: Path, document: str) -> None:
    [found] = read(tmp_path, "a.xml", f"<?xml version='1.0'?>{document}")
    assert (found.title.rpartition(" › ")[2], found.text) == ("Tea", "Hot.")


def test_all_pages_in_the_frames_of_a_saved_page_are_read(tmp_path: Path) -> None:
    parts = ["<frameset><frame></frameset>", "<p>Sheet one.</p>", "<p>Sheet two.</p>"]
    message = MIMEMultipart("related")
    for part in parts:
        message.attach(MIMEText(part, "html"))
    found = " ".join(texts_of(tmp_path, "a.mht", message.as_bytes()))
    assert "Sheet one." in found
    assert "Sheet two." in found


def test_a_heading_in_a_mail_stands_below_its_subject(tmp_path: Path) -> None:
    start = "From a@b Mon Jan  1 00:00:00 2024\nReturn-Path:<a@b>\nSubject: {}\n"
    mail = start.format("One") + "Content-Type: text/html\n\n<h1>Sale</h1><p>Hot.</p>\n\n"
    found = read(tmp_path, "a.mbox", mail + start.format("Two") + "\nCold.\n")
    assert [(each.title, each.text.splitlines()[-1]) for each in found][-2:] == [
        ("a.mbox › One › Sale", "Hot."),
        ("a.mbox › Two", "Cold."),
    ]


def test_lists_and_lines_of_an_opendocument_text(tmp_path: Path) -> None:
    inner = "<text:list><text:list-item><text:p>Run it</text:p></text:list-item></text:list>"
    content = (
        f"<text:list><text:list-item><text:p>Install</text:p>{inner}</text:list-item></text:list>"
        "<text:p>one<text:line-break/>two\n three</text:p><text:p># no title</text:p>"
        "<table:table><table:table-row><table:table-cell><text:p>a|b</text:p></table:table-cell>"
        "</table:table-row></table:table>"
    )
    [found] = texts_of(tmp_path, "a.odt", zipped({"content.xml": content}))
    assert found == "- Install\n\n  - Run it\n\none\ntwo three\n\n\\# no title\n\n| a\\|b |"


def test_comments_of_rtf_are_named(tmp_path: Path) -> None:
    file = tmp_path / "a.rtf"
    file.write_bytes(rb"{\rtf1 A.{\shp{\*\shpinst{\shptxt Boxed.\par}}}{\*\annotation No!}\par}")
    assert read_content(file).cut == "parts of it were not read: comments, text boxes"


@pytest.mark.parametrize(
    ("name", "text", "shown"),
    [
        (
            "a.xml",
            "<schema><annotation><documentation>Why.</documentation></annotation></schema>",
            "Why.",
        ),
        (
            "a.xml",
            "<snippet><author>Bob</author><code>if x:\n    y</code></snippet>",
            "author: Bob",
        ),
        (
            "a.xml",
            "<book><para>At <literal>max\n    rows</literal> it ends.</para></book>",
            "At max",
        ),
        ("a.1", ".TH A 1\nSee \\(lahttps://x\\(ra of \\s-11024\\s0.\n", "See <https://x> of 1024."),
        ("a.html", "<p><b>&lt;script&gt;</b>, use <i>&lt;script&gt;</i></p>", "use *<script>*"),
        (
            "a.html",
            "<table><tr><td><h4>Name</h4><td><h4>Price</h4><tr><td>Tea<td>2</table>",
            "| Tea | 2 |",
        ),
        (
            "a.html",
            "<h2>In<i aria-hidden=true><svg></svg></i><b class=sr-only>Link</b></h2>Hot.",
            "Hot.",
        ),
        ("a.md", 'Tea.\n\n{{< figure src="tea.png" class="big" >}}', "Tea."),
        ("a.txt", "Tea\x0b\x0bHot", "Tea Hot"),
    ],
)
def test_what_only_resembles_markup_for_machines_is_read(
    tmp_path: Path, name: str, text: str, shown: str
) -> None:
    start = "<?xml version='1.0'?>" if name == "a.xml" else ""
    found = "\n\n".join(texts_of(tmp_path, name, start + text))
    assert shown in found
    assert "png" not in found


def test_records_in_xml_do_not_stand_under_the_title_of_others(tmp_path: Path) -> None:
    items = '<items><item title="Green" price="2"/><item title="Black" price="3"/></items>'
    [found] = read(tmp_path, "a.xml", f"<?xml version='1.0'?>{items}")
    assert found.title == "a.xml"
    assert "title=Black" in found.text


def test_a_comment_in_front_matter_is_no_heading(tmp_path: Path) -> None:
    text = "---\nby: Ana\n\n# SEO\n\ntitle: About tea\n---\n\nHot.\n"
    assert {each.title for each in read(tmp_path, "a.md", text)} == {"About tea"}


def test_a_heading_keeps_escaped_asterisks(tmp_path: Path) -> None:
    text = "## run(\\*args, \\*\\*kwargs)\n\nIt runs.\n\n## **new *shiny* API**\n\nHot.\n"
    titles = [each.title.partition(" › ")[2] for each in read(tmp_path, "a.md", text)]
    assert titles == ["run(*args, **kwargs)", "new shiny API"]


def test_a_text_in_another_encoding_than_declared_is_still_read(tmp_path: Path) -> None:
    file = tmp_path / "a.html"
    line = "日本語の文章はここにあります。私は毎日お茶を飲みます。"
    file.write_bytes(f"<meta charset=Shift_JIS><p>{line * 9}</p>".encode("euc_jp"))
    assert line in read_content(file).text
