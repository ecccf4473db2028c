"""The marks around what the writer of a draft doubts."""

import pytest

from stepcraft_papers.markers import without_markers


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[[ Add salt. ]]", "Add salt."),
        ("1. [[Boil]] it [[ twice ]].", "1. Boil it twice."),
        ("[[ a ]]\n   [[ b ]]", "a\n   b"),
        ("混合[[可能]]。", "混合可能。"),
        ("[[2 eggs]] ([[or three]])", "2 eggs (or three)"),
        ("[[a[0]]]", "a[0]"),
        ("[[over\ntwo lines]]", "over\ntwo lines"),
        ("[\u202e[ hidden ]\x00]", "hidden"),
        ("a  b [0]", "a  b [0]"),
        ('df[["a", "b"]]', 'df[["a", "b"]]'),
        ("Run `if [[ -f x ]]; then` in bash.", "Run `if [[ -f x ]]; then` in bash."),
        ("```\n[[package]]\nname = 1\n```", "```\n[[package]]\nname = 1\n```"),
    ],
)
def test_markers_go_and_their_text_stays(text: str, expected: str) -> None:
    assert without_markers(text) == expected
