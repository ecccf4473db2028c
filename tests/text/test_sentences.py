"""The sentences of passages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepcraft.text.clean import clean
from stepcraft.text.sentences import LONGEST, passage_sentences

ANY = st.text(st.characters())
PROSE = st.lists(
    st.sampled_from(
        ['"', "\u201c", "\u201d", ". ", "! ", "He", "a b c", "\n", "```", "\u3002", "3.5 "]
    )
).map("".join)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # abbreviations and initials
        ("Dr. Smith met Lt. Gen. Hale vs. Brook. Nobody saw them.", ["Dr. Smith met Lt. Gen. Hale vs. Brook.", "Nobody saw them."]),
        ("See St. Paul's, No. 5, on Jan. 3. Then go home.", ["See St. Paul's, No. 5, on Jan. 3.", "Then go home."]),
        ("The U.S. Senate met. It met at 5 p.m. in D.C. on a Monday.", ["The U.S. Senate met.", "It met at 5 p.m. in D.C. on a Monday."]),
        ("He lives in the U.S. He likes it there.", ["He lives in the U.S.", "He likes it there."]),
        ("J. R. R. Marsh wrote it. Acme Inc. sold it all.", ["J. R. R. Marsh wrote it.", "Acme Inc. sold it all."]),
        ("Ö. von Lindal wrote plays. He fled from the city.", ["Ö. von Lindal wrote plays.", "He fled from the city."]),
        ("А. С. Лесной родился в Москве. Он писал стихи о море.", ["А. С. Лесной родился в Москве.", "Он писал стихи о море."]),
        ("Apple Inc. CEO Ann Bell spoke. The end was near.", ["Apple Inc. CEO Ann Bell spoke.", "The end was near."]),
        ("He came at 5 p.m. Bob had left by then.", ["He came at 5 p.m.", "Bob had left by then."]),
        ("He lives in Main St. He is quite old.", ["He lives in Main St.", "He is quite old."]),
        ("Bake it at 180 °C. Let it rest now.", ["Bake it at 180 °C.", "Let it rest now."]),
        ("It has vitamin C. Vitamin D is absent.", ["It has vitamin C.", "Vitamin D is absent."]),
        ("It took about 30 ms. Nobody saw it.", ["It took about 30 ms.", "Nobody saw it."]),
        ("In 1987 J. Marsh left. He came back.", ["In 1987 J. Marsh left.", "He came back."]),
        ("It runs on iOS. iPhones have it too.", ["It runs on iOS.", "iPhones have it too."]),
        ("It is a library. pandas has it too.", ["It is a library.", "pandas has it too."]),
        ("Frist: 01. 12. 2024. 2025 kam er.", ["Frist: 01. 12. 2024.", "2025 kam er."]),
        ("Es sind 12. 3. Platz 2024.", ["Es sind 12.", "3. Platz 2024."]),
        ("Am 12. März z. B. Bern, d. h. im 1. Stock. Er kam an.", ["Am 12. März z. B. Bern, d. h. im 1. Stock.", "Er kam an."]),
        ("Art. 5 Abs. 2 gilt um 44 v. Chr. nicht. Er ist gut so.", ["Art. 5 Abs. 2 gilt um 44 v. Chr. nicht.", "Er ist gut so."]),
        ("Voir p. ex. Paris avec M. Dupont. Il va bien.", ["Voir p. ex. Paris avec M. Dupont.", "Il va bien."]),
        ("En EE. UU. el Sr. Vega, pág. 5. Se fue ya.", ["En EE. UU. el Sr. Vega, pág. 5.", "Se fue ya."]),
        ("他说是吗?我说是的!对不对呢?", ["他说是吗?", "我说是的!", "对不对呢?"]),
        ("Gem. § 5 Abs. 3 S. 2 BGB kam Dr. med. Berg. Er war da.", ["Gem. § 5 Abs. 3 S. 2 BGB kam Dr. med. Berg.", "Er war da."]),
        ("Er zahlt 5 Mio. Euro usw. Dann ging er weg.", ["Er zahlt 5 Mio. Euro usw.", "Dann ging er weg."]),
        ("Take 5 mg (max. 4 g a day), min. 2 h apart. It costs Rs. 500 now.", ["Take 5 mg (max. 4 g a day), min. 2 h apart.", "It costs Rs. 500 now."]),
        ("Bake for 20 min. 2 loaves fit. It uses 5 GB max. 3 users share it.", ["Bake for 20 min.", "2 loaves fit.", "It uses 5 GB max.", "3 users share it."]),
        ("It costs 500 Rs. 20 people paid. Keep that in mind. 3 users left.", ["It costs 500 Rs.", "20 people paid.", "Keep that in mind.", "3 users left."]),
        ("Es sind mind. 3 und max. 9 Monate. Tel. 030 1234 gilt.", ["Es sind mind. 3 und max. 9 Monate.", "Tel. 030 1234 gilt."]),
        ("La legge n. 241 fissa 30 giorni. Zgodnie z art. 5 ust. 2 jest 14 dni.", ["La legge n. 241 fissa 30 giorni.", "Zgodnie z art. 5 ust. 2 jest 14 dni."]),
        ("Podle zákona č. 89 odst. 2 je to tak. Termin jest w poz. 7 ustawy.", ["Podle zákona č. 89 odst. 2 je to tak.", "Termin jest w poz. 7 ustawy."]),
        ("Лимит 100 в минуту, т.е. 6000 в час. Это из п. 2 ст. 15 закона.", ["Лимит 100 в минуту, т.е. 6000 в час.", "Это из п. 2 ст. 15 закона."]),
        # decimals and versions
        ("They took 3.5 g. Nobody saw v1.2.3 there.", ["They took 3.5 g.", "Nobody saw v1.2.3 there."]),
        # quotations
        ('He said "Go now." Then he left.', ['He said "Go now."', "Then he left."]),
        # lists and headings
        ("1. Mix the eggs.\n2. Bake the cake", ["1. Mix the eggs.", "2. Bake the cake"]),
        ("A. Use the first one.\nB. Use the second one.", ["A. Use the first one.", "B. Use the second one."]),
        ("History\nIt was founded in 1900. It grew fast.", ["History It was founded in 1900.", "It grew fast."]),
        # Chinese and Japanese
        ("它运行了很久。你喜欢它吗？我很喜欢它！", ["它运行了很久。", "你喜欢它吗？", "我很喜欢它！"]),
        ("他说：“走吧。”然后他离开了。", ["他说：“走吧。”", "然后他离开了。"]),
        ("好。它运行了很久。", ["好。它运行了很久。"]),
        # Hindi, Urdu, Arabic, Armenian and Amharic
        ("यह बहुत पुराना पुल है। इसे फिर से बनाया गया॥ यह आज भी है।", ["यह बहुत पुराना पुल है।", "इसे फिर से बनाया गया॥", "यह आज भी है।"]),
        ("یہ پل بہت پرانا ہے۔ اسے دوبارہ بنایا گیا۔", ["یہ پل بہت پرانا ہے۔", "اسے دوبارہ بنایا گیا۔"]),
        ("متى بني هذا الجسر؟ بني في القرن السادس عشر.", ["متى بني هذا الجسر؟", "بني في القرن السادس عشر."]),
        ("Կամուրջը շատ հին է։ Այն վերակառուցվել է նորից։", ["Կամուրջը շատ հին է։", "Այն վերակառուցվել է նորից։"]),
        ("ድልድዩ በጣም አሮጌ ነው። እንደገና ተገንብቷል ዛሬም አለ።", ["ድልድዩ በጣም አሮጌ ነው።", "እንደገና ተገንብቷል ዛሬም አለ።"]),
        # code
        ("Call `a. B` and `x.y.z` now. Wait for it.", ["Call `a. B` and `x.y.z` now.", "Wait for it."]),
        ("Press the ` key once.\n\nThen wait for it. It starts again.", ["Press the ` key once.", "Then wait for it.", "It starts again."]),
        ("Run this code:\n```py\nx = 1\n\n\ny = a. b\n```\nThen stop it all.", ["Run this code:", "```py\nx = 1\n\n\ny = a. b\n```", "Then stop it all."]),
        ("Run:\n```py\nx = 1\n```\nThen stop it all.", ["Run:\n```py\nx = 1\n```", "Then stop it all."]),
        ("```\nnever closed. It ends", ["```\nnever closed. It ends"]),
        # fragments
        ("It works well. Really? Yes. So it does.", ["It works well. Really? Yes.", "So it does."]),
        ("A line that\nis broken here. And more of it.", ["A line that is broken here.", "And more of it."]),
        ("Mix the four eggs.\n\nMore", ["Mix the four eggs. More"]),
        ("Yes.", ["Yes."]),
        ("\ufeff\x00", []),
    ],
)  # fmt: skip
def test_passage_sentences(text: str, expected: list[str]) -> None:
    assert passage_sentences(text) == expected


@given(ANY | PROSE)
def test_nothing_is_lost(text: str) -> None:
    assert "".join("".join(passage_sentences(text)).split()) == "".join(clean(text).split())


@pytest.mark.parametrize("letter", ["a", "word ", "中", "a.", '"', "1 "])
def test_a_sentence_of_100_000_characters_is_split(letter: str) -> None:
    text = (letter * 100_000)[:100_000]
    found = passage_sentences(text)
    assert max(map(len, found)) <= LONGEST
    assert "".join("".join(found).split()) == "".join(text.split())
