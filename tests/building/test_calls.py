"""Values in the calls of steps that stand for others."""

import pytest

from stepcraft.building.grounding import without_stand_ins

STEPS = {
    "Call `search(customer=customer_name, limit=5)`.": "Call `search(customer=, limit=5)`.",
    'Call `search(customer="customer_name")`.': "Call `search(customer=)`.",
    "Call `search(customer={customer}, id=$ID)`.": "Call `search(customer=, id=)`.",
    'Send `{"order": order_id, "amount": 3.5}`.': 'Send `{"order": , "amount": 3.5}`.',
    '```json\n{\n  "order": order_id\n}\n```': '```json\n{\n  "order": \n}\n```',
    # What is written out stays: it may be made up.
    'Call `search(status="open", exact=True, name="Ana B")`.': 'Call `search(status="open", exact=True, name="Ana B")`.',
    "Call `search(first(order))`.": "Call `search(first(order))`.",
    "Set `mode=fast` in customer=x.": "Set `mode=fast` in customer=x.",
    "": "",
}


@pytest.mark.parametrize(("step", "kept"), STEPS.items())
def test_names_of_tools_and_arguments_stay(step: str, kept: str) -> None:
    assert without_stand_ins(step) == kept
