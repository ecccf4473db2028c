"""The names that a deployment registers."""

import pytest

from stepcraft import BadInput
from stepcraft.registered import SOURCES, registered


def test_entries_are_names_and_what_they_stand_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SOURCES, "docs=corpus:/srv/docs; web\nwiki = corpus:/srv/a=b ;")
    assert registered(SOURCES) == {
        "docs": "corpus:/srv/docs",
        "web": "web",
        "wiki": "corpus:/srv/a=b",
    }
    monkeypatch.delenv(SOURCES)
    assert registered(SOURCES) == {}


@pytest.mark.parametrize("entry", ["=corpus:/x", "docs=", "../x=web", "a b=web"])
def test_an_entry_of_another_form_is_refused(entry: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SOURCES, entry)
    with pytest.raises(BadInput, match=SOURCES):
        registered(SOURCES)
