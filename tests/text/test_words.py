"""The words of texts in any language, as indexes store them and searches look for them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepcraft.text.words import MAX_WORDS, query_words, stored_words


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Crème BRÛLÉE", "creme brulee"),
        ("ＡＰＩ の ﾊﾞｰｼﾞｮﾝ ①", "API の バージョン 1"),
        ("Straße, Łódź, smørrebrød, œuf", "STRASSE lodz smorrebrod oeuf"),
        ("İstanbul ISPARTA", "istanbul ısparta"),
        ("n\u00adlich soft\u200bware", "nlich software"),
        ("ما\u0621ء كتـــاب آب ٱلله", "ماءء كتاب اب الله"),
        ("می\u200cخواهم کتاب ۱۲", "ميخواهم كتاب 12"),
        ("क़लम ९", "कलम 9"),
        ("นํ้า", "น้ำ"),
        ("п'ять п’ять пʼять", "п ять п ять п ять"),
        ("❤️ love", "love"),
    ],
)
def test_what_readers_take_for_equal_gives_equal_words(one: str, other: str):
    assert query_words(one) == query_words(other)
    assert stored_words(one) == stored_words(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [("й", "и"), ("їм", "ім"), ("ขา", "ข้า"), ("が", "か"), ("কি", "কী"), ("l1", "l2")],
)
def test_other_letters_and_tones_give_other_words(one: str, other: str):
    assert set(query_words(one)).isdisjoint(query_words(other))


@pytest.mark.parametrize(
    ("word", "part"),
    [
        ("Donaudampfschifffahrtsgesellschaft", "Dampf"),
        ("Donaudampfschifffahrtsgesellschaft", "Schifffahrt"),
        ("Kraftfahrzeughaftpflichtversicherungen", "Haftpflicht"),
        ("Kraftfahrzeughaftpflichtversicherungen", "Versicherung"),
        ("Arbeitsunfähigkeitsbescheinigung", "Arbeit"),
        ("Wohnungsübergabeprotokoll", "Übergabe"),
        ("Sonnenschein", "Sonne"),
        ("Zahnarzt", "Arzt"),
        ("Türschloss", "Schloss"),
        ("Straßenbahn", "Bahn"),
        ("Topfpflanze", "Pflanze"),
        ("verzekeringsmaatschappij", "verzekering"),
        ("sjukförsäkring", "försäkring"),
        ("tietokoneohjelma", "ohjelma"),
    ],
)
def test_a_compound_is_found_by_its_parts(word: str, part: str):
    [wanted] = query_words(part)
    assert wanted in stored_words(word).parts.split()


def test_an_english_text_has_no_parts():
    text = "How to understand the configuration: read what this documentation says about all of it"
    assert stored_words(text).parts == ""
    assert stored_words("Haftpflicht").parts, "an ASCII text in another language has them"


@given(st.text(max_size=200))
def test_every_text_is_found_by_its_own_words(text: str):
    words = query_words(text)
    assert set(words) <= set(stored_words(text).words.split())
    assert len(words) <= MAX_WORDS


@given(st.text(alphabet="蛋鸡番茄炒ひらがなカナ한국어ไทยลาว", min_size=2, max_size=20), st.data())
def test_any_two_characters_in_a_row_are_found(text: str, data: st.DataObject):
    start = data.draw(st.integers(0, len(text) - 2))
    assert query_words(text[start : start + 2])[0] in stored_words(text).words.split()
