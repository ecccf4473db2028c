"""Sections of a prompt; tests/security/test_section_tags.py has what forges their tags."""

from stepcraft.text.sections import Section, parse, written


def test_only_tags_of_the_same_prompt_are_neutralised() -> None:
    prompt = written([Section("part", "1", "use `<conversation>` and `</part>`")])
    assert "`<conversation>` and `<\u00b7/part>`" in prompt


def test_sections_are_parsed_in_order() -> None:
    goal, passage = Section("goal", "", "a\nb"), Section("passage", "7", "")
    prompt = f"{written([goal])}\n\n<text>\nunclosed\n\n{written([passage])}\n\nc"
    assert list(parse(prompt)) == [goal, passage]
